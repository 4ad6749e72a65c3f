// A database that is not as it was written: whatever byte of it changes and
// wherever it is cut, a session is as it was, or refused. In the ordinary tests
// some of the bytes and lengths; with TXL_STORE_FAULTS=all each.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/server/store/store_fixture.h"

namespace txl {
namespace {

class JournalDamageTest : public JournalTest {
 protected:
  JournalDamageTest() : path_(options_.folder + "/journal.db") {
    journal_->Create(Head("a"), Sequence(Ids(2000)));
    journal_->Create(Head("b"), Sequence(Ids(300, 3)));
    journal_->Fork("a", 1000, Head("c"));
    journal_->Begin("b", {}, At(1500));
    journal_->Append("b", {300, {4, 5}, {}});
    EXPECT_TRUE(Durable(*journal_).ok());
    journal_.reset();
    std::ifstream file(path_, std::ios::binary);
    good_.assign(std::istreambuf_iterator<char>(file), {});
  }

  // From one place to the next.
  static size_t Step(size_t few) {
    const char* faults = std::getenv("TXL_STORE_FAULTS");
    return faults != nullptr && std::string(faults) == "all" ? 1 : few;
  }

  // Opens the journal with that database, and loads all. Counts what is
  // refused, at once or when it is loaded.
  void Try(const std::string& database, size_t at) {
    std::filesystem::remove(path_ + "-wal");
    std::filesystem::remove(options_.folder + "/FAILED");
    std::ofstream(path_, std::ios::binary) << database;
    auto opened = OpenSqliteJournal(options_);
    if (!opened.ok()) {
      ++refused_;
      return;
    }
    journal_ = *std::move(opened);
    const auto a = Load(*journal_, "a");
    const auto b = Load(*journal_, "b");
    const auto c = Load(*journal_, "c");
    std::vector<int32_t> of_b = Ids(300, 3);
    if (b.ok() && b->running.has_value()) of_b.insert(of_b.end(), {4, 5});
    EXPECT_EQ(a.ok() ? Plain(a->token_ids) : Ids(2000), Ids(2000)) << at;
    EXPECT_EQ(b.ok() ? Plain(b->token_ids) : of_b, of_b) << at;
    EXPECT_EQ(c.ok() ? Plain(c->token_ids) : Ids(1000), Ids(1000)) << at;
    if (!a.ok() || !b.ok() || !c.ok()) ++refused_;
    journal_.reset();
  }

  const std::string path_;
  std::string good_;
  int refused_ = 0;
};

TEST_F(JournalDamageTest, AFlippedByteIsNeverAnotherText) {
  ASSERT_GT(good_.size(), 20000u);
  for (size_t at = 0; at < good_.size(); at += Step(311)) {
    std::string bad = good_;
    bad[at] = static_cast<char>(bad[at] ^ 0x10);
    Try(bad, at);
  }
  EXPECT_GT(refused_, 10);
}

TEST_F(JournalDamageTest, ACutDatabaseIsNeverAnotherText) {
  for (size_t size = 0; size < good_.size(); size += Step(1009)) {
    Try(good_.substr(0, size), size);
  }
  EXPECT_GT(refused_, 10);
}

TEST_F(JournalDamageTest, ADatabaseOfNoBytesOrNoneBesideItsLogIsRefused) {
  const std::string log(5000, 'x');
  for (const bool there : {true, false}) {
    std::filesystem::remove(path_);
    if (there) std::ofstream{path_};
    if (!there) std::ofstream(path_ + "-wal") << log;
    const absl::Status status = OpenSqliteJournal(options_).status();
    EXPECT_TRUE(absl::IsUnknown(status)) << status;
    EXPECT_NE(status.message().find(
                  there ? "journal.db: is empty; put a copy"
                        : "journal.db: is missing, its log is there; put"),
              absl::string_view::npos)
        << status;
    EXPECT_EQ(std::filesystem::exists(path_), there);
  }
  EXPECT_EQ(std::filesystem::file_size(path_ + "-wal"), log.size());
}

// A crash while a store is made leaves none, or one that opens.
TEST_F(JournalDamageTest, ANewStoreIsThereWholeOrNotAtAll) {
  for (const char* name : {".copy", ".copy-wal", ".copy-journal"}) {
    for (const size_t bytes : {size_t{0}, size_t{4096}}) {
      std::filesystem::remove(path_);
      std::ofstream(path_ + name) << std::string(bytes, 'x');
      Reopen();
      EXPECT_FALSE(Load(*journal_, "a").ok());
      journal_.reset();
      EXPECT_GT(std::filesystem::file_size(path_), 0u);
      EXPECT_FALSE(std::filesystem::exists(path_ + ".copy"));
    }
  }
}

}  // namespace
}  // namespace txl
