// ForkSession and RewindSession as clients see them.

#include <gmock/gmock.h>

#include "tests/server/rpc/rpc_world.h"

namespace txl {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::MatchesRegex;
using testing::Not;
using testing::StartsWith;

struct Forked {
  grpc::Status status;
  v1::Session session;
  std::string metadata;  // x-txl-session of the answer
};

std::string SessionOf(const grpc::ClientContext& client) {
  const auto& initial = client.GetServerInitialMetadata();
  const auto it = initial.find("x-txl-session");
  return it == initial.end()
             ? ""
             : std::string(it->second.data(), it->second.size());
}

Forked Fork(RpcWorld& world, const std::string& request,
            const std::string& metadata = "") {
  grpc::ClientContext client;
  if (!metadata.empty()) client.AddMetadata("x-txl-session", metadata);
  v1::ForkSessionResponse response;
  return {.status = world.sessions->ForkSession(
              &client, Proto<v1::ForkSessionRequest>(request), &response),
          .session = response.session(),
          .metadata = SessionOf(client)};
}

Forked Rewind(RpcWorld& world, const std::string& request,
              const std::string& metadata = "") {
  grpc::ClientContext client;
  if (!metadata.empty()) client.AddMetadata("x-txl-session", metadata);
  v1::RewindSessionResponse response;
  return {.status = world.sessions->RewindSession(
              &client, Proto<v1::RewindSessionRequest>(request), &response),
          .session = response.session(),
          .metadata = SessionOf(client)};
}

std::vector<int32_t> TokensOf(RpcWorld& world, const std::string& id) {
  return world.store->GetTokens(SessionName::OfDefaultTenant(id), 0, 1000)
      ->token_ids;
}

TEST(ForkSession, MakesASessionThatHoldsWhatTheOtherHolds) {
  RpcWorld world;
  world.MakeSession("parent", {'a', 'b', 'c'});
  const Forked child =
      Fork(world, "session_id: 'parent' new_session_id: 'child'", "parent");
  EXPECT_EQ(Outcome(child.status), "OK");
  EXPECT_EQ(child.session.session_id(), "child");
  EXPECT_EQ(child.session.position(), 3);
  EXPECT_EQ(child.session.last_turn().outcome(), "FORKED");
  // Proxies learn where the new session is.
  EXPECT_EQ(child.metadata, "child");
  EXPECT_THAT(TokensOf(world, "child"), ElementsAre('a', 'b', 'c'));
  EXPECT_THAT(TokensOf(world, "parent"), ElementsAre('a', 'b', 'c'));
}

TEST(ForkSession, TakesTheFirstTokensATtlAndChoosesAnId) {
  RpcWorld world;
  world.MakeSession("parent", {'a', 'b', 'c'});
  const Forked child =
      Fork(world, "session_id: 'parent' position: 2 ttl { seconds: 90 }");
  EXPECT_EQ(Outcome(child.status), "OK");
  EXPECT_THAT(child.session.session_id(), MatchesRegex("[A-Za-z0-9_-]{22,}"));
  EXPECT_EQ(child.session.ttl().seconds(), 90);
  EXPECT_THAT(TokensOf(world, child.session.session_id()),
              ElementsAre('a', 'b'));
}

TEST(ForkSession, SavesTheStateFirstSoThatTheChildNeedNotBeFed) {
  RpcWorld world;
  world.MakeSession("parent", {'a', 'b', 'c', 'd'});
  ASSERT_EQ(world.store->counts().image_bytes, 0);
  ASSERT_EQ(
      Outcome(
          Fork(world, "session_id: 'parent' new_session_id: 'child'").status),
      "OK");
  EXPECT_THAT(world.runner.calls(), Contains(StartsWith("export ")));
  const Stream turn =
      world.Generate("session_id: 'child' text: 'e' stop { max_tokens: 1 }");
  EXPECT_EQ(Outcome(turn.status), "OK");
  EXPECT_THAT(world.runner.calls(), Contains(StartsWith("import ")));
}

TEST(ForkSession, OfAnEarlierPositionSavesNothing) {
  RpcWorld world;
  world.MakeSession("parent", {'a', 'b', 'c', 'd'});
  ASSERT_EQ(Outcome(Fork(world, "session_id: 'parent' position: 2").status),
            "OK");
  EXPECT_THAT(world.runner.calls(), Not(Contains(StartsWith("export "))));
}

TEST(ForkSession, SentAgainMakesNoSecondSession) {
  RpcWorld world;
  world.MakeSession("parent", {'a', 'b'});
  const std::string request = "session_id: 'parent' request_id: 'r'";
  const Forked first = Fork(world, request);
  const Forked again = Fork(world, request);
  EXPECT_EQ(Outcome(again.status), "OK");
  EXPECT_EQ(again.session.session_id(), first.session.session_id());
  EXPECT_EQ(world.store->counts().idle, 2);
}

TEST(ForkSession, OfABusySessionIsRefused) {
  RpcWorld world;
  world.MakeSession("parent", {'a', 'b'});
  const auto lease = world.store->Acquire("parent");
  const Forked child = Fork(world, "session_id: 'parent'");
  EXPECT_EQ(Outcome(child.status), "ABORTED SESSION_BUSY");
  EXPECT_TRUE(HasRetryInfo(child.status));
  EXPECT_THAT(child.metadata, IsEmpty());
}

TEST(ForkSession, SaysWhatIsWrongWithARequest) {
  RpcWorld world;
  world.MakeSession("parent", {'a', 'b'});
  world.MakeSession("taken");
  const std::pair<const char*, const char*> cases[] = {
      {"", "INVALID_ARGUMENT FIELD_INVALID session_id"},
      {"session_id: 'a b'", "INVALID_ARGUMENT FIELD_INVALID session_id"},
      {"session_id: 'none'", "NOT_FOUND SESSION_UNKNOWN"},
      {"session_id: 'parent' new_session_id: '/'",
       "INVALID_ARGUMENT FIELD_INVALID new_session_id"},
      {"session_id: 'parent' new_session_id: 'taken'",
       "ALREADY_EXISTS SESSION_EXISTS"},
      {"session_id: 'parent' position: -1",
       "INVALID_ARGUMENT FIELD_INVALID position"},
      {"session_id: 'parent' position: 3",
       "INVALID_ARGUMENT FIELD_INVALID position"},
      {"session_id: 'parent' ttl { }", "INVALID_ARGUMENT FIELD_INVALID ttl"},
      {"session_id: 'parent' ttl { seconds: 1 nanos: -1 }",
       "INVALID_ARGUMENT FIELD_INVALID ttl"},
      {"session_id: 'parent' request_id: 'r r'",
       "INVALID_ARGUMENT FIELD_INVALID request_id"},
  };
  for (const auto& [request, outcome] : cases) {
    EXPECT_EQ(Outcome(Fork(world, request).status), outcome) << request;
  }
  EXPECT_EQ(Outcome(Fork(world, "session_id: 'parent'", "other").status),
            "INVALID_ARGUMENT FIELD_INVALID x-txl-session");
  EXPECT_EQ(world.store->counts().idle, 2);
}

TEST(RewindSession, TakesASessionBack) {
  RpcWorld world;
  world.MakeSession("s", {'a', 'b', 'c'});
  const Forked back =
      Rewind(world, "session_id: 's' position: 1 expected_position: 3", "s");
  EXPECT_EQ(Outcome(back.status), "OK");
  EXPECT_EQ(back.session.position(), 1);
  EXPECT_EQ(back.session.last_turn().outcome(), "REWOUND");
  EXPECT_EQ(back.metadata, "s");
  EXPECT_THAT(TokensOf(world, "s"), ElementsAre('a'));
}

TEST(RewindSession, GoesOnAsIfTheRestHadNeverBeen) {
  RpcWorld world;
  world.MakeSession("back", {'a', 'b', 'c', 'd', 'e'});
  world.MakeSession("straight", {'a', 'b', 'c'});
  ASSERT_EQ(Outcome(Rewind(world, "session_id: 'back' position: 3").status),
            "OK");
  const std::string turn =
      " text: 'x' sampling { seed: 3 } stop { max_tokens: 8 }";
  const Stream back = world.Generate("session_id: 'back'" + turn);
  const Stream straight = world.Generate("session_id: 'straight'" + turn);
  EXPECT_EQ(Outcome(back.status), "OK");
  EXPECT_EQ(back.ids(), straight.ids());
}

TEST(RewindSession, ToWhereItStandsAndSentAgainIsOk) {
  RpcWorld world;
  world.MakeSession("s", {'a', 'b', 'c'});
  EXPECT_EQ(Outcome(Rewind(world, "session_id: 's' position: 3").status), "OK");
  const std::string request =
      "session_id: 's' position: 2 expected_position: 3 request_id: 'r'";
  EXPECT_EQ(Outcome(Rewind(world, request).status), "OK");
  EXPECT_EQ(Outcome(Rewind(world, request).status), "OK");
  EXPECT_THAT(TokensOf(world, "s"), ElementsAre('a', 'b'));
}

TEST(RewindSession, SaysWhatIsWrongWithARequest) {
  RpcWorld world;
  world.MakeSession("s", {'a', 'b'});
  const std::pair<const char*, const char*> cases[] = {
      {"", "INVALID_ARGUMENT FIELD_INVALID session_id"},
      {"session_id: 'none' position: 0", "NOT_FOUND SESSION_UNKNOWN"},
      {"session_id: 's'", "INVALID_ARGUMENT FIELD_INVALID position"},
      {"session_id: 's' expected_position: 2",
       "INVALID_ARGUMENT FIELD_INVALID position"},
      {"session_id: 's' position: -1",
       "INVALID_ARGUMENT FIELD_INVALID position"},
      {"session_id: 's' position: 3",
       "INVALID_ARGUMENT FIELD_INVALID position"},
      {"session_id: 's' position: 0 expected_position: -1",
       "INVALID_ARGUMENT FIELD_INVALID expected_position"},
      {"session_id: 's' position: 0 expected_position: 1",
       "ABORTED POSITION_MISMATCH"},
      {"session_id: 's' request_id: '!'",
       "INVALID_ARGUMENT FIELD_INVALID request_id"},
  };
  for (const auto& [request, outcome] : cases) {
    EXPECT_EQ(Outcome(Rewind(world, request).status), outcome) << request;
  }
  EXPECT_EQ(
      Outcome(Rewind(world, "session_id: 's' position: 0", "other").status),
      "INVALID_ARGUMENT FIELD_INVALID x-txl-session");
  {
    const auto lease = world.store->Acquire("s");
    EXPECT_EQ(Outcome(Rewind(world, "session_id: 's' position: 0").status),
              "ABORTED SESSION_BUSY");
  }
  EXPECT_THAT(TokensOf(world, "s"), ElementsAre('a', 'b'));
}

TEST(RewindSession, ToNothingIsSaidByAZeroThatStandsThere) {
  RpcWorld world;
  world.MakeSession("s", {'a', 'b'});
  EXPECT_EQ(Outcome(Rewind(world, "session_id: 's' position: 0").status), "OK");
  EXPECT_THAT(TokensOf(world, "s"), IsEmpty());
}

}  // namespace
}  // namespace txl
