// What the journal is told of sessions.

#include "server/session/session_entries.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/fakes/fake_clock.h"
#include "tests/fakes/fake_images.h"

namespace txl {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Writes down what it is told. Nothing is read of it.
class RecordingJournal final : public SharedJournal {
 public:
  std::vector<std::string> told;
  uint64_t durable = 0;
  std::function<void()> expired;  // of the last Expire

  uint64_t Create(const StoredHead& head, const TokenSequence& ids) override {
    return Enter("create ", head.session_id, " ", ids.size());
  }
  uint64_t Fork(const std::string& parent, int64_t position,
                const StoredHead& child) override {
    return Enter("fork ", parent, " ", position, " ", child.session_id);
  }
  uint64_t Begin(const std::string& id, TurnIntent intent,
                 absl::Time) override {
    return Enter("begin ", id, " ", intent.seed);
  }
  uint64_t Append(const std::string& id, JournalTokens tokens) override {
    return Enter("append ", id, " ", tokens.from, "+", tokens.ids.size(), " ",
                 tokens.events.size());
  }
  uint64_t End(const std::string& id, JournalEnd end) override {
    return Enter("end ", id, " ", end.last_turn.outcome, " ", end.tokens.from,
                 "+", end.tokens.ids.size());
  }
  uint64_t Rewind(const std::string& id, int64_t position,
                  const StoredHead& head) override {
    return Enter("rewind ", id, " ", position, " ", head.last_turn.outcome);
  }
  uint64_t Remove(const std::string& id) override {
    return Enter("remove ", id);
  }
  uint64_t Expire(const std::string& id, absl::Time,
                  std::function<void()> removed) override {
    expired = std::move(removed);
    return Enter("expire ", id);
  }
  void Hold(const std::string& id, std::shared_ptr<SessionClaim>) override {
    told.push_back(absl::StrCat("hold ", id));
  }
  void Drop(const std::string&, const std::shared_ptr<SessionClaim>&) override {
  }
  void Release(const std::string&) override {}
  void Refresh(const std::string&, std::shared_ptr<SessionClaim>,
               Done) override {}
  void Acquire(const std::string&, const TurnIdentity&,
               std::shared_ptr<SessionClaim>, Done) override {}
  absl::Status TakeRefusal(const std::string&) override {
    return absl::OkStatus();
  }
  void OnMoved(
      std::function<void(const std::string&,
                         const std::shared_ptr<SessionClaim>&)>) override {}
  absl::Duration Silent() const override { return absl::ZeroDuration(); }
  uint64_t last_entry() const override { return entries_; }
  uint64_t durable_entry() const override { return durable; }
  void WhenDurable(uint64_t,
                   std::function<void(const absl::Status&)>) override {}
  void Load(const std::string&,
            std::function<void(absl::StatusOr<StoredSession>)>) override {}
  void List(
      const std::string&, int64_t,
      std::function<void(absl::StatusOr<std::vector<StoredInfo>>)>) override {}
  void ListExpired(
      absl::Time, int64_t,
      std::function<void(absl::StatusOr<std::vector<StoredPosition>>)>)
      override {}
  void Positions(const std::string&, std::function<void(const StoredPosition&)>,
                 std::function<void(const absl::Status&)>) override {}
  JournalStatus status() const override { return {}; }
  void Drain(absl::Duration) override {}

 private:
  template <typename... Words>
  uint64_t Enter(const Words&... words) {
    told.push_back(absl::StrCat(words...));
    return ++entries_;
  }

  uint64_t entries_ = 0;
};

class SessionEntriesTest : public ::testing::Test {
 protected:
  static SessionRecord& Named(SessionRecord& record, const char* name) {
    record.name = name;
    record.token_ids.Append({1, 2, 3});
    return record;
  }

  FakeClock clock_;
  RecordingJournal journal_;
  FakeImages images_;
  SessionEntries own_{{&journal_, nullptr, &images_}, &clock_};
  SessionEntries shared_{{&journal_, &journal_, &images_}, &clock_};
  SessionRecord record_;
};

TEST_F(SessionEntriesTest, EveryChangeOfAJournaledSessionIsEnteredInOrder) {
  SessionRecord& a = Named(record_, "a");
  own_.Create(a);
  a.intent = TurnIntent{{}, 42};
  own_.Begin(a);
  const std::vector<TokenEvent> said(1);
  own_.Append(a, {3, {4, 5}, {}}, said);
  a.last_turn.outcome = "DONE";
  own_.End(a, nullptr);
  a.last_turn.outcome = "REWOUND";
  own_.Rewind(a);
  own_.Remove("a");
  EXPECT_THAT(journal_.told,
              ElementsAre("create a 3", "begin a 42", "append a 3+2 1",
                          "end a DONE 0+0", "rewind a 3 REWOUND", "remove a"));
}

TEST_F(SessionEntriesTest, OfAnotherSessionNothingIs) {
  SessionRecord& a = Named(record_, "a");
  a.intent = TurnIntent();
  own_.Begin(a);
  own_.Append(a, {3, {4}, {}}, {});
  own_.End(a, nullptr);
  own_.Rewind(a);
  SessionRecord child;
  own_.Fork(a, Named(child, "b"));
  EXPECT_THAT(journal_.told, IsEmpty());
  EXPECT_FALSE(child.journaled);
}

TEST_F(SessionEntriesTest, WithoutAJournalNoSessionIsJournaled) {
  SessionEntries none{{}, &clock_};
  none.Create(Named(record_, "a"));
  EXPECT_FALSE(record_.journaled);
}

TEST_F(SessionEntriesTest, TheEndTakesTheTokensThatWaitForIt) {
  SessionRecord& a = Named(record_, "a");
  own_.Create(a);
  a.tokens_of_end = {1, {2, 3}, {}};
  own_.End(a, nullptr);
  own_.End(a, nullptr);
  EXPECT_THAT(journal_.told,
              ElementsAre("create a 3", "end a  1+2", "end a  0+0"));
}

TEST_F(SessionEntriesTest, ARecordKnowsWhatOfItIsOnStableStorage) {
  SessionRecord& a = Named(record_, "a");
  own_.Create(a);
  a.token_ids.Append({4});
  own_.Append(a, {3, {4}, {}}, {});
  EXPECT_EQ(a.durable.At(0), 0);
  EXPECT_EQ(a.durable.At(1), 3);
  EXPECT_EQ(a.durable.At(2), 4);
  EXPECT_FALSE(a.durable.Settled(1));
  EXPECT_TRUE(a.durable.Settled(2));
}

TEST_F(SessionEntriesTest, AForkIsMadeFromItsParentOnOneServerOnly) {
  SessionRecord& a = Named(record_, "a");
  own_.Create(a);
  SessionRecord b;
  own_.Fork(a, Named(b, "b"));
  SessionRecord c;
  shared_.Fork(a, Named(c, "c"));
  EXPECT_THAT(journal_.told,
              ElementsAre("create a 3", "fork a 3 b", "hold c", "create c 3"));
  EXPECT_TRUE(b.journaled);
  EXPECT_EQ(b.claim, nullptr);
  EXPECT_TRUE(c.journaled);
  EXPECT_NE(c.claim, nullptr);
}

TEST_F(SessionEntriesTest, WhatEndsTakesItsImageAlong) {
  images_.images["a"] = images_.images["b"] = {};
  EXPECT_EQ(own_.Remove("a"), 1u);
  EXPECT_EQ(own_.Expire("b"), 2u);
  EXPECT_THAT(journal_.told, ElementsAre("remove a", "remove b"));
  EXPECT_THAT(images_.images, IsEmpty());
}

TEST_F(SessionEntriesTest, WhatExpiredKeepsItsImageUntilEveryServerAgrees) {
  images_.images["a"] = {};
  shared_.Expire("a");
  EXPECT_THAT(journal_.told, ElementsAre("expire a"));
  EXPECT_EQ(images_.images.count("a"), 1u);  // another server may use it
  journal_.expired();
  EXPECT_THAT(images_.images, IsEmpty());
}

}  // namespace
}  // namespace txl
