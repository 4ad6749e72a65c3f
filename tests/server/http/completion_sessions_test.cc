// Turns of sessions over POST /v1/completions, and their retries.

#include <gmock/gmock.h>

#include "absl/synchronization/notification.h"
#include "tests/server/http/http_world.h"

namespace txl {
namespace {

using ::testing::SizeIs;
using Ids = std::vector<int32_t>;
using Json = nlohmann::json;

Json Turn(const std::string& session, const std::string& prompt, int tokens) {
  return {{"session_id", session},
          {"prompt", prompt},
          {"max_tokens", tokens},
          {"return_token_ids", true}};
}

TEST(CompletionSessions, ATurnGoesOnWhereTheSessionStands) {
  HttpWorld world;
  world.rpc.MakeSession("s", {'a', 'b'});
  const HttpAnswer first = world.Complete(Turn("s", "c", 3));
  ASSERT_EQ(first.outcome(), "200");
  EXPECT_EQ(first.header("x-txl-session"), "s");
  const Ids all = world.rpc.runner.Continue({'a', 'b', 'c'}, 3);
  EXPECT_EQ(first.json()["choices"][0]["token_ids"], Json(all));
  EXPECT_EQ(world.rpc.GetSession("s").position(), 6);
  // Without a prompt from its last token on.
  const HttpAnswer second = world.Complete(
      {{"session_id", "s"}, {"max_tokens", 2}, {"return_token_ids", true}});
  Ids seen = {'a', 'b', 'c'};
  seen.insert(seen.end(), all.begin(), all.end());
  EXPECT_EQ(second.json()["choices"][0]["token_ids"],
            Json(world.rpc.runner.Continue(seen, 2)));
}

TEST(CompletionSessions, EitherHeaderNamesTheSession) {
  HttpWorld world;
  world.rpc.MakeSession("s");
  for (const char* name : {"x-txl-session", "X-Session-ID"}) {
    const HttpAnswer answer =
        world.Complete({{"prompt", "a"}, {"max_tokens", 1}}, {{name, "s"}});
    EXPECT_EQ(answer.outcome(), "200") << name;
    EXPECT_EQ(answer.header("x-txl-session"), "s");
  }
  EXPECT_EQ(world.rpc.GetSession("s").position(), 4);
}

TEST(CompletionSessions, BodyAndHeadersThatNameTwoAreRefused) {
  HttpWorld world;
  world.rpc.MakeSession("s");
  world.rpc.MakeSession("t");
  EXPECT_EQ(
      world.Complete(Turn("s", "a", 1), {{"x-txl-session", "t"}}).outcome(),
      "400 FIELD_INVALID session_id");
  EXPECT_EQ(world
                .Complete({{"prompt", "a"}},
                          {{"x-txl-session", "s"}, {"x-session-id", "t"}})
                .outcome(),
            "400 FIELD_INVALID session_id");
  EXPECT_EQ(world
                .Complete(Turn("s", "a", 1),
                          {{"x-txl-session", "s"}, {"x-session-id", "s"}})
                .outcome(),
            "200");
  EXPECT_EQ(world.rpc.GetSession("t").position(), 0);
}

TEST(CompletionSessions, EchoScoresThePromptBehindTheSession) {
  HttpWorld world;
  world.rpc.MakeSession("s", {'a', 'b'});
  Json body = Turn("s", "cd", 1);
  body["echo"] = true;
  body["logprobs"] = 1;
  const Json lists = world.Choice(body)["logprobs"];
  ASSERT_THAT(lists["token_logprobs"], SizeIs(3));
  EXPECT_FLOAT_EQ(lists["token_logprobs"][0].get<float>(),
                  world.rpc.runner.LogProbs(Ids{'a', 'b'})['c']);
  EXPECT_FLOAT_EQ(lists["token_logprobs"][1].get<float>(),
                  world.rpc.runner.LogProbs(Ids{'a', 'b', 'c'})['d']);
}

Json EchoTurn() {
  Json body = Turn("s", "cd", 2);
  body["echo"] = true;
  body["logprobs"] = 1;
  return body;
}

// Between the scores of a prompt and its turn: answers of calls wait until the
// test says so, their turns are done.
class BetweenScoreAndTurn : public ::testing::Test {
 protected:
  BetweenScoreAndTurn() {
    world_.rpc.MakeSession("s", {'a', 'b'});
    world_.rpc.callbacks->Run([this] { answers_.WaitForNotification(); });
  }
  ~BetweenScoreAndTurn() override { Release(); }

  // Once its prompt has been scored.
  RawClient Ask() {
    RawClient client = world_.Ask("/v1/completions", EchoTurn());
    EXPECT_TRUE(Eventually([this] {
      // Behind the turn that has fed the session.
      return world_.rpc.metrics.Get().turns_finished["OK"] == 2 &&
             world_.rpc.store->counts().busy == 0;
    }));
    return client;
  }
  void Release() {
    if (!answers_.HasBeenNotified()) answers_.Notify();
  }

  absl::Notification answers_;
  HttpWorld world_;
};

TEST_F(BetweenScoreAndTurn, AClientThatLeavesHasChangedNothing) {
  { const RawClient left = Ask(); }
  // The front has seen that it left before it answers the next connection.
  EXPECT_EQ(world_.Get("/health").outcome(), "200");
  Release();
  ASSERT_TRUE(world_.ComesToRest());
  EXPECT_EQ(world_.rpc.GetSession("s").position(), 2);
  EXPECT_EQ(world_.Complete(EchoTurn()).outcome(), "200");
  EXPECT_EQ(world_.rpc.GetSession("s").position(), 6);
}

TEST_F(BetweenScoreAndTurn, AnotherTurnIsAConflictAndNothingIsFed) {
  RawClient client = Ask();
  {
    auto lease = world_.rpc.store->Acquire("s");
    ASSERT_TRUE(lease.ok()) << lease.status();
    ASSERT_TRUE(lease->Reserve(1).ok());
    lease->Append(Ids{'x'});
    lease->Release();
  }
  Release();
  const HttpAnswer answer = client.ReadAnswer();
  EXPECT_EQ(answer.outcome(), "409 POSITION_MISMATCH");
  EXPECT_EQ(answer.header("x-txl-position"), "3");
  EXPECT_EQ(world_.rpc.GetSession("s").position(), 3);
}

TEST(CompletionSessions, EchoObeysTheExpectedPositionToo) {
  HttpWorld world;
  world.rpc.MakeSession("s", {'a', 'b'});
  for (const int tokens : {0, 2}) {
    Json body = EchoTurn();
    body["max_tokens"] = tokens;
    body["expected_position"] = 7;
    EXPECT_EQ(world.Complete(body).outcome(), "409 POSITION_MISMATCH");
    body["expected_position"] = 2;
    EXPECT_EQ(world.Complete(body).outcome(), "200");
  }
  EXPECT_EQ(world.rpc.GetSession("s").position(), 6);
}

// However it is run: as one turn, or fed first and gone on with.
TEST(CompletionSessions, WithoutASessionTheExpectedPositionIsTheBeginning) {
  HttpWorld world;
  for (const Json& how : {Json({{"n", 1}}), Json({{"n", 2}}),
                          Json({{"echo", true}, {"logprobs", 1}})}) {
    Json body = how;
    body["prompt"] = "abc";
    body["max_tokens"] = 1;
    body["expected_position"] = 0;
    EXPECT_EQ(world.Complete(body).outcome(), "200") << how;
    body["expected_position"] = 3;
    const HttpAnswer answer = world.Complete(body);
    EXPECT_EQ(answer.outcome(), "409 POSITION_MISMATCH") << how;
    EXPECT_EQ(answer.header("x-txl-position"), "0") << how;
  }
}

TEST(CompletionSessions, AnotherPositionThanExpectedIsAConflict) {
  HttpWorld world;
  world.rpc.MakeSession("s", {'a', 'b'});
  Json body = Turn("s", "c", 1);
  body["expected_position"] = 7;
  const HttpAnswer answer = world.Complete(body);
  EXPECT_EQ(answer.outcome(), "409 POSITION_MISMATCH");
  EXPECT_EQ(answer.header("x-should-retry"), "false");
  body["expected_position"] = 2;
  EXPECT_EQ(world.Complete(body).outcome(), "200");
}

TEST(CompletionSessions, ABusySessionIsAConflictThatMayBeRetried) {
  HttpWorld world;
  world.rpc.MakeSession("s");
  world.rpc.runner.Hold();
  RawClient running = world.Ask("/v1/completions", Turn("s", "a", 2));
  ASSERT_TRUE(Eventually([&] { return world.rpc.store->counts().busy == 1; }));
  const HttpAnswer answer = world.Complete(Turn("s", "b", 1));
  EXPECT_EQ(answer.outcome(), "409 SESSION_BUSY");
  EXPECT_EQ(answer.header("x-should-retry"), "true");
  world.rpc.runner.Release();
  EXPECT_EQ(running.ReadAnswer().outcome(), "200");
}

TEST(CompletionSessions, TheSameRequestIdIsAnsweredAgainAndFedOnce) {
  HttpWorld world;
  world.rpc.MakeSession("s");
  Json body = Turn("s", "ab", 5);
  body["request_id"] = "turn-1";
  body["seed"] = 5;
  const Json first = world.Complete(body).json()["choices"];
  EXPECT_EQ(world.Complete(body).json()["choices"], first);
  body["stream"] = true;
  EXPECT_THAT(world.Complete(body).chunks(), SizeIs(6));
  EXPECT_EQ(world.rpc.GetSession("s").position(), 7);
}

TEST(CompletionSessions, ARequestIdWithoutASeedIsAnsweredAgainToo) {
  HttpWorld world;
  world.rpc.MakeSession("s");
  Json body = Turn("s", "ab", 5);
  body["request_id"] = "turn-1";
  const HttpAnswer first = world.Complete(body);
  const HttpAnswer again = world.Complete(body);
  ASSERT_EQ(again.outcome(), "200");
  EXPECT_EQ(again.json()["choices"], first.json()["choices"]);
  EXPECT_EQ(again.header("x-txl-seed"), first.header("x-txl-seed"));
  EXPECT_EQ(world.rpc.GetSession("s").position(), 7);
}

TEST(CompletionSessions, AnotherRequestUnderARequestIdIsRefused) {
  HttpWorld world;
  world.rpc.MakeSession("s");
  Json body = Turn("s", "ab", 5);
  body["request_id"] = "turn-1";
  body["seed"] = 5;
  world.Complete(body);
  body["prompt"] = "abc";
  EXPECT_EQ(world.Complete(body).outcome(), "400 FIELD_INVALID request_id");
}

TEST(CompletionSessions, LastEventIdSkipsWhatTheClientHas) {
  HttpWorld world;
  world.rpc.MakeSession("s");
  Json body = Turn("s", "ab", 5);
  body["request_id"] = "turn-1";
  body["seed"] = 5;
  body["stream"] = true;
  body["stream_options"] = {{"event_ids", true}};
  const std::vector<SseEvent> all = world.Complete(body).events();
  ASSERT_THAT(all, SizeIs(7));
  const std::vector<SseEvent> rest =
      world.Complete(body, {{"Last-Event-ID", "3"}}).events();
  ASSERT_THAT(rest, SizeIs(4));
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(rest[i].id, std::to_string(i + 4));
    EXPECT_EQ(Json::parse(rest[i].data)["choices"],
              Json::parse(all[i + 3].data)["choices"]);
  }
}

TEST(CompletionSessions, ATurnThatBrokeOffGoesOnUnderItsRequestId) {
  HttpWorld world;
  world.rpc.MakeSession("s");
  Json body = Turn("s", "ab", 300);
  body["request_id"] = "turn-1";
  body["seed"] = 5;
  body["stream"] = true;
  body["stream_options"] = {{"event_ids", true}};
  {
    RawClient cut = world.Ask("/v1/completions", body);
    cut.ReceiveUntil("id: 3\n");
  }
  ASSERT_TRUE(world.ComesToRest());
  const HttpAnswer rest = world.Complete(body);
  ASSERT_EQ(rest.outcome(), "200");
  Ids ids;
  for (const SseEvent& event : rest.events()) {
    if (event.data == "[DONE]") break;
    const Json chunk = Json::parse(event.data);
    for (const Json& id : chunk["choices"][0]["token_ids"]) {
      ids.push_back(id);
    }
  }
  EXPECT_EQ(ids, world.rpc.runner.Continue({'a', 'b'}, 300));
  EXPECT_EQ(world.rpc.GetSession("s").position(), 302);
}

TEST(CompletionSessions, ABlindRepeatOfATurnIsRefused) {
  HttpWorld world;
  world.rpc.MakeSession("s");
  const HttpAnswer answer =
      world.Complete(Turn("s", "a", 1), {{"x-stainless-retry-count", "1"}});
  EXPECT_EQ(answer.outcome(), "409 BLIND_REPEAT request_id");
  EXPECT_EQ(answer.header("x-should-retry"), "false");
  EXPECT_EQ(world.rpc.GetSession("s").position(), 0);
  // A first one, one with a name, and one that no session remembers.
  EXPECT_EQ(
      world.Complete(Turn("s", "a", 1), {{"x-stainless-retry-count", "0"}})
          .outcome(),
      "200");
  Json named = Turn("s", "a", 1);
  named["request_id"] = "r";
  EXPECT_EQ(world.Complete(named, {{"x-stainless-retry-count", "2"}}).outcome(),
            "200");
  EXPECT_EQ(
      world.Complete({{"prompt", "a"}}, {{"x-stainless-retry-count", "2"}})
          .outcome(),
      "200");
}

TEST(CompletionSessions, ASessionHasOneWayToGoOn) {
  HttpWorld world;
  world.rpc.MakeSession("s");
  Json body = Turn("s", "a", 1);
  body["n"] = 2;
  EXPECT_EQ(world.Complete(body).outcome(), "400 FIELD_INVALID n");
  body["n"] = 1;
  body["prompt"] = {"a", "b"};
  EXPECT_EQ(world.Complete(body).outcome(), "400 FIELD_INVALID prompt");
  EXPECT_EQ(world.rpc.GetSession("s").position(), 0);
}

}  // namespace
}  // namespace txl
