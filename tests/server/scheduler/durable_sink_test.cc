#include "server/scheduler/durable_sink.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "server/base/error.h"
#include "tests/fakes/fake_journal.h"
#include "tests/fakes/recording_sink.h"

namespace txl {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Its storage stands still until a test says otherwise; it notes what was
// waited for.
class SlowJournal final : public FakeJournal {
 public:
  SlowJournal() : FakeJournal(/*commits=*/false) {
    StoredHead head;
    head.session_id = "s";
    Create(head, TokenSequence());
    Commit();
  }
  uint64_t Enter() { return Append("s", {}); }
  void WhenDurable(uint64_t entry,
                   std::function<void(const absl::Status&)> done) override {
    {
      absl::MutexLock lock(&mutex_);
      awaited_.push_back(entry);
    }
    FakeJournal::WhenDurable(entry, std::move(done));
  }
  std::vector<uint64_t> awaited() const {
    absl::MutexLock lock(&mutex_);
    return awaited_;
  }

 private:
  mutable absl::Mutex mutex_;
  std::vector<uint64_t> awaited_ ABSL_GUARDED_BY(mutex_);
};

absl::Status Full() {
  ErrorDetails details;
  details.reason = "STORE_FULL";
  return MakeError(absl::StatusCode::kResourceExhausted, "full", details);
}

// Entries: 1 is the session, 2 the intent, 3 and on one for each token.
class DurableSinkTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kIntent = 2;
  static constexpr uint64_t kFirst = 3;
  static constexpr int kParks = 64;

  DurableSinkTest() { Make({}); }
  ~DurableSinkTest() override { EXPECT_THAT(reader_->violations(), IsEmpty()); }

  void Make(DurableSinkOptions options) {
    options.journal = &journal_;
    options.park_events = kParks;
    options.wake = [this] { ++wakes_; };
    sink_ = std::make_shared<DurableSink>(options, reader_, cancel_);
  }
  void MakeStrict() {
    DurableSinkOptions options;
    options.tokens_wait = true;
    Make(options);
  }
  void MakeWithLag(int64_t most_lag) {
    DurableSinkOptions options;
    options.most_lag = most_lag;
    Make(options);
  }

  // What the scheduler does: entered, then said.
  void Start() {
    journal_.Enter();
    sink_->Started({});
  }
  void StartStored() {
    Start();
    journal_.Commit();
  }
  void Say(int tokens) {
    for (int i = 0; i < tokens; ++i) {
      journal_.Enter();
      TokenEvent event;
      event.index = said_;
      event.token_id = 100 + said_++;
      sink_->Token(event);
    }
  }
  void Finish() {
    journal_.Enter();
    sink_->Finished({});
  }
  int told() const { return static_cast<int>(reader_->tokens().size()); }

  SlowJournal journal_;
  const std::shared_ptr<RecordingSink> reader_ =
      std::make_shared<RecordingSink>();
  const std::shared_ptr<CancelToken> cancel_ = std::make_shared<CancelToken>();
  std::shared_ptr<DurableSink> sink_;
  std::atomic<int> wakes_{0};
  int said_ = 0;
};

TEST_F(DurableSinkTest, StartedWaitsForTheTurnsIntent) {
  Start();
  EXPECT_FALSE(reader_->started().has_value());
  EXPECT_THAT(journal_.awaited(), ElementsAre(kIntent));
  journal_.CommitTo(kIntent);
  EXPECT_TRUE(reader_->started().has_value());
}

TEST_F(DurableSinkTest, StartedGoesOutAtOnceWhereItsIntentIsStored) {
  journal_.Enter();
  journal_.Commit();
  sink_->Started({});
  EXPECT_TRUE(reader_->started().has_value());
  EXPECT_THAT(journal_.awaited(), IsEmpty());
}

TEST_F(DurableSinkTest, TokensGoOutBeforeTheyAreStored) {
  StartStored();
  Say(3);
  EXPECT_THAT(reader_->ids(), ElementsAre(100, 101, 102));
}

// Notes where the events lie that it is given.
class PlaceSink final : public RecordingSink {
 public:
  void Token(TokenEvent event) override {
    places.emplace_back(event.text.data(), event.top_logprobs.data());
    RecordingSink::Token(std::move(event));
  }
  std::vector<std::pair<const void*, const void*>> places;
};

TEST_F(DurableSinkTest, NoEventIsCopiedNeitherAtOnceNorHeld) {
  const auto reader = std::make_shared<PlaceSink>();
  DurableSinkOptions options;
  options.journal = &journal_;
  options.tokens_wait = true;
  options.wake = [] {};
  const auto sink = std::make_shared<DurableSink>(options, reader, cancel_);
  sink->Started({});
  std::vector<std::pair<const void*, const void*>> given;
  for (const bool stored : {true, false}) {
    journal_.Enter();
    if (stored) journal_.Commit();
    TokenEvent event;
    event.index = stored ? 0 : 1;
    event.text = "too long to lie in the string itself";
    event.top_logprobs.resize(3);
    given.emplace_back(event.text.data(), event.top_logprobs.data());
    sink->Token(std::move(event));
  }
  EXPECT_EQ(reader->places.size(), 1u);
  journal_.Commit();
  EXPECT_EQ(reader->places, given);
}

TEST_F(DurableSinkTest, StrictlyEachTokenWaitsForItsOwnEntry) {
  MakeStrict();
  StartStored();
  Say(3);
  EXPECT_EQ(told(), 0);
  journal_.CommitTo(kFirst);
  EXPECT_THAT(reader_->ids(), ElementsAre(100));
  journal_.CommitTo(kFirst + 2);
  EXPECT_THAT(reader_->ids(), ElementsAre(100, 101, 102));
}

TEST_F(DurableSinkTest, WhatIsBehindSomethingHeldStaysBehindIt) {
  Start();
  Say(2);
  sink_->Scored({ScoredToken()});
  Finish();
  EXPECT_FALSE(reader_->started().has_value());
  EXPECT_THAT(reader_->scored(), IsEmpty());
  journal_.CommitTo(kIntent);
  EXPECT_EQ(told(), 2);
  EXPECT_EQ(reader_->scored().size(), 1u);
  EXPECT_FALSE(reader_->ended());
  journal_.Commit();
  EXPECT_TRUE(reader_->finished().has_value());
}

TEST_F(DurableSinkTest, FinishedWaitsForTheTurnsEnd) {
  StartStored();
  Say(1);
  Finish();
  journal_.CommitTo(kFirst);
  EXPECT_FALSE(reader_->ended());
  journal_.CommitTo(kFirst + 1);
  EXPECT_TRUE(reader_->finished().has_value());
}

TEST_F(DurableSinkTest, AtTheMostLagTheTurnIsParkedAndMoreTokensWait) {
  MakeWithLag(4);
  StartStored();
  Say(3);
  EXPECT_LT(sink_->Unsent(), kParks);
  Say(1);
  EXPECT_EQ(told(), 4);
  EXPECT_GE(sink_->Unsent(), kParks);
  Say(2);  // of steps that were in flight
  EXPECT_EQ(told(), 4);
  journal_.CommitTo(kFirst);
  EXPECT_EQ(told(), 5);
  EXPECT_GE(sink_->Unsent(), kParks);
  journal_.CommitTo(kFirst + 2);
  EXPECT_EQ(told(), 6);
  EXPECT_LT(sink_->Unsent(), kParks);
}

TEST_F(DurableSinkTest, TheSchedulerIsWokenWhenTheStorageHasCaughtUp) {
  MakeWithLag(4);
  StartStored();
  Say(4);
  const int before = wakes_;
  journal_.Commit();
  EXPECT_GT(wakes_, before);
  EXPECT_LT(sink_->Unsent(), kParks);
}

TEST_F(DurableSinkTest, TheStorageIsHurriedAtHalfTheMostLag) {
  MakeWithLag(4);
  StartStored();
  Say(1);
  EXPECT_THAT(journal_.awaited(), ElementsAre(kIntent));
  Say(1);
  EXPECT_THAT(journal_.awaited(), ElementsAre(kIntent, kFirst));
  // What comes meanwhile is hurried when that is there.
  Say(2);
  EXPECT_THAT(journal_.awaited(), ElementsAre(kIntent, kFirst));
  journal_.CommitTo(kFirst);
  EXPECT_THAT(journal_.awaited(), ElementsAre(kIntent, kFirst, kFirst + 1));
}

TEST_F(DurableSinkTest, AStorageThatKeepsUpIsNotHurried) {
  MakeWithLag(4);
  StartStored();
  for (int i = 0; i < 20; ++i) {
    Say(1);
    journal_.Commit();
  }
  EXPECT_THAT(journal_.awaited(), ElementsAre(kIntent));
  EXPECT_EQ(told(), 20);
}

TEST_F(DurableSinkTest, UnsentCountsWhatIsHeldAndWhatTheReaderLeaves) {
  MakeStrict();
  StartStored();
  reader_->StopReading();
  EXPECT_EQ(sink_->Unsent(), 1);  // Started
  Say(3);
  EXPECT_EQ(sink_->Unsent(), 4);
  journal_.Commit();
  EXPECT_EQ(sink_->Unsent(), 4);
  reader_->Read(2);
  EXPECT_EQ(sink_->Unsent(), 2);
}

TEST_F(DurableSinkTest, FailedWaitsForNothingButWhatIsHeld) {
  StartStored();
  Say(1);
  sink_->Failed(absl::CancelledError("left"));
  EXPECT_TRUE(absl::IsCancelled(reader_->failed()));
}

TEST_F(DurableSinkTest, FailedIsToldBehindWhatIsHeld) {
  Start();
  Say(2);
  sink_->Failed(absl::CancelledError("left"));
  EXPECT_FALSE(reader_->ended());
  journal_.CommitTo(kIntent);
  EXPECT_EQ(told(), 2);
  EXPECT_TRUE(absl::IsCancelled(reader_->failed()));
}

TEST_F(DurableSinkTest, AJournalThatFailsEndsTheTurnOnce) {
  StartStored();
  Say(2);
  Finish();
  const int before = wakes_;
  journal_.Fail(Full());
  EXPECT_EQ(GetErrorDetails(reader_->failed()).reason, "STORE_FULL");
  EXPECT_EQ(cancel_->why(), CancelToken::Why::kCancelled);
  EXPECT_GT(wakes_, before);
  EXPECT_FALSE(reader_->finished().has_value());
}

TEST_F(DurableSinkTest, WhatTheTurnSaysOfAFailedJournalsCancelIsNotTold) {
  MakeStrict();
  StartStored();
  Say(2);
  journal_.Fail(Full());
  EXPECT_GE(sink_->Unsent(), kParks);  // no step for it
  Say(1);
  sink_->Failed(absl::CancelledError("cancelled"));
  EXPECT_EQ(told(), 0);
  EXPECT_TRUE(absl::IsResourceExhausted(reader_->failed()));
}

TEST_F(DurableSinkTest, AJournalThatHadFailedBeforeRefusesAtTheFirstWait) {
  journal_.Fail(Full());
  Start();
  EXPECT_TRUE(absl::IsResourceExhausted(reader_->failed()));
  EXPECT_FALSE(reader_->started().has_value());
}

TEST_F(DurableSinkTest, AJournalThatFailsBehindTheTurnsEndIsNotTold) {
  MakeWithLag(4);
  StartStored();
  Say(2);  // the storage is hurried for the first
  sink_->Failed(absl::CancelledError("left"));
  journal_.Fail(Full());
  EXPECT_TRUE(absl::IsCancelled(reader_->failed()));
}

// Sees how much of what it is told is stored.
class CheckingSink final : public RecordingSink {
 public:
  CheckingSink(const SlowJournal* journal, uint64_t first, uint64_t most_lag)
      : journal_(journal), first_(first), most_lag_(most_lag) {}
  void Token(TokenEvent event) override {
    const uint64_t entry = first_ + static_cast<uint64_t>(event.index);
    if (entry > journal_->durable_entry() + most_lag_) ++too_early_;
    RecordingSink::Token(std::move(event));
  }
  int too_early() const { return too_early_; }

 private:
  const SlowJournal* const journal_;
  const uint64_t first_;
  const uint64_t most_lag_;
  std::atomic<int> too_early_{0};
};

// One thread says tokens as fast as it may, one commits: everything comes, in
// its order, and no token too early.
void RunWithStorageThread(bool strict) {
  constexpr int kTokens = 3000;
  constexpr int64_t kLag = 7;
  SlowJournal journal;
  const auto reader =
      std::make_shared<CheckingSink>(&journal, 3, strict ? 0 : kLag);
  DurableSinkOptions options;
  options.journal = &journal;
  options.tokens_wait = strict;
  options.most_lag = kLag;
  options.wake = [] {};
  const auto sink = std::make_shared<DurableSink>(
      options, reader, std::make_shared<CancelToken>());
  std::thread storage([&] {
    while (!reader->ended()) {
      journal.CommitTo(journal.durable_entry() + 3 < journal.last_entry()
                           ? journal.durable_entry() + 3
                           : journal.last_entry());
      std::this_thread::yield();
    }
  });
  journal.Enter();
  sink->Started({});
  for (int i = 0; i < kTokens; ++i) {
    while (sink->Unsent() >= options.park_events) std::this_thread::yield();
    journal.Enter();
    TokenEvent event;
    event.index = i;
    sink->Token(event);
  }
  journal.Enter();
  sink->Finished({});
  storage.join();
  EXPECT_EQ(reader->tokens().size(), size_t{kTokens});
  EXPECT_TRUE(reader->finished().has_value());
  EXPECT_EQ(reader->too_early(), 0);
  EXPECT_THAT(reader->violations(), IsEmpty());
}

TEST(DurableSinkThreads, NothingIsLostOrTooEarlyWhileAnotherThreadCommits) {
  RunWithStorageThread(/*strict=*/false);
}

TEST(DurableSinkThreads, NorWhereEveryTokenWaits) {
  RunWithStorageThread(/*strict=*/true);
}

}  // namespace
}  // namespace txl
