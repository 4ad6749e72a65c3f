// Sessions that leave the store as a whole and come into one.
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/text/byte_vocabulary.h"
#include "server/base/error.h"
#include "server/session/session_import.h"
#include "server/session/session_store.h"
#include "tests/fakes/fake_clock.h"

namespace txl {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class SessionTransfer : public ::testing::Test {
 protected:
  static SessionStoreOptions Options() {
    static const ByteVocabulary vocabulary;
    SessionStoreOptions options;
    options.vocabulary = &vocabulary;
    options.image_bytes = 100;
    return options;
  }

  static ImportedSession Session(const std::vector<int32_t>& ids) {
    ImportedSession session;
    session.head.ttl = absl::Minutes(3);
    session.token_ids.Append(ids);
    return session;
  }

  static StateImage Image(int64_t position, int64_t bytes) {
    StateImage image;
    image.position = position;
    image.data.assign(bytes, 1);
    return image;
  }

  std::string Reason(const absl::Status& status) {
    return GetErrorDetails(status).reason;
  }

  FakeClock clock_;
  SessionStore store_{Options(), &clock_};
};

TEST_F(SessionTransfer, ASnapshotIsTheSessionAtOneMoment) {
  ASSERT_TRUE(store_.Create("s", absl::Minutes(5)).ok());
  auto lease = store_.Acquire("s");
  ASSERT_TRUE(lease->Reserve(3).ok());
  lease->Append({'a', 'b', 'c'});
  auto detokenizer = lease->CloneDetokenizer();
  detokenizer->Add(0xc3);  // half a character
  const std::string state = detokenizer->State();
  lease->SetDetokenizer(std::move(detokenizer));
  LastTurn last = {.request_id = "r", .outcome = "MAX_TOKENS"};
  lease->SetLastTurn(last);
  const uint64_t key = lease->key();
  lease->Release();
  ASSERT_TRUE(store_.PutImage(key, Image(2, 10)).ok());
  const auto snapshot = store_.Snapshot("s");
  ASSERT_TRUE(snapshot.ok());
  EXPECT_EQ(snapshot->head.session_id, "s");
  EXPECT_EQ(snapshot->head.ttl, absl::Minutes(5));
  EXPECT_EQ(snapshot->head.detokenizer, state);
  EXPECT_EQ(snapshot->head.last_turn.request_id, "r");
  EXPECT_EQ(snapshot->state->position, 2);
  lease = store_.Acquire("s");
  ASSERT_TRUE(lease->Reserve(1).ok());
  lease->Append({'d'});
  lease->Release();
  EXPECT_THAT(snapshot->token_ids.Copy(), ElementsAre('a', 'b', 'c'));
}

TEST_F(SessionTransfer, OnlyAnIdleSessionHasASnapshot) {
  EXPECT_EQ(Reason(store_.Snapshot("none").status()), "SESSION_UNKNOWN");
  ASSERT_TRUE(store_.Create("s", std::nullopt).ok());
  const auto lease = store_.Acquire("s");
  EXPECT_EQ(Reason(store_.Snapshot("s").status()), "SESSION_BUSY");
}

TEST_F(SessionTransfer, AnImportIsASessionLikeAnyOther) {
  ImportedSession session = Session({'a', 'b', 'c'});
  session.head.last_turn.outcome = "STOP_TEXT";
  session.head.last_turn.request_id = "r";
  session.state = Image(2, 10);
  const auto info = store_.Import("s", std::nullopt, std::move(session));
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_EQ(info->position, 3);
  EXPECT_EQ(info->ttl, absl::Minutes(3));
  EXPECT_EQ(info->last_turn.outcome, "STOP_TEXT");
  EXPECT_EQ(store_.counts().image_bytes, 10);
  EXPECT_EQ(store_.counts().idle, 1);
  EXPECT_THAT(store_.GetTokens("s", 0, 9)->token_ids,
              ElementsAre('a', 'b', 'c'));
  EXPECT_TRUE(store_.Acquire("s").ok());
  ASSERT_TRUE(store_.Delete("s").ok());
  EXPECT_EQ(store_.counts().image_bytes, 0);
}

TEST_F(SessionTransfer, IdsAreCountedWhileTheImportLives) {
  const int64_t before = store_.counts().id_bytes;
  const std::vector<int32_t> ids(10'000, 'a');
  ASSERT_TRUE(store_.Import("s", std::nullopt, Session(ids)).ok());
  EXPECT_GE(store_.counts().id_bytes - before, TokenSequence::BytesFor(10'000));
  ASSERT_TRUE(store_.Delete("s").ok());
  EXPECT_EQ(store_.counts().id_bytes, before);
}

TEST_F(SessionTransfer, AnImportHasItsOwnOrTheGivenTtlWithinTheLimits) {
  EXPECT_EQ(store_.Import("a", absl::Minutes(9), Session({1}))->ttl,
            absl::Minutes(9));
  ImportedSession session = Session({1});
  session.head.ttl = absl::Hours(24 * 365);
  EXPECT_EQ(store_.Import("b", std::nullopt, std::move(session))->ttl,
            Options().max_ttl);
  session = Session({1});
  session.head.ttl = absl::ZeroDuration();
  EXPECT_EQ(store_.Import("c", std::nullopt, std::move(session))->ttl,
            Options().min_ttl);
  EXPECT_EQ(
      Reason(store_.Import("d", absl::ZeroDuration(), Session({1})).status()),
      "FIELD_INVALID");
}

TEST_F(SessionTransfer, OfAnIdInUseIsRefusedAndOfNoneMadeUp) {
  ASSERT_TRUE(store_.Create("s", std::nullopt).ok());
  EXPECT_EQ(Reason(store_.Import("s", std::nullopt, Session({1})).status()),
            "SESSION_EXISTS");
  const auto info = store_.Import("", std::nullopt, Session({1}));
  EXPECT_GE(info->session_id.size(), 22u);
}

TEST_F(SessionTransfer, TheTextGoesOnInTheMiddleOfACharacter) {
  const ByteVocabulary vocabulary;
  auto detokenizer = vocabulary.NewDetokenizer();
  detokenizer->Add(0xc3);
  ImportedSession session = Session({0xc3});
  session.head.detokenizer = detokenizer->State();
  ASSERT_TRUE(store_.Import("s", std::nullopt, std::move(session)).ok());
  const auto lease = store_.Acquire("s");
  EXPECT_EQ(lease->CloneDetokenizer()->Add(0xa9), "\xc3\xa9");
}

TEST_F(SessionTransfer, WhatNoServerWritesIsNotBelieved) {
  ImportedSession session = Session({'a', 'b'});
  session.head.last_turn.outcome = std::string(65, 'x');
  session.state = Image(2, 10);  // as many rows as tokens: none is left to feed
  const auto info = store_.Import("s", std::nullopt, std::move(session));
  EXPECT_EQ(info->last_turn.outcome, "IMPORTED");
  EXPECT_EQ(store_.counts().image_bytes, 0);
  session = Session({'a'});
  session.head.last_turn.outcome = "STOP_TEXT";
  session.head.last_turn.request_id = "no id";
  EXPECT_EQ(
      store_.Import("t", std::nullopt, std::move(session))->last_turn.outcome,
      "IMPORTED");
  session = Session({'a'});
  session.head.earlier_requests.assign(100, 7);
  ASSERT_TRUE(store_.Import("u", std::nullopt, std::move(session)).ok());
  EXPECT_EQ(store_.Snapshot("u")->head.earlier_requests.size(),
            static_cast<size_t>(Options().remembered_requests));
}

TEST_F(SessionTransfer, AStateWithoutRoomIsLeftOut) {
  ImportedSession session = Session({'a', 'b'});
  session.state = Image(1, 101);
  ASSERT_TRUE(store_.Import("s", std::nullopt, std::move(session)).ok());
  EXPECT_EQ(store_.counts().image_bytes, 0);
  EXPECT_EQ(store_.Snapshot("s")->state, nullptr);
}

TEST_F(SessionTransfer, AnImportWithoutRoomIsRefused) {
  SessionStoreOptions options = Options();
  options.id_bytes = 20'000;
  SessionStore small(options, &clock_);
  const std::vector<int32_t> ids(10'000, 'a');
  EXPECT_EQ(Reason(small.Import("s", std::nullopt, Session(ids)).status()),
            "NO_SESSION_MEMORY");
  EXPECT_THAT(small.List(kDefaultTenant, 0, "")->sessions, IsEmpty());
}

}  // namespace

}  // namespace txl
