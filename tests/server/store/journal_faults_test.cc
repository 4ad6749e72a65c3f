// The storage fails at any of its calls, or the power goes after any of them:
// what was acknowledged is there, and the sessions are as all entries up to
// some entry left them. With TXL_STORE_FAULTS=all at every call, else at some.

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <atomic>
#include <cstdlib>
#include <fstream>

#include "tests/server/store/fault_vfs.h"
#include "tests/server/store/random_entries.h"

namespace txl {
namespace {

constexpr int kFaultEntries = 60;
constexpr int kEntriesOfACommit = 3;

bool Everywhere() {
  const char* const all = std::getenv("TXL_STORE_FAULTS");
  return all != nullptr && std::string(all) == "all";
}

class JournalFaultsTest : public testing::Test {
 protected:
  JournalFaultsTest() : options_(StoreOptions(temporary_.path() + "/store")) {}
  ~JournalFaultsTest() override { SetFault({}); }

  // Enters the lives of the seed until the store fails.
  void Live(uint64_t seed) {
    model_ = std::make_unique<FakeJournal>(false);
    told_ = 0;
    auto journal = OpenSqliteJournal(options_);
    if (!journal.ok()) return;
    RandomEntries entries(seed);
    for (int i = 0; i < kFaultEntries; ++i) {
      entries.Enter(**journal, *model_);
      if (i % kEntriesOfACommit > 0) continue;
      const absl::Status status = Durable(**journal);
      if (status.ok()) told_ = (*journal)->last_entry();
      if (absl::IsUnavailable(status)) break;
    }
  }

  // The store has all entries up to one of told..last. `where`: for messages.
  void ExpectPrefix(uint64_t told, const std::string& where) {
    auto journal = OpenSqliteJournal(options_);
    ASSERT_TRUE(journal.ok()) << journal.status() << where;
    const std::string found = StateOf(**journal);
    for (uint64_t entry = told; entry <= model_->last_entry(); ++entry) {
      if (found == At(entry)) return;
    }
    ADD_FAILURE() << "no prefix from entry " << told << where;
  }

  const std::string& At(uint64_t entry) {
    // The same seed gives the same states.
    auto& known = states_[entry];
    if (!known.has_value()) {
      FakeJournal model(false);
      FakeJournal ignored(false);
      RandomEntries entries(seed_);
      for (uint64_t i = 0; i < entry; ++i) entries.Enter(ignored, model);
      model.Commit();
      known = StateAfterCrash(model);
    }
    return *known;
  }

  TemporaryFolder temporary_;
  SqliteJournalOptions options_;
  uint64_t seed_ = 0;
  std::unique_ptr<FakeJournal> model_;
  std::atomic<uint64_t> told_{0};
  std::map<uint64_t, std::optional<std::string>> states_;
};

class FailingCallsTest : public JournalFaultsTest,
                         public testing::WithParamInterface<Fault> {};

TEST_P(FailingCallsTest, WhatWasAcknowledgedOutlivesAFailureOfAnyCall) {
  seed_ = 7;
  options_.vfs = FaultVfs();
  for (int64_t call = 1;; call += Everywhere() ? 1 : 1 + call / 3) {
    std::filesystem::remove_all(options_.folder);
    options_.recover = false;
    Fault fault = GetParam();
    fault.call = call;
    SetFault(fault);
    Live(seed_);
    const int64_t made = CallsMade();
    SetFault({});
    if (made < call) break;
    options_.recover = true;
    ExpectPrefix(told_, absl::StrCat(", call ", call));
    if (HasFailure()) break;
  }
}

INSTANTIATE_TEST_SUITE_P(Codes, FailingCallsTest,
                         testing::Values(Fault{0, SQLITE_IOERR_WRITE, false},
                                         Fault{0, SQLITE_IOERR_FSYNC, true},
                                         Fault{0, SQLITE_FULL, true},
                                         Fault{0, SQLITE_FULL, false}));

TEST_F(JournalFaultsTest, APowerLossAfterAnyCallLosesNothingAcknowledged) {
  const std::vector<uint64_t> seeds = Everywhere()
                                          ? std::vector<uint64_t>{1, 2, 3, 4}
                                          : std::vector<uint64_t>{1};
  for (const uint64_t seed : seeds) {
    seed_ = seed;
    states_.clear();
    std::filesystem::remove_all(options_.folder);
    options_.vfs = FaultVfs();
    SetFault({});
    RecordPowerLosses(Everywhere() ? 1 : 8, seed, [this] { return +told_; });
    Live(seed);
    const std::vector<PowerLoss> losses = TakePowerLosses();
    EXPECT_GT(losses.size(), 10u);
    options_.vfs.clear();
    for (const PowerLoss& loss : losses) {
      for (const DiskFiles* disk : {&loss.synced, &loss.reordered}) {
        std::filesystem::remove_all(options_.folder);
        std::filesystem::create_directory(options_.folder);
        for (const auto& [name, bytes] : *disk) {
          std::ofstream(options_.folder + "/" + name, std::ios::binary)
              << bytes;
        }
        ExpectPrefix(loss.acknowledged,
                     absl::StrCat(", seed ", seed, ", call ", loss.call));
        if (HasFailure()) return;
      }
    }
  }
}

}  // namespace
}  // namespace txl
