#include "server/store/store_tools.h"

#include <gtest/gtest.h>

#include <fstream>

#include "absl/strings/escaping.h"
#include "server/base/digest.h"
#include "server/store/session_tables.h"
#include "server/store/store_folder.h"
#include "tests/server/store/store_fixture.h"

namespace txl {
namespace {

void Quiet(absl::string_view) {}

// Sessions a, its fork b, c with a running turn, and d of another model.
class StoreToolsTest : public JournalTest {
 protected:
  StoreToolsTest() {
    journal_->Create(Head("a"), Sequence(Ids(5000)));
    journal_->Fork("a", 4500, Head("b"));
    journal_->Create(Head("c"), Sequence(Ids(10)));
    journal_->Begin("c", {}, At(1500));
    EXPECT_TRUE(Durable(*journal_).ok());
    journal_->Append("c", {10, {1, 2}, {}});
    EXPECT_TRUE(Durable(*journal_).ok());
    journal_->Append("c", {12, {3}, {}});
    EXPECT_TRUE(Durable(*journal_).ok());
    options_.fingerprint = "other";
    options_.vocab_size = 100'000;
    Reopen();
    journal_->Create(Head("d"), Sequence({99'999}));
    options_.fingerprint = "model";
    options_.vocab_size = 1000;
    journal_.reset();
  }

  CheckedStore Check() {
    const auto report = CheckStore(options_.folder, Quiet);
    EXPECT_TRUE(report.ok()) << report.status();
    return report.ok() ? *report : CheckedStore();
  }
  CheckedStore Repair() {
    const auto report = RepairStore(options_.folder, Quiet);
    EXPECT_TRUE(report.ok()) << report.status();
    EXPECT_TRUE(Check().sound());
    Reopen();
    return report.ok() ? *report : CheckedStore();
  }
};

TEST_F(StoreToolsTest, ASoundStoreIsCounted) {
  const CheckedStore report = Check();
  EXPECT_TRUE(report.sound());
  EXPECT_EQ(report.sessions, 4);
  EXPECT_EQ(report.tokens, 5000 + 4500 + 13 + 1);
  EXPECT_EQ(report.running_turns, 1);
  EXPECT_EQ(report.sessions_of,
            (std::map<std::string, int64_t>{{"model", 3}, {"other", 1}}));
  EXPECT_EQ(report.contents, 4);
  EXPECT_EQ(report.orphaned_contents, 0);
  EXPECT_GT(report.bytes, 0);
}

TEST_F(StoreToolsTest, AStoreInUseIsRefused) {
  Reopen();
  EXPECT_TRUE(
      absl::IsFailedPrecondition(CheckStore(options_.folder, Quiet).status()));
  EXPECT_TRUE(
      absl::IsFailedPrecondition(RepairStore(options_.folder, Quiet).status()));
  EXPECT_TRUE(absl::IsFailedPrecondition(
      CompactStore(options_.folder, Quiet).status()));
}

TEST_F(StoreToolsTest, AFolderWithoutAStoreStaysAsItIs) {
  const std::string other = temporary_.path() + "/other";
  EXPECT_TRUE(absl::IsNotFound(CheckStore(other, Quiet).status()));
  EXPECT_FALSE(std::filesystem::exists(other));
}

TEST_F(StoreToolsTest, ANewerFormatIsRefused) {
  Tamper("PRAGMA user_version=2");
  EXPECT_TRUE(
      absl::IsFailedPrecondition(RepairStore(options_.folder, Quiet).status()));
}

TEST_F(StoreToolsTest, EveryKindOfDamageIsFoundAndMended) {
  struct Case {
    std::string change;
    std::vector<std::string> gone;
  };
  const Case cases[] = {
      {"UPDATE session SET position=3 WHERE id='a'", {"a"}},
      {"UPDATE session SET head=substr(head, 2) WHERE id='b'", {"b"}},
      {"UPDATE chunk SET crc=crc+1 WHERE content=1 AND start=0", {"a", "b"}},
      {"DELETE FROM chunk WHERE content=1 AND start=4096", {"a", "b"}},
      {"UPDATE content SET base=4400 WHERE parent=1", {"b"}},
      {"UPDATE chunk SET ids=x'ffff', crc=crc+1 WHERE content=3", {"c"}},
      {"DELETE FROM meta WHERE key='model other'", {"d"}},
  };
  const std::string whole = options_.folder;
  for (const Case& one : cases) {
    SCOPED_TRACE(one.change);
    journal_.reset();
    options_.folder = temporary_.path() + "/case";
    CopyStore(whole, options_.folder);
    Tamper(one.change);
    const CheckedStore report = Check();
    EXPECT_FALSE(report.sound());
    std::vector<std::string> damaged;
    for (const auto& found : report.damaged) {
      damaged.push_back(found.session_id);
    }
    EXPECT_EQ(damaged, one.gone);
    Repair();
    EXPECT_EQ(journal_->status().sessions,
              4 - static_cast<int64_t>(one.gone.size()));
    for (const std::string& id : one.gone) {
      EXPECT_TRUE(absl::IsNotFound(Load(*journal_, id).status()));
    }
    EXPECT_FALSE(std::filesystem::is_empty(options_.folder + "/quarantine"));
    if (one.gone[0] != "c") {
      EXPECT_EQ(IdsOf("c").size(), 13u);
    }
  }
}

TEST_F(StoreToolsTest, ADamagedTurnGoesAndItsSessionIsAsBefore) {
  // The store was opened since, which gave the turn one row.
  Tamper("UPDATE log SET crc=crc+1");
  EXPECT_EQ(Check().damaged_log_rows, 1);
  Repair();
  EXPECT_EQ(IdsOf("c"), Ids(10));
  EXPECT_FALSE(Load(*journal_, "c")->running.has_value());
}

TEST_F(StoreToolsTest, ATurnThatDoesNotJoinItsSessionIsADamagedTurn) {
  journal_.reset();
  {
    auto database = *Database::Open({options_.folder + "/journal.db", "", 0});
    SessionTablesOptions tables;
    tables.fingerprint = "model";
    tables.vocab_size = 1000;
    auto sessions = *SessionTables::Open(database.get(), tables);
    const BeginEntry begin{"b", {}, At(1500)};
    ASSERT_TRUE(sessions->Commit({begin}).ok());
    const AppendEntry append{"b", {4501, {1}, {}}};
    ASSERT_TRUE(sessions->Commit({append}).ok());
  }
  ASSERT_EQ(Check().damaged.size(), 1u);
  EXPECT_EQ(Check().damaged[0].session_id, "b");
  Repair();
  EXPECT_EQ(IdsOf("b"), Ids(4500));
}

TEST_F(StoreToolsTest, ContentsOfNobodyGoAndCountsAreRight) {
  Tamper("DELETE FROM session WHERE id='b'");
  EXPECT_EQ(Check().orphaned_contents, 1);
  EXPECT_TRUE(Check().sound()) << "they cost room only";
  Repair();
  journal_.reset();
  EXPECT_EQ(Check().orphaned_contents, 0);
}

TEST_F(StoreToolsTest, RepairedSessionsGoOn) {
  Tamper("UPDATE session SET position=3 WHERE id='a'");
  Repair();
  EXPECT_EQ(IdsOf("b"), Ids(4500));
  journal_->Begin("b", {}, At(3000));
  journal_->End("b", EndWith({4500, {1}, {}}));
  journal_->Remove("b");
  ASSERT_TRUE(Durable(*journal_).ok());
  journal_.reset();
  EXPECT_EQ(Check().contents, 2) << "b's parent went with it";
}

// Pages, not rows: the tools may give up, but what they call sound is.
TEST_F(StoreToolsTest,
       WhateverBytesAreDamagedARepairThatWorksLeavesASoundStore) {
  const std::string whole = options_.folder;
  const auto size = std::filesystem::file_size(whole + "/journal.db");
  options_.folder = temporary_.path() + "/case";
  int repaired = 0;
  for (size_t at = 100; at < size; at += 4051) {
    SCOPED_TRACE(at);
    CopyStore(whole, options_.folder);
    std::fstream file(options_.folder + "/journal.db",
                      std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(at));
    file << "0123456789abcdef";
    file.close();
    const auto before = CheckStore(options_.folder, Quiet);
    const auto report = RepairStore(options_.folder, Quiet);
    if (!report.ok()) {
      EXPECT_FALSE(before.ok() && before->sound()) << report.status();
      continue;
    }
    ++repaired;
    ASSERT_TRUE(Check().sound());
    Reopen();
    for (const StoredInfo& info : List(*journal_, "", 10)) {
      const absl::Status status =
          Load(*journal_, info.head.session_id).status();
      EXPECT_TRUE(status.ok() || absl::IsFailedPrecondition(status)) << status;
    }
    journal_.reset();
  }
  EXPECT_GT(repaired, 7);
}

TEST_F(StoreToolsTest, ImagesAreCountedByTheirSessions) {
  for (const char* id : {"a", "nobody"}) {
    const std::string folder =
        options_.folder + "/images/ab/" + absl::BytesToHexString(Sha256Of(id));
    std::filesystem::create_directories(folder);
    std::ofstream(folder + "/7-0123456789abcdef0123456789abcdef.txlm") << "x";
  }
  EXPECT_EQ(Check().images, 2);
  EXPECT_EQ(Check().images_without_session, 1);
}

TEST_F(StoreToolsTest, CompactingKeepsEverySessionInLessRoom) {
  Reopen();
  journal_->Create(Head("large"), Sequence(Ids(1'000'000)));
  journal_->Remove("large");
  ASSERT_TRUE(Durable(*journal_).ok());
  journal_.reset();
  const auto compacted = CompactStore(options_.folder, Quiet);
  ASSERT_TRUE(compacted.ok()) << compacted.status();
  EXPECT_LT(compacted->bytes_after, 200'000);
  EXPECT_GT(compacted->bytes_before, compacted->bytes_after);
  EXPECT_TRUE(Check().sound());
  Reopen();
  EXPECT_EQ(IdsOf("a"), Ids(5000));
}

TEST_F(StoreToolsTest, AFailedStoreIsSoundOnlyOnceItWasCopied) {
  std::ofstream(options_.folder + "/FAILED") << "x";
  EXPECT_FALSE(Check().sound());
  EXPECT_TRUE(absl::IsFailedPrecondition(
      CompactStore(options_.folder, Quiet).status()));
  Repair();
  EXPECT_EQ(IdsOf("a"), Ids(5000));
}

// A copy that was whole when the power went takes its place; the log of the
// old database is not one of the new.
TEST_F(StoreToolsTest, ACopyIsFinishedOrThrownAway) {
  const std::string database = options_.folder + "/journal.db";
  std::filesystem::copy(database, database + ".new");
  std::ofstream(database) << "half written";
  std::ofstream(database + "-wal") << "of the old one";
  std::ofstream(database + ".copy") << "not whole";
  EXPECT_TRUE(Check().sound());
  EXPECT_FALSE(std::filesystem::exists(database + ".new"));
  EXPECT_FALSE(std::filesystem::exists(database + ".copy"));
}

}  // namespace
}  // namespace txl
