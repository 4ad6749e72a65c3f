// What every journal of sessions keeps, by the one in SQLite and the one in
// Redis.

#include <gtest/gtest.h>

#include "server/base/error.h"
#include "tests/server/store/redis/redis_fixture.h"

namespace txl {
namespace {

enum class Kind { kSqlite, kRedis };

class JournalContractTest
    : public testing::WithRedis<::testing::TestWithParam<Kind>> {
 protected:
  void SetUp() override {
    if (GetParam() == Kind::kRedis) Flush(*redis_);
    Reopen();
  }

  // A process that starts on what the one before left.
  void Reopen() {
    journal_.reset();
    shared_ = nullptr;
    if (GetParam() == Kind::kRedis) {
      RedisJournalOptions options = RedisOptions(*redis_);
      options.fingerprint = fingerprint_;
      std::unique_ptr<SharedJournal> opened = OpenJournal(options);
      shared_ = opened.get();
      journal_ = std::move(opened);
      return;
    }
    SqliteJournalOptions options = StoreOptions(folder_.path() + "/store");
    options.fingerprint = fingerprint_;
    auto opened = OpenSqliteJournal(options);
    ASSERT_TRUE(opened.ok()) << opened.status();
    journal_ = *std::move(opened);
  }
  // What a turn on a session begins with where servers share it. The same
  // request takes it over from a process that is gone.
  void Own(const std::string& id) {
    if (shared_ == nullptr) return;
    const auto found = Acquire(*shared_, id, "request");
    ASSERT_TRUE(found.ok()) << found.status();
  }
  std::vector<int32_t> IdsOf(const std::string& id) {
    const absl::StatusOr<StoredSession> loaded = Load(*journal_, id);
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    return loaded.ok() ? Plain(loaded->token_ids) : std::vector<int32_t>();
  }

  TemporaryFolder folder_;
  std::string fingerprint_ = "model";
  std::unique_ptr<SessionJournal> journal_;
  SharedJournal* shared_ = nullptr;
};

INSTANTIATE_TEST_SUITE_P(Journals, JournalContractTest,
                         ::testing::Values(Kind::kSqlite, Kind::kRedis),
                         [](const auto& kind) {
                           return kind.param == Kind::kRedis ? "Redis"
                                                             : "Sqlite";
                         });

std::vector<int32_t> Joined(std::vector<int32_t> first,
                            const std::vector<int32_t>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

TEST_P(JournalContractTest, ASessionComesBackWithItsIdsAndHead) {
  StoredHead head = Head("a");
  head.earlier_requests = {1, UINT64_MAX};
  head.last_turn = {"r", "STOP", 3, 4, 5};
  head.detokenizer = std::string("\0x", 2);
  journal_->Create(head, Sequence(Ids(10000)));
  ASSERT_TRUE(Durable(*journal_).ok());
  Reopen();
  const auto loaded = Load(*journal_, "a");
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(Plain(loaded->token_ids), Ids(10000));
  EXPECT_EQ(loaded->head.ttl, absl::Hours(1));
  EXPECT_EQ(loaded->head.create_time, At(1000));
  EXPECT_EQ(loaded->head.earlier_requests, head.earlier_requests);
  EXPECT_EQ(loaded->head.last_turn.generated_tokens, 5);
  EXPECT_EQ(loaded->head.detokenizer, head.detokenizer);
  EXPECT_FALSE(loaded->running.has_value());
}

TEST_P(JournalContractTest, ATurnThatRanComesBackAsRunning) {
  journal_->Create(Head("a"), Sequence(Ids(5)));
  Own("a");
  TurnIntent intent;
  intent.identity = {"request", "digest"};
  intent.seed = UINT64_MAX;
  intent.start_position = 5;
  intent.prompt_tokens = 2;
  journal_->Begin("a", intent, At(1500));
  TokenEvent event;
  event.token_id = 9;
  event.text = "nine";
  event.top_logprobs = {{9, -0.5f}};
  journal_->Append("a", {5, {7, 8, 9}, {event}});
  journal_->Append("a", {8, {10}, {event}});
  ASSERT_TRUE(Durable(*journal_).ok());
  journal_->Append("a", {9, {11}, {}});
  ASSERT_TRUE(Durable(*journal_).ok());
  Reopen();
  const auto loaded = Load(*journal_, "a");
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(Plain(loaded->token_ids), Joined(Ids(5), {7, 8, 9, 10, 11}));
  ASSERT_TRUE(loaded->running.has_value());
  EXPECT_EQ(loaded->running->identity.request_id, "request");
  EXPECT_EQ(loaded->running->seed, UINT64_MAX);
  EXPECT_EQ(loaded->running_tokens, 5);
  ASSERT_EQ(loaded->running_events.size(), 2u);
  EXPECT_EQ(loaded->running_events[0].text, "nine");
  EXPECT_EQ(loaded->running_events[0].top_logprobs[0].logprob, -0.5f);
  EXPECT_EQ(loaded->head.last_use, At(1500));
  EXPECT_EQ(List(*journal_, "", 1)[0].position, 10);
}

TEST_P(JournalContractTest, AnEndedTurnLeavesIdsAndRecordAndNothingRuns) {
  journal_->Create(Head("a"), Sequence(Ids(4090)));
  Own("a");
  journal_->Begin("a", {}, At(1500));
  journal_->Append("a", {4090, Ids(10, 1), {}});
  JournalEnd end = EndWith({4100, Ids(3, 2), {}});
  auto record = std::make_shared<TurnRecord>();
  record->tokens.resize(2);
  record->tokens[1].text = "two";
  end.record = record;
  journal_->End("a", end);
  ASSERT_TRUE(Durable(*journal_).ok());
  Reopen();
  const auto loaded = Load(*journal_, "a");
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(Plain(loaded->token_ids),
            Joined(Joined(Ids(4090), Ids(10, 1)), Ids(3, 2)));
  EXPECT_FALSE(loaded->running.has_value());
  ASSERT_NE(loaded->record, nullptr);
  EXPECT_EQ(loaded->record->tokens[1].text, "two");
  EXPECT_EQ(loaded->head.last_use, At(2000));
  EXPECT_EQ(loaded->head.last_turn.outcome, "MAX_TOKENS");
}

TEST_P(JournalContractTest, ForksKeepTheirIdsWhateverBecomesOfTheirParent) {
  journal_->Create(Head("a"), Sequence(Ids(6000)));
  journal_->Fork("a", 5000, Head("b"));
  journal_->Fork("b", 4500, Head("c"));
  journal_->Rewind("a", 10, Head("a"));
  ASSERT_TRUE(Durable(*journal_).ok());
  Own("a");
  journal_->Begin("a", {}, At(1500));
  journal_->End("a", EndWith({10, {1, 2, 3}, {}}));
  journal_->Remove("b");
  ASSERT_TRUE(Durable(*journal_).ok());
  Reopen();
  EXPECT_EQ(IdsOf("a"), Joined(Ids(10), {1, 2, 3}));
  EXPECT_TRUE(absl::IsNotFound(Load(*journal_, "b").status()));
  EXPECT_EQ(IdsOf("c"), Ids(4500));
}

TEST_P(JournalContractTest, AnEntryOfASessionThatIsNotThereIsLeftOut) {
  journal_->Begin("ghost", {}, At(1500));
  journal_->Append("ghost", {0, {1}, {}});
  journal_->End("ghost", EndWith({0, {1}, {}}));
  journal_->Fork("ghost", 0, Head("child"));
  journal_->Create(Head("a"), Sequence(Ids(3)));
  EXPECT_TRUE(Durable(*journal_).ok());
  EXPECT_EQ(List(*journal_, "", 10).size(), 1u);
}

TEST_P(JournalContractTest, TokensThatDoNotJoinTheSessionAreNotTaken) {
  journal_->Create(Head("a"), Sequence(Ids(5)));
  Own("a");
  journal_->Begin("a", {}, At(1500));
  journal_->End("a", EndWith({6, {1}, {}}));
  EXPECT_TRUE(Durable(*journal_).ok());
  EXPECT_EQ(IdsOf("a"), Ids(5));
}

TEST_P(JournalContractTest, AListingGoesOnBehindAnIdWithinATenant) {
  for (const char* id : {"c", "a", "bob/x", "b"}) {
    journal_->Create(Head(id), Sequence({}));
  }
  const std::vector<StoredInfo> page = List(*journal_, "", 2);
  ASSERT_EQ(page.size(), 2u);
  EXPECT_EQ(page[0].head.session_id, "a");
  EXPECT_EQ(page[1].head.session_id, "b");
  EXPECT_EQ(List(*journal_, "b", 2)[0].head.session_id, "c");
  EXPECT_TRUE(List(*journal_, "c", 2).empty());
  EXPECT_EQ(List(*journal_, "bob/", 2)[0].head.session_id, "bob/x");
}

TEST_P(JournalContractTest, ExpiryCountsFromTheLastUseThatWasEntered) {
  journal_->Create(Head("a"), Sequence({}));
  journal_->Create(Head("b"), Sequence({}));
  Own("b");
  journal_->Begin("b", {}, At(3000));
  journal_->End("b", EndWith({0, {1}, {}}));  // used until 2000
  EXPECT_TRUE(Expired(*journal_, At(999 + 3600)).empty());
  EXPECT_EQ(Expired(*journal_, At(1001 + 3600)), std::vector<std::string>{"a"});
  EXPECT_EQ(Expired(*journal_, At(3001 + 3600)).size(), 2u);
  EXPECT_EQ(Expired(*journal_, At(3001 + 3600), 1).size(), 1u);
}

TEST_P(JournalContractTest, ASessionOfAnotherModelIsRefusedAndStays) {
  journal_->Create(Head("a"), Sequence(Ids(5)));
  ASSERT_TRUE(Durable(*journal_).ok());
  fingerprint_ = "other";
  Reopen();
  const absl::Status status = Load(*journal_, "a").status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_EQ(GetErrorDetails(status).reason, "MODEL_MISMATCH");
  fingerprint_ = "model";
  Reopen();
  EXPECT_EQ(IdsOf("a"), Ids(5));
}

TEST_P(JournalContractTest, AReadSeesEveryEntryThatWasMadeBefore) {
  journal_->Create(Head("a"), Sequence({}));
  Own("a");
  for (int64_t i = 0; i < 50; ++i) {
    journal_->Begin("a", {}, At(1500));
    journal_->End("a", EndWith({i, {static_cast<int32_t>(i)}, {}}));
    ASSERT_EQ(Load(*journal_, "a")->token_ids.size(), i + 1);
  }
}

TEST_P(JournalContractTest, WhoWaitsIsToldInTheOrderOfTheEntries) {
  std::mutex mutex;
  std::vector<int> told;
  for (int i = 0; i < 20; ++i) {
    const uint64_t entry =
        journal_->Create(Head(std::to_string(i)), Sequence({}));
    EXPECT_EQ(entry, static_cast<uint64_t>(i + 1));
    journal_->WhenDurable(entry, [&, i](const absl::Status& status) {
      EXPECT_TRUE(status.ok());
      std::lock_guard<std::mutex> lock(mutex);
      told.push_back(i);
    });
  }
  ASSERT_TRUE(Durable(*journal_).ok());
  std::lock_guard<std::mutex> lock(mutex);
  ASSERT_EQ(told.size(), 20u);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(told[i], i);
  EXPECT_EQ(journal_->durable_entry(), 20u);
}

TEST_P(JournalContractTest, PositionsAreToldOfOneAndOfAll) {
  journal_->Create(Head("a"), Sequence(Ids(5)));
  journal_->Create(Head("bob/b"), Sequence(Ids(7)));
  EXPECT_EQ(Positions(*journal_),
            (std::map<std::string, int64_t>{{"a", 5}, {"bob/b", 7}}));
  EXPECT_EQ(Positions(*journal_, "a"),
            (std::map<std::string, int64_t>{{"a", 5}}));
  EXPECT_TRUE(Positions(*journal_, "c").empty());
}

TEST_P(JournalContractTest, DrainLeavesEverythingOnStableStorage) {
  journal_->Create(Head("a"), Sequence(Ids(3)));
  journal_->Create(Head("b"), Sequence(Ids(3)));
  journal_->Drain(absl::Seconds(30));
  EXPECT_EQ(journal_->durable_entry(), 2u);
}

}  // namespace
}  // namespace txl
