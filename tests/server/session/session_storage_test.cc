// Sessions that survive: what the journal is told, and what comes back of it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "model/text/byte_vocabulary.h"
#include "tests/fakes/fake_images.h"
#include "tests/fakes/fake_journal.h"
#include "tests/server/session/store_fixture.h"

namespace txl {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class SessionStorageTest : public StoreTest {
 protected:
  SessionStorageTest() {
    options_.vocabulary = &vocabulary_;
    Start(std::make_unique<FakeJournal>());
  }

  void Start(std::unique_ptr<FakeJournal> journal) {
    // Leases of the process before may still be held.
    earlier_.emplace_back(std::move(journal_), std::move(store_));
    journal_ = std::move(journal);
    options_.journal = journal_.get();
    options_.images = &images_;
    MakeStore(options_);
  }
  // The process is killed, and started again.
  void Crash() { Start(journal_->Crash()); }

  void Prepare(const std::string& id) {
    if (!store_->MayBeStored(SessionName::OfDefaultTenant(id))) return;
    absl::Status prepared = absl::UnknownError("not called");
    store_->Prepare(SessionName::OfDefaultTenant(id),
                    [&](const absl::Status& status) { prepared = status; });
    EXPECT_TRUE(prepared.ok() || absl::IsNotFound(prepared)) << prepared;
  }
  SessionLease LeaseOf(const std::string& id) {
    Prepare(id);
    return Lease(id);
  }

  TurnIntent Intent(const SessionLease& lease, int64_t prompt) {
    return {.identity = {"turn", "digest"},
            .seed = 42,
            .start_position = lease.position(),
            .prompt_tokens = prompt};
  }
  static TokenEvent Event(int32_t index, int32_t id) {
    TokenEvent event;
    event.index = index;
    event.token_id = id;
    event.text = absl::StrCat("<", id, ">");
    event.logprob = -0.5f * static_cast<float>(id);
    return event;
  }

  const ByteVocabulary vocabulary_;
  FakeImages images_;
  SessionStoreOptions options_;
  std::unique_ptr<FakeJournal> journal_;
  std::vector<
      std::pair<std::unique_ptr<FakeJournal>, std::unique_ptr<SessionStore>>>
      earlier_;
};

TEST_F(SessionStorageTest, ASessionComesBackAsItWas) {
  ASSERT_TRUE(store_->Create("a", absl::Minutes(5)).ok());
  {
    SessionLease lease = LeaseOf("a");
    lease.Begin(Intent(lease, 2));
    const TokenEvent said = Event(0, 7);
    lease.Append({1, 2, 7}, {said});
    LastTurn last;
    last.request_id = "turn";
    last.outcome = "MAX_TOKENS";
    last.prompt_tokens = 2;
    last.generated_tokens = 1;
    lease.SetLastTurn(last);
  }
  const SessionInfo before = *store_->Get("a");
  Crash();
  EXPECT_EQ(Refusal(store_->Get("a")), "NOT_FOUND SESSION_UNKNOWN");
  Prepare("a");
  const SessionInfo after = *store_->Get("a");
  EXPECT_EQ(TokensOf("a"), (std::vector<int32_t>{1, 2, 7}));
  EXPECT_EQ(after.ttl, absl::Minutes(5));
  EXPECT_EQ(after.create_time, before.create_time);
  EXPECT_EQ(after.expire_time, before.expire_time);
  EXPECT_EQ(after.last_turn.outcome, "MAX_TOKENS");
  EXPECT_EQ(after.durable_position, 3);
  ExpectConserved();
}

TEST_F(SessionStorageTest, WhatIsNotOnTheDiskIsNotCalledDurable) {
  Start(std::make_unique<FakeJournal>(/*commits=*/false));
  ASSERT_TRUE(store_->Create("a", {}).ok());
  journal_->Commit();
  SessionLease lease = LeaseOf("a");
  lease.Append({1, 2});
  EXPECT_EQ(store_->Get("a")->position, 2);
  EXPECT_EQ(store_->Get("a")->durable_position, 0);
  journal_->Commit();
  EXPECT_EQ(store_->Get("a")->durable_position, 2);
}

TEST_F(SessionStorageTest, ABrokenTurnComesBackWithWhatItSaid) {
  ASSERT_TRUE(store_->Create("a", {}).ok());
  {
    SessionLease lease = LeaseOf("a");
    lease.Begin(Intent(lease, 2));
    TokenEvent said = Event(0, 7);
    lease.Append({1, 2, 7}, {said});
    said = Event(1, 8);
    lease.Append({8}, {said});
    Crash();
  }
  SessionLease lease = LeaseOf("a");
  EXPECT_EQ(lease.position(), 4);
  EXPECT_EQ(store_->Get("a")->last_turn.outcome, "INTERRUPTED");
  EXPECT_EQ(store_->Get("a")->last_turn.generated_tokens, 2);
  const auto record = lease.RecordFor({"turn", "digest"});
  ASSERT_TRUE(record.ok() && *record != nullptr);
  EXPECT_EQ((*record)->seed, 42u);
  EXPECT_EQ((*record)->start_position, 0);
  EXPECT_EQ((*record)->prompt_tokens, 2);
  EXPECT_FALSE((*record)->finished.has_value());
  ASSERT_EQ((*record)->tokens.size(), 2u);
  EXPECT_EQ((*record)->tokens[1].text, "<8>");
  EXPECT_EQ((*record)->tokens[1].logprob, -4.f);
  // And so it is from now on.
  Crash();
  EXPECT_EQ(LeaseOf("a").position(), 4);
  EXPECT_EQ(store_->Get("a")->last_turn.outcome, "INTERRUPTED");
}

TEST_F(SessionStorageTest, ATurnThatBrokeTwiceHasTheTokensOfBothRuns) {
  ASSERT_TRUE(store_->Create("a", {}).ok());
  SessionLease lease = LeaseOf("a");
  TurnIntent intent = Intent(lease, 1);
  lease.Begin(intent);
  TokenEvent said = Event(0, 7);
  lease.Append({1, 7}, {said});
  Crash();
  lease = LeaseOf("a");
  lease.Begin(intent);  // of the whole turn
  said = Event(1, 8);
  lease.Append({8}, {said});
  Crash();
  lease = LeaseOf("a");
  const auto record = lease.RecordFor({"turn", "digest"});
  ASSERT_TRUE(record.ok() && *record != nullptr);
  EXPECT_EQ((*record)->tokens.size(), 2u);
  EXPECT_EQ((*record)->prompt_tokens, 1);
  EXPECT_EQ(store_->Get("a")->last_turn.generated_tokens, 2);
}

TEST_F(SessionStorageTest, ATurnThatHadSaidNothingKeepsItsSeed) {
  ASSERT_TRUE(store_->Create("a", {}).ok());
  SessionLease lease = LeaseOf("a");
  lease.Begin(Intent(lease, 2));
  EXPECT_EQ(lease.IntentOf({"turn", "digest"})->seed, 42u);
  Crash();
  lease = LeaseOf("a");
  EXPECT_EQ(lease.position(), 0);
  EXPECT_EQ(lease.IntentOf({"turn", "digest"})->seed, 42u);
  EXPECT_FALSE(lease.IntentOf({"turn", "another"}).has_value());
  EXPECT_FALSE(lease.IntentOf({"", ""}).has_value());
  EXPECT_EQ(store_->Get("a")->last_turn.outcome, "");
}

TEST_F(SessionStorageTest, WhatAnAppendFedSurvivesWithItsEndOnly) {
  Start(std::make_unique<FakeJournal>(/*commits=*/false));
  ASSERT_TRUE(store_->Create("a", {}).ok());
  SessionLease lease = LeaseOf("a");
  lease.AppendWithEnd({1, 2, 3});
  journal_->Commit();
  EXPECT_THAT(journal_->sessions().at("a").ids, IsEmpty());
  lease.SetLastTurn(LastTurn());
  EXPECT_THAT(journal_->sessions().at("a").ids, ElementsAre(1, 2, 3));
}

TEST_F(SessionStorageTest, TextGoesOnInTheMiddleOfACharacter) {
  ASSERT_TRUE(store_->Create("a", {}).ok());
  SessionLease lease = LeaseOf("a");
  TurnIntent intent = Intent(lease, 1);
  lease.Begin(intent);
  TokenEvent said = Event(0, 0xC3);
  lease.Append({'x', 0xC3}, {said});
  Crash();
  lease = LeaseOf("a");
  EXPECT_EQ(lease.CloneDetokenizer()->Add(0xA4), "\xC3\xA4");
  // Before the turn there was nothing.
  const auto record = *lease.RecordFor({"turn", "digest"});
  EXPECT_EQ(record->detokenizer->Clone()->Add('y'), "y");
}

TEST_F(SessionStorageTest, ForksRewindsAndDeletesSurvive) {
  ASSERT_TRUE(store_->Create("a", {}).ok());
  LeaseOf("a").Append({1, 2, 3, 4});
  ASSERT_TRUE(
      store_->Fork({.session = "a", .new_session_id = "b", .position = 3})
          .ok());
  ASSERT_TRUE(store_->Rewind({.session = "a", .position = 1}).ok());
  ASSERT_TRUE(store_->Create("gone", {}).ok());
  ASSERT_TRUE(store_->Delete("gone").ok());
  Crash();
  for (const char* id : {"a", "b", "gone"}) Prepare(id);
  EXPECT_THAT(TokensOf("a"), ElementsAre(1));
  EXPECT_THAT(TokensOf("b"), ElementsAre(1, 2, 3));
  EXPECT_EQ(Refusal(store_->Get("gone")), "NOT_FOUND SESSION_UNKNOWN");
}

TEST_F(SessionStorageTest, ADeletedSessionsTurnTellsTheJournalNothing) {
  ASSERT_TRUE(store_->Create("a", {}).ok());
  SessionLease old = LeaseOf("a");
  ASSERT_TRUE(store_->Delete("a").ok());
  ASSERT_TRUE(store_->Create("a", {}).ok());
  old.Append({1});
  old.SetLastTurn(LastTurn());
  old.Release();
  EXPECT_THAT(journal_->sessions().at("a").ids, IsEmpty());
}

TEST_F(SessionStorageTest, WhatExpiredWhileTheServerWasOffIsExpired) {
  ASSERT_TRUE(store_->Create("a", absl::Minutes(1)).ok());
  Crash();
  clock_.Advance(absl::Minutes(1));
  Prepare("a");
  EXPECT_EQ(Refusal(store_->Get("a")), "NOT_FOUND SESSION_EXPIRED");
  EXPECT_THAT(journal_->sessions(), IsEmpty());
}

TEST_F(SessionStorageTest, StoredSessionsThatNobodyAsksForExpireToo) {
  ASSERT_TRUE(store_->Create("a", absl::Minutes(1)).ok());
  ASSERT_TRUE(store_->Create("b", absl::Minutes(9)).ok());
  Crash();
  clock_.Advance(absl::Minutes(1));
  store_->TidyStored();
  EXPECT_EQ(journal_->sessions().size(), 1u);
  EXPECT_EQ(Refusal(store_->Get("a")), "NOT_FOUND SESSION_EXPIRED");
}

TEST_F(SessionStorageTest, IdleSessionsLeaveMemoryUnlessASlotHasThem) {
  for (const char* id : {"a", "b"}) {
    ASSERT_TRUE(store_->Create(SessionName::OfDefaultTenant(id), {}).ok());
    LeaseOf(id).Append({1, 2});
  }
  store_->SetInSlot(LeaseOf("b").key(), true);
  clock_.Advance(options_.store_away_after);
  store_->TidyStored();
  EXPECT_EQ(store_->counts().idle, 1);
  EXPECT_EQ(store_->counts().stored_away, 1);
  ExpectConserved();
  EXPECT_THAT(LeaseOf("a").token_ids().Last(9), ElementsAre(1, 2));
  EXPECT_EQ(store_->counts().loaded, 1);
  ExpectConserved();
  store_->SetInSlot(LeaseOf("b").key(), false);
  clock_.Advance(options_.store_away_after);
  store_->TidyStored();
  EXPECT_EQ(store_->counts().idle, 0);
}

TEST_F(SessionStorageTest, NothingLeavesMemoryBeforeItIsOnTheDisk) {
  Start(std::make_unique<FakeJournal>(/*commits=*/false));
  ASSERT_TRUE(store_->Create("a", {}).ok());
  clock_.Advance(options_.store_away_after);
  store_->TidyStored();
  EXPECT_EQ(store_->counts().idle, 1);
  journal_->Commit();
  store_->TidyStored();
  EXPECT_EQ(store_->counts().idle, 0);
}

TEST_F(SessionStorageTest, AnyNumberOfSessionsFitsIntoTheBudget) {
  options_.id_bytes = 100'000;
  options_.max_sessions = 20;
  Start(std::make_unique<FakeJournal>());
  for (int i = 0; i < 200; ++i) {
    const std::string id = absl::StrCat("s", i);
    ASSERT_TRUE(store_->Create(SessionName::OfDefaultTenant(id), {}).ok()) << i;
    LeaseOf(id).Append(std::vector<int32_t>(500, i));
    clock_.Advance(options_.empty_grace);
  }
  EXPECT_LE(store_->counts().id_bytes, 100'000);
  for (int i = 0; i < 200; i += 7) {
    clock_.Advance(options_.empty_grace);
    EXPECT_EQ(LeaseOf(absl::StrCat("s", i)).token_ids().Last(1),
              std::vector<int32_t>{i});
  }
  EXPECT_EQ(journal_->sessions().size(), 200u);
}

TEST_F(SessionStorageTest, ListsWhatIsStoredWithWhatIsInMemory) {
  for (const char* id : {"a", "b", "c"}) {
    ASSERT_TRUE(store_->Create(SessionName::OfDefaultTenant(id), {}).ok());
    LeaseOf(id).Append({1});
  }
  Crash();
  LeaseOf("b").Append({2});
  std::vector<std::string> listed;
  std::string next;
  do {
    store_->ListStored(
        kDefaultTenant, 2, next, [&](const absl::StatusOr<SessionPage>& page) {
          ASSERT_TRUE(page.ok());
          for (const SessionInfo& info : page->sessions) {
            listed.push_back(absl::StrCat(info.session_id, info.position));
          }
          next = page->next_page_token;
        });
  } while (!next.empty());
  EXPECT_THAT(listed, ElementsAre("a1", "b2", "c1"));
}

TEST_F(SessionStorageTest, AnImageComesBackWithTheIdsItIsOf) {
  ASSERT_TRUE(store_->Create("a", {}).ok());
  LeaseOf("a").Append({1, 2, 3, 4});
  StateImage image = ImageOfBytes(8);
  image.position = 3;
  ASSERT_TRUE(store_->PutImage(LeaseOf("a").key(), image).ok());
  Crash();
  EXPECT_EQ(store_->GetImage(LeaseOf("a").key())->position, 3);
  // Of another text it is worth nothing.
  const auto kept = images_.images;
  ASSERT_TRUE(store_->Rewind({.session = "a", .position = 2}).ok());
  EXPECT_THAT(images_.images, IsEmpty());
  LeaseOf("a").Append({9, 9});
  Crash();
  images_.images = kept;  // by a server that comes late
  EXPECT_EQ(store_->GetImage(LeaseOf("a").key()), nullptr);
  EXPECT_THAT(images_.images, IsEmpty());
}

TEST_F(SessionStorageTest, ImagesBeyondTheBudgetMoveOutWithTheirSessions) {
  options_.image_bytes = 20;
  Start(std::make_unique<FakeJournal>());
  for (int i = 0; i < 10; ++i) {
    const std::string id = absl::StrCat("s", i);
    ASSERT_TRUE(store_->Create(SessionName::OfDefaultTenant(id), {}).ok());
    LeaseOf(id).Append({1, i});
    StateImage image = ImageOfBytes(8);
    image.position = 1;
    clock_.Advance(options_.empty_grace);
    ASSERT_TRUE(store_->PutImage(LeaseOf(id).key(), image).ok()) << i;
  }
  EXPECT_LE(store_->counts().image_bytes, 20);
  EXPECT_EQ(store_->GetImage(LeaseOf("s0").key())->position, 1);
}

TEST_F(SessionStorageTest, ASessionMayMoveOutToMakeRoomForItsOwnImage) {
  options_.image_bytes = 10;
  Start(std::make_unique<FakeJournal>());
  const auto put = [&](const char* id, size_t bytes) {
    StateImage image = ImageOfBytes(bytes);
    image.position = 1;
    const uint64_t key = LeaseOf(id).key();
    clock_.Advance(options_.empty_grace);
    EXPECT_TRUE(store_->PutImage(key, image).ok()) << id;
  };
  for (const char* id : {"a", "stays"}) {
    ASSERT_TRUE(store_->Create(id, {}).ok());
    LeaseOf(id).Append({1, 2});
    put(id, 4);
  }
  store_->SetInSlot(LeaseOf("stays").key(), true);
  put("a", 7);
  EXPECT_EQ(store_->counts().stored_away, 1);
  EXPECT_EQ(store_->counts().image_bytes, 4);
  EXPECT_EQ(images_.images.at("a").image->Bytes(), 7);
}

TEST_F(SessionStorageTest, SaysWhichStatesAreWorthAnImage) {
  ASSERT_TRUE(store_->Create("a", {}).ok());
  LeaseOf("a").Append(std::vector<int32_t>(11, 1));
  EXPECT_THAT(store_->ImagesDue(10), IsEmpty());  // in no slot
  const uint64_t key = LeaseOf("a").key();
  store_->SetInSlot(key, true);
  EXPECT_THAT(store_->ImagesDue(11), IsEmpty());
  EXPECT_THAT(store_->ImagesDue(10), ElementsAre(key));
  StateImage image = ImageOfBytes(8);
  image.position = 10;
  ASSERT_TRUE(store_->PutImage(key, image).ok());
  EXPECT_THAT(store_->ImagesDue(1), IsEmpty());
}

TEST_F(SessionStorageTest, TemporarySessionsAreNotTold) {
  {
    absl::StatusOr<SessionLease> lease = store_->AcquireTemporary();
    lease->Begin(Intent(*lease, 1));
    lease->Append({1});
    lease->SetLastTurn(LastTurn());
  }
  EXPECT_EQ(journal_->last_entry(), 0u);
}

}  // namespace
}  // namespace txl
