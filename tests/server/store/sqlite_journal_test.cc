#include "server/store/sqlite_journal.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <mutex>

#include "server/base/error.h"
#include "tests/server/store/store_fixture.h"

namespace txl {
namespace {

class SqliteJournalTest : public JournalTest {};

std::vector<int32_t> Joined(std::vector<int32_t> first,
                            const std::vector<int32_t>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

TEST_F(SqliteJournalTest, ATurnThatRanAtACrashComesBackAsRunning) {
  journal_->Create(Head("a"), Sequence(Ids(5)));
  TurnIntent intent;
  intent.identity = {"request", "digest"};
  intent.seed = UINT64_MAX;
  intent.start_position = 5;
  intent.prompt_tokens = 2;
  journal_->Begin("a", intent, At(1500));
  TokenEvent event = {
      .token_id = 9, .text = "nine", .top_logprobs = {{9, -0.5f}}};
  journal_->Append("a", {5, {7, 8, 9}, {event}});
  ASSERT_TRUE(Durable(*journal_).ok());
  for (int crash = 0; crash < 3; ++crash) {
    Crash();
    const auto loaded = Load(*journal_, "a");
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    EXPECT_EQ(Plain(loaded->token_ids), Joined(Ids(5), {7, 8, 9}));
    ASSERT_TRUE(loaded->running.has_value());
    EXPECT_EQ(loaded->running->identity.request_id, "request");
    EXPECT_EQ(loaded->running->seed, UINT64_MAX);
    EXPECT_EQ(loaded->running_tokens, 3);
    ASSERT_EQ(loaded->running_events.size(), 1u);
    EXPECT_EQ(loaded->running_events[0].text, "nine");
    EXPECT_EQ(loaded->running_events[0].top_logprobs[0].logprob, -0.5f);
    EXPECT_EQ(loaded->head.last_use, At(1500));
    EXPECT_EQ(List(*journal_, "", 1)[0].position, 8);
  }
}

TEST_F(SqliteJournalTest, AnEndedTurnLeavesIdsAndRecordAndNothingRuns) {
  journal_->Create(Head("a"), Sequence(Ids(4090)));
  journal_->Begin("a", {}, At(1500));
  journal_->Append("a", {4090, Ids(10, 1), {}});
  ASSERT_TRUE(Durable(*journal_).ok());
  JournalEnd end = EndWith({4100, Ids(3, 2), {}});
  auto record = std::make_shared<TurnRecord>();
  record->tokens.resize(2);
  record->tokens[1].text = "two";
  end.record = record;
  journal_->End("a", end);
  ASSERT_TRUE(Durable(*journal_).ok());
  Crash();
  EXPECT_EQ(journal_->status().sessions, 1);
  const auto loaded = Load(*journal_, "a");
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(Plain(loaded->token_ids),
            Joined(Joined(Ids(4090), Ids(10, 1)), Ids(3, 2)));
  EXPECT_FALSE(loaded->running.has_value());
  ASSERT_NE(loaded->record, nullptr);
  EXPECT_EQ(loaded->record->tokens[1].text, "two");
  EXPECT_EQ(loaded->head.last_use, At(2000));
}

// The session remembers a row of the log that is gone since.
TEST_F(SqliteJournalTest, ATurnBegunAfterARestartIsNotTakenForAnEndedOne) {
  journal_->Create(Head("a"), Sequence(Ids(5)));
  for (int64_t turn = 0; turn < 5; ++turn) {
    journal_->Begin("a", {}, At(1500));
    ASSERT_TRUE(Durable(*journal_).ok());
    journal_->Append("a", {5 + turn, {1}, {}});
    ASSERT_TRUE(Durable(*journal_).ok());
    journal_->End("a", EndWith({}));
    ASSERT_TRUE(Durable(*journal_).ok());
  }
  journal_->Create(Head("b"), Sequence({}));  // clears the log away
  ASSERT_TRUE(Durable(*journal_).ok());
  Reopen();
  journal_->Begin("a", {}, At(1500));
  journal_->Append("a", {10, {2}, {}});
  ASSERT_TRUE(Durable(*journal_).ok());
  Crash();
  EXPECT_EQ(IdsOf("a").size(), 11u);
  EXPECT_TRUE(Load(*journal_, "a")->running.has_value());
}

TEST_F(SqliteJournalTest, AnEntryOfASessionThatIsNotThereIsLeftOut) {
  journal_->Begin("ghost", {}, At(1500));
  journal_->Append("ghost", {0, {1}, {}});
  journal_->End("ghost", EndWith({0, {1}, {}}));
  journal_->Fork("ghost", 0, Head("child"));
  journal_->Create(Head("a"), Sequence(Ids(3)));
  EXPECT_TRUE(Durable(*journal_).ok());
  EXPECT_EQ(List(*journal_, "", 10).size(), 1u);
  journal_.reset();
  auto database = Database::Open({options_.folder + "/journal.db", "", 0});
  EXPECT_EQ(*(*database)->Number("SELECT count(*) FROM log"), 0);
  EXPECT_EQ(*(*database)->Number("SELECT count(*) FROM content"), 1);
}

TEST_F(SqliteJournalTest, AnEarlyDateInAnIndexEndsNoSession) {
  journal_->Create(Head("a"), Sequence(Ids(5)));
  Tamper("UPDATE session SET expire=1");
  Reopen();
  EXPECT_TRUE(Expired(*journal_, At(1001)).empty());
}

TEST_F(SqliteJournalTest, ASessionOfAnotherModelIsRefusedAndStays) {
  journal_->Create(Head("a"), Sequence(Ids(5)));
  journal_->Begin("a", {}, At(1500));
  options_.fingerprint = "other";
  options_.vocab_size = 7;
  Reopen();
  const absl::Status status = Load(*journal_, "a").status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_EQ(GetErrorDetails(status).reason, "MODEL_MISMATCH");
  options_.fingerprint = "model";
  options_.vocab_size = 1000;
  Reopen();
  EXPECT_EQ(IdsOf("a"), Ids(5));
  EXPECT_TRUE(Load(*journal_, "a")->running.has_value());
}

TEST_F(SqliteJournalTest, ADamagedSessionIsRefusedAndNoOther) {
  journal_->Create(Head("a"), Sequence(Ids(5)));
  journal_->Create(Head("b"), Sequence(Ids(6)));
  Tamper("UPDATE session SET position=4 WHERE id='a'");
  Reopen();
  const absl::Status status = Load(*journal_, "a").status();
  EXPECT_TRUE(absl::IsDataLoss(status));
  EXPECT_EQ(GetErrorDetails(status).reason, "SESSION_DAMAGED");
  EXPECT_FALSE(std::filesystem::is_empty(options_.folder + "/quarantine"));
  journal_->Rewind("a", 1, Head("a"));
  journal_->Begin("b", {}, At(1500));
  journal_->End("b", EndWith({6, {1}, {}}));
  EXPECT_TRUE(Durable(*journal_).ok());
  EXPECT_EQ(IdsOf("b"), Joined(Ids(6), {1}));
  journal_->Remove("a");
  EXPECT_TRUE(Durable(*journal_).ok());
  EXPECT_TRUE(absl::IsNotFound(Load(*journal_, "a").status()));
}

TEST_F(SqliteJournalTest, EntriesMadeTogetherAreCommittedTogether) {
  journal_.reset();
  options_.interval = absl::Hours(1);
  Reopen();
  journal_->Create(Head("first"), Sequence({}));
  ASSERT_TRUE(Durable(*journal_).ok());
  const int64_t before = journal_->status().commits;
  for (int i = 0; i < 100; ++i) {
    journal_->Create(Head(std::to_string(i)), Sequence(Ids(10)));
  }
  ASSERT_TRUE(Durable(*journal_).ok());
  // The first entry may have been taken alone.
  EXPECT_LE(journal_->status().commits - before, 2);
  EXPECT_EQ(journal_->durable_entry(), 101u);
  EXPECT_EQ(journal_->status().sessions, 101);
}

TEST_F(SqliteJournalTest, WhoWaitsIsToldInTheOrderOfTheCalls) {
  journal_.reset();
  options_.interval = absl::Hours(1);
  Reopen();
  std::mutex mutex;
  std::vector<int> told;
  uint64_t durable = 0;
  for (int i = 0; i < 20; ++i) {
    const uint64_t entry =
        journal_->Create(Head(std::to_string(i)), Sequence({}));
    journal_->WhenDurable(entry, [&, i](const absl::Status& status) {
      EXPECT_TRUE(status.ok());
      std::lock_guard<std::mutex> lock(mutex);
      told.push_back(i);
      durable = std::max(durable, journal_->durable_entry());
    });
  }
  ASSERT_TRUE(Durable(*journal_).ok());
  std::lock_guard<std::mutex> lock(mutex);
  ASSERT_EQ(told.size(), 20u);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(told[i], i);
  EXPECT_EQ(durable, 20u);
}

TEST_F(SqliteJournalTest, AReadSeesEveryEntryThatWasMadeBefore) {
  journal_.reset();
  options_.interval = absl::Hours(1);
  Reopen();
  for (int64_t i = 0; i < 200; ++i) {
    if (i == 0) journal_->Create(Head("a"), Sequence({}));
    journal_->Begin("a", {}, At(1500));
    journal_->End("a", EndWith({i, {static_cast<int32_t>(i)}, {}}));
    ASSERT_EQ(Load(*journal_, "a")->token_ids.size(), i + 1);
  }
}

TEST_F(SqliteJournalTest, DrainLeavesEverythingOnStableStorage) {
  journal_.reset();
  options_.interval = absl::Hours(1);
  Reopen();
  journal_->Create(Head("a"), Sequence(Ids(3)));
  journal_->Create(Head("b"), Sequence(Ids(3)));
  journal_->Drain(absl::Seconds(30));
  EXPECT_EQ(journal_->durable_entry(), 2u);
}

TEST_F(SqliteJournalTest, AFolderIsOpenOnce) {
  const auto second = OpenSqliteJournal(options_);
  EXPECT_TRUE(absl::IsFailedPrecondition(second.status()));
  EXPECT_NE(second.status().message().find(options_.folder),
            absl::string_view::npos);
}

TEST_F(SqliteJournalTest, ANewerFormatIsRefusedAndLeftAlone) {
  journal_->Create(Head("a"), Sequence(Ids(5)));
  Tamper("PRAGMA user_version=2");
  const auto opened = OpenSqliteJournal(options_);
  EXPECT_TRUE(absl::IsFailedPrecondition(opened.status()));
  EXPECT_NE(opened.status().message().find("format 2"),
            absl::string_view::npos);
  Tamper("PRAGMA user_version=1");
  Reopen();
  EXPECT_EQ(IdsOf("a"), Ids(5));
}

TEST_F(SqliteJournalTest, AFailedFolderIsOpenedByRecoveryOnly) {
  journal_->Create(Head("a"), Sequence(Ids(5)));
  ASSERT_TRUE(Durable(*journal_).ok());
  Crash();  // leaves what SQLite's log has
  journal_->Create(Head("b"), Sequence(Ids(6)));
  ASSERT_TRUE(Durable(*journal_).ok());
  std::ofstream(options_.folder + "/FAILED") << "x";
  const std::string copy = options_.folder + "-copy";
  CopyStore(options_.folder, copy);
  options_.folder = copy;
  EXPECT_TRUE(absl::IsFailedPrecondition(OpenSqliteJournal(options_).status()));
  options_.recover = true;
  Reopen();
  EXPECT_EQ(IdsOf("a"), Ids(5));
  EXPECT_EQ(IdsOf("b"), Ids(6));
  options_.recover = false;
  Reopen();
  EXPECT_EQ(IdsOf("b"), Ids(6));
}

TEST_F(SqliteJournalTest, OnlyItsOwnerReadsTheDatabaseAndItsLog) {
  const auto modes = [&] {
    for (const char* name : {"/journal.db", "/journal.db-wal"}) {
      const auto rights =
          std::filesystem::status(options_.folder + name).permissions();
      EXPECT_EQ(static_cast<unsigned>(rights), 0600u) << name;
    }
  };
  const mode_t before = umask(022);
  modes();  // of a new store
  journal_.reset();
  chmod((options_.folder + "/journal.db").c_str(), 0604);
  Reopen();
  modes();
  std::ofstream(options_.folder + "/FAILED") << "x";
  options_.recover = true;  // as a copy
  Reopen();
  modes();
  umask(before);
}

TEST_F(SqliteJournalTest, AFileThatIsNoDatabaseIsNamed) {
  journal_.reset();
  std::ofstream(options_.folder + "/journal.db") << std::string(5000, 'x');
  const auto opened = OpenSqliteJournal(options_);
  EXPECT_TRUE(absl::IsUnknown(opened.status()));
  EXPECT_NE(opened.status().message().find("journal.db"),
            absl::string_view::npos);
}

}  // namespace
}  // namespace txl
