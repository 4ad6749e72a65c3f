// Forked and rewound sessions.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "model/text/byte_vocabulary.h"
#include "server/session/session_store.h"
#include "tests/server/session/store_fixture.h"

namespace txl {
namespace {

std::vector<int32_t> Ids(int64_t count) {
  std::vector<int32_t> ids(static_cast<size_t>(count));
  std::iota(ids.begin(), ids.end(), 0);
  return ids;
}

class SessionBranchesTest : public StoreTest {
 protected:
  void Make(const std::string& id, int64_t tokens) {
    ASSERT_TRUE(store_->Create(SessionName::OfDefaultTenant(id), {}).ok());
    if (tokens > 0) Lease(id).Append(Ids(tokens));
  }
  int64_t id_bytes() const { return store_->counts().id_bytes; }
};

TEST_F(SessionBranchesTest, AForkHoldsTheFirstTokensAndBothGoOn) {
  MakeStore();
  Make("trunk", 5'000);
  const absl::StatusOr<SessionInfo> info = store_->Fork(
      {.session = "trunk", .new_session_id = "branch", .position = 4'500});
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_EQ(info->session_id, "branch");
  EXPECT_EQ(info->position, 4'500);
  EXPECT_EQ(info->last_turn.outcome, "FORKED");
  Lease("branch").Append({-1});
  Lease("trunk").Append({-2});
  std::vector<int32_t> branch = Ids(4'500);
  branch.push_back(-1);
  std::vector<int32_t> trunk = Ids(5'000);
  trunk.push_back(-2);
  EXPECT_EQ(TokensOf("branch"), branch);
  EXPECT_EQ(TokensOf("trunk"), trunk);
  ExpectConserved();
}

TEST_F(SessionBranchesTest, AForkWithoutAPositionHoldsEverything) {
  MakeStore();
  Make("trunk", 10);
  const absl::StatusOr<SessionInfo> info = store_->Fork({.session = "trunk"});
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_EQ(info->session_id.size(), 32u);  // 128 random bits
  EXPECT_EQ(info->position, 10);
  EXPECT_EQ(TokensOf(info->session_id), Ids(10));
}

TEST_F(SessionBranchesTest, SharedTokensAreCountedOnceUntilTheLastHolderGoes) {
  MakeStore();
  Make("trunk", 1'000'000);
  const int64_t alone = id_bytes();
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(store_
                    ->Fork({.session = "trunk",
                            .new_session_id = absl::StrCat("branch", i)})
                    .ok());
  }
  const int64_t with_branches = id_bytes();
  EXPECT_LT(with_branches - alone, 10 * 32'000);
  ASSERT_TRUE(store_->Delete("trunk").ok());
  EXPECT_GT(id_bytes(), 4'000'000);  // the branches hold them
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(
        store_->Delete(SessionName::OfDefaultTenant(absl::StrCat("branch", i)))
            .ok());
  }
  EXPECT_EQ(id_bytes(), 0);
}

TEST_F(SessionBranchesTest, AForkThatWasMadeBeforeIsTheSameFork) {
  MakeStore();
  Make("trunk", 10);
  const ForkRequest named{
      .session = "trunk", .new_session_id = "branch", .request_id = "r"};
  ASSERT_TRUE(store_->Fork(named).ok());
  EXPECT_TRUE(store_->Fork(named).ok());
  const ForkRequest unnamed{.session = "trunk", .request_id = "r"};
  const absl::StatusOr<SessionInfo> first = store_->Fork(unnamed);
  const absl::StatusOr<SessionInfo> again = store_->Fork(unnamed);
  ASSERT_TRUE(first.ok() && again.ok());
  EXPECT_EQ(first->session_id, again->session_id);
  EXPECT_EQ(Refusal(store_->Fork({.session = "trunk",
                                  .new_session_id = "branch",
                                  .request_id = "other"})),
            "ALREADY_EXISTS SESSION_EXISTS");
  EXPECT_EQ(
      Refusal(store_->Fork({.session = "trunk", .new_session_id = "branch"})),
      "ALREADY_EXISTS SESSION_EXISTS");
  EXPECT_EQ(store_->counts().idle, 3);
}

TEST_F(SessionBranchesTest, BadForksChangeNothing) {
  MakeStore();
  Make("trunk", 10);
  EXPECT_EQ(Refusal(store_->Fork({.session = "other"})),
            "NOT_FOUND SESSION_UNKNOWN");
  for (const int64_t position : {-1, 11}) {
    EXPECT_EQ(Refusal(store_->Fork({.session = "trunk", .position = position})),
              "INVALID_ARGUMENT FIELD_INVALID position");
  }
  EXPECT_EQ(
      Refusal(store_->Fork({.session = "trunk", .new_session_id = "a b"})),
      "INVALID_ARGUMENT FIELD_INVALID new_session_id");
  EXPECT_EQ(
      Refusal(store_->Fork({.session = "trunk", .ttl = absl::ZeroDuration()})),
      "INVALID_ARGUMENT FIELD_INVALID ttl");
  const SessionLease lease = Lease("trunk");
  EXPECT_EQ(Refusal(store_->Fork({.session = "trunk"})),
            "ABORTED SESSION_BUSY");
  EXPECT_EQ(store_->counts().created, 1);
}

TEST_F(SessionBranchesTest, AForkIsRefusedWithoutMemoryForItsOwnTokens) {
  SessionStoreOptions options;
  options.id_bytes = 40'000;
  options.temporary_reserve = 0;
  MakeStore(options);
  Make("trunk", 4'000);  // no full piece: nothing is shared
  EXPECT_TRUE(store_->Fork({.session = "trunk", .position = 1'000}).ok());
  EXPECT_EQ(Refusal(store_->Fork({.session = "trunk"})),
            "RESOURCE_EXHAUSTED NO_SESSION_MEMORY");
  EXPECT_EQ(store_->counts().idle, 2);
  ExpectConserved();
}

TEST_F(SessionBranchesTest, ARewoundSessionIsAsItWasAtThatPosition) {
  MakeStore();
  Make("a", 5'000);
  const absl::StatusOr<SessionInfo> info =
      store_->Rewind({.session = "a", .position = 4'100});
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_EQ(info->position, 4'100);
  EXPECT_EQ(info->last_turn.outcome, "REWOUND");
  EXPECT_EQ(TokensOf("a"), Ids(4'100));
  Lease("a").Append({7});
  std::vector<int32_t> ids = Ids(4'100);
  ids.push_back(7);
  EXPECT_EQ(TokensOf("a"), ids);
  ASSERT_TRUE(store_->Rewind({.session = "a", .position = 0}).ok());
  EXPECT_EQ(TokensOf("a"), Ids(0));
  ExpectConserved();
}

TEST_F(SessionBranchesTest, ARewindLetsTheBudgetGo) {
  MakeStore();
  Make("a", 100'000);
  Make("b", 50'000);
  ASSERT_TRUE(store_->Fork({.session = "a", .new_session_id = "c"}).ok());
  ASSERT_TRUE(store_->Delete("c").ok());
  ASSERT_TRUE(store_->Rewind({.session = "a", .position = 50'000}).ok());
  EXPECT_EQ(id_bytes() % 2, 0);
  ASSERT_TRUE(store_->Delete("b").ok());
  const int64_t one = id_bytes();
  ASSERT_TRUE(store_->Delete("a").ok());
  EXPECT_EQ(id_bytes(), 0);
  EXPECT_LT(one, 210'000);
}

TEST_F(SessionBranchesTest, ARewindTakesRowsAndLaterImagesAway) {
  MakeStore();
  Make("a", 100);
  const uint64_t key = Lease("a").key();
  StateImage image = ImageOfBytes(8);
  image.position = 50;
  ASSERT_TRUE(store_->PutImage(key, image).ok());
  ASSERT_TRUE(store_->Rewind({.session = "a", .position = 51}).ok());
  // The slot that has the rows of the old key is free.
  EXPECT_THAT(store_->TakeEndedKeys(), testing::ElementsAre(key));
  const uint64_t later = Lease("a").key();
  EXPECT_NE(later, key);
  EXPECT_EQ(store_->GetImage(later)->position, 50);
  ASSERT_TRUE(store_->Rewind({.session = "a", .position = 50}).ok());
  EXPECT_EQ(store_->GetImage(Lease("a").key()), nullptr);
  // An image that was on its way finds no session any more.
  EXPECT_EQ(Refusal(store_->PutImage(key, image)), "NOT_FOUND SESSION_UNKNOWN");
}

TEST_F(SessionBranchesTest, ARewindToWhereTheSessionIsChangesNothing) {
  MakeStore();
  Make("a", 10);
  const uint64_t key = Lease("a").key();
  ASSERT_TRUE(store_->Rewind({.session = "a", .position = 10}).ok());
  EXPECT_EQ(Lease("a").key(), key);
  EXPECT_EQ(store_->Get("a")->last_turn.outcome, "");
}

TEST_F(SessionBranchesTest, ARewindSentAgainIsFine) {
  MakeStore();
  Make("a", 10);
  const RewindRequest request{.session = "a",
                              .position = 4,
                              .expected_position = 10,
                              .request_id = "r"};
  ASSERT_TRUE(store_->Rewind(request).ok());
  EXPECT_TRUE(store_->Rewind(request).ok());
  Lease("a").Append({1});
  EXPECT_EQ(Refusal(store_->Rewind(request)), "ABORTED POSITION_MISMATCH");
}

TEST_F(SessionBranchesTest, BadRewindsChangeNothing) {
  MakeStore();
  Make("a", 10);
  EXPECT_EQ(Refusal(store_->Rewind({.session = "b", .position = 0})),
            "NOT_FOUND SESSION_UNKNOWN");
  for (const int64_t position : {-1, 11}) {
    EXPECT_EQ(Refusal(store_->Rewind({.session = "a", .position = position})),
              "INVALID_ARGUMENT FIELD_INVALID position");
  }
  EXPECT_EQ(Refusal(store_->Rewind(
                {.session = "a", .position = 1, .expected_position = 9})),
            "ABORTED POSITION_MISMATCH");
  const SessionLease lease = Lease("a");
  EXPECT_EQ(Refusal(store_->Rewind({.session = "a", .position = 1})),
            "ABORTED SESSION_BUSY");
  EXPECT_EQ(lease.position(), 10);
}

TEST_F(SessionBranchesTest, AnUndoneTurnIsNotTakenForANewOne) {
  MakeStore();
  Make("a", 3);
  {
    SessionLease lease = Lease("a");
    lease.Append({1});
    LastTurn last;
    last.request_id = "turn";
    lease.SetLastTurn(last);
  }
  ASSERT_TRUE(store_->Rewind({.session = "a", .position = 3}).ok());
  EXPECT_EQ(Refusal(Lease("a").RecordFor({.request_id = "turn"})),
            "ABORTED REPLAY_EVICTED");
}

TEST_F(SessionBranchesTest, TextGoesOnBehindTheTokensThatAreLeft) {
  const ByteVocabulary vocabulary;
  SessionStoreOptions options;
  options.vocabulary = &vocabulary;
  MakeStore(options);
  ASSERT_TRUE(store_->Create("a", {}).ok());
  Lease("a").Append({'x', 0xC3, 0xA4, 0xC3, 0xB6});  // x, a and o with dots
  const auto text_of_next = [&](int64_t position, int32_t id) {
    const absl::StatusOr<SessionInfo> fork =
        store_->Fork({.session = "a", .position = position});
    EXPECT_TRUE(fork.ok());
    return Lease(fork->session_id).CloneDetokenizer()->Add(id);
  };
  EXPECT_EQ(text_of_next(2, 0xA5), "\xC3\xA5");  // the character is completed
  EXPECT_EQ(text_of_next(3, 'y'), "y");
}

class SessionImagesTest : public StoreTest {
 protected:
  void SetUp() override {
    SessionStoreOptions options;
    options.image_bytes = 100;
    options.bytes_per_slot = 4096;
    options.memory_retry = absl::Seconds(2);
    SessionStore& store = MakeStore(options);
    for (const char* id : {"a", "b"}) {
      ASSERT_TRUE(
          store.Create(SessionName::OfDefaultTenant(id), absl::Minutes(1))
              .ok());
    }
    a_ = Lease("a").key();
    b_ = Lease("b").key();
  }

  int64_t image_bytes() const { return store_->counts().image_bytes; }

  uint64_t a_ = 0;
  uint64_t b_ = 0;
};

TEST_F(SessionImagesTest, AnImageStaysUntilItIsDropped) {
  EXPECT_EQ(store_->GetImage(a_), nullptr);
  ASSERT_TRUE(store_->PutImage(a_, ImageOfBytes(40, 7)).ok());
  for (int i = 0; i < 2; ++i) {
    const std::shared_ptr<const StateImage> image = store_->GetImage(a_);
    ASSERT_NE(image, nullptr);
    EXPECT_THAT(image->data, ::testing::SizeIs(40));
    EXPECT_THAT(image->data, ::testing::Each(7));
  }
  EXPECT_EQ(store_->GetImage(b_), nullptr);
  store_->DropImage(a_);
  EXPECT_EQ(store_->GetImage(a_), nullptr);
  EXPECT_EQ(image_bytes(), 0);
}

TEST_F(SessionImagesTest, TheBudgetHoldsOverAllSessionsToTheByte) {
  ASSERT_TRUE(store_->PutImage(a_, ImageOfBytes(60)).ok());
  const absl::Status status = store_->PutImage(b_, ImageOfBytes(41));
  EXPECT_EQ(Refusal(status), "RESOURCE_EXHAUSTED NO_SESSION_MEMORY");
  EXPECT_EQ(GetErrorDetails(status).retry, absl::Seconds(2));
  EXPECT_EQ(store_->GetImage(b_), nullptr);
  EXPECT_EQ(image_bytes(), 60);
  EXPECT_TRUE(store_->PutImage(b_, ImageOfBytes(40)).ok());
  EXPECT_EQ(image_bytes(), 100);
}

TEST_F(SessionImagesTest, ANewImageReplacesTheOldOneInTheBudgetToo) {
  ASSERT_TRUE(store_->PutImage(a_, ImageOfBytes(90, 1)).ok());
  ASSERT_TRUE(store_->PutImage(a_, ImageOfBytes(100, 2)).ok());
  EXPECT_EQ(image_bytes(), 100);
  EXPECT_EQ(store_->GetImage(a_)->data.front(), 2);
  ASSERT_TRUE(store_->PutImage(a_, ImageOfBytes(5, 3)).ok());
  EXPECT_EQ(image_bytes(), 5);
}

TEST_F(SessionImagesTest, ARefusedImageLeavesTheOldOne) {
  ASSERT_TRUE(store_->PutImage(a_, ImageOfBytes(30, 1)).ok());
  EXPECT_FALSE(store_->PutImage(a_, ImageOfBytes(101, 2)).ok());
  EXPECT_EQ(store_->GetImage(a_)->data.front(), 1);
  EXPECT_EQ(image_bytes(), 30);
}

TEST_F(SessionImagesTest, TheEndOfASessionFreesItsImage) {
  ASSERT_TRUE(store_->PutImage(a_, ImageOfBytes(40)).ok());
  ASSERT_TRUE(store_->PutImage(b_, ImageOfBytes(50)).ok());
  ASSERT_TRUE(store_->Delete("a").ok());
  EXPECT_EQ(image_bytes(), 50);
  EXPECT_EQ(store_->GetImage(a_), nullptr);
  clock_.Advance(absl::Minutes(1));
  store_->ExpireNow();
  EXPECT_EQ(image_bytes(), 0);
}

TEST_F(SessionImagesTest, AnImageThatSomebodyReadsOutlivesItsSession) {
  ASSERT_TRUE(store_->PutImage(a_, ImageOfBytes(40, 9)).ok());
  const std::shared_ptr<const StateImage> image = store_->GetImage(a_);
  ASSERT_TRUE(store_->Delete("a").ok());
  EXPECT_THAT(image->data, ::testing::Each(9));
}

TEST_F(SessionImagesTest, ATurnMayKeepAnImageToGoBackTo) {
  absl::StatusOr<SessionLease> lease = store_->AcquireTemporary();
  ASSERT_TRUE(lease.ok());
  const uint64_t key = lease->key();
  ASSERT_TRUE(store_->PutImage(key, ImageOfBytes(40)).ok());
  EXPECT_NE(store_->GetImage(key), nullptr);
  lease->Release();
  EXPECT_EQ(store_->GetImage(key), nullptr);
  EXPECT_EQ(image_bytes(), 0);
}

TEST_F(SessionImagesTest, ADeletedSessionKeepsItsImageUntilItsTurnEnds) {
  SessionLease lease = Lease("a");
  ASSERT_TRUE(store_->Delete("a").ok());
  EXPECT_TRUE(store_->PutImage(a_, ImageOfBytes(40)).ok());
  EXPECT_EQ(image_bytes(), 40);
  lease.Release();
  EXPECT_EQ(image_bytes(), 0);
}

TEST_F(SessionImagesTest, AnEndedSessionTakesNoImage) {
  ASSERT_TRUE(store_->Delete("a").ok());
  EXPECT_EQ(Refusal(store_->PutImage(a_, ImageOfBytes(1))),
            "NOT_FOUND SESSION_UNKNOWN");
  EXPECT_EQ(image_bytes(), 0);
  store_->DropImage(a_);
  EXPECT_EQ(image_bytes(), 0);
}

TEST_F(SessionImagesTest, MemoryBytesAreTheImageOrTheSlotAndTheIds) {
  EXPECT_EQ(store_->Get("a")->memory_bytes, 0);
  { Lease("a").Append({1}); }
  const int64_t ids = TokenSequence::BytesFor(1);
  EXPECT_EQ(store_->Get("a")->memory_bytes, ids);  // nothing fed yet
  { Lease("a").Append({2}); }
  EXPECT_EQ(store_->Get("a")->memory_bytes, 4096 + ids);
  ASSERT_TRUE(store_->PutImage(a_, ImageOfBytes(33)).ok());
  EXPECT_EQ(store_->Get("a")->memory_bytes, 33 + ids);
}

}  // namespace

}  // namespace txl
