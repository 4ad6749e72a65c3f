// GenerateRequest.received: a turn goes on where its client is, whatever the
// server holds of it.

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/server/rpc/rpc_world.h"

namespace txl {
namespace {

constexpr int kTurnTokens = 12;
constexpr char kOnSession[] = "session_id: 's' request_id: 'r' ";

std::string ReceivedRequest(const std::string& more = kOnSession) {
  return absl::StrCat("text: 'ab' output { logprobs: 3 } stop { max_tokens: ",
                      kTurnTokens, " } ", more);
}

std::string Received(uint64_t seed, const std::vector<int32_t>& ids) {
  return absl::StrCat("received { seed: ", seed, " token_ids: [",
                      absl::StrJoin(ids, ", "), "] } ");
}

// What a client has that has read so many tokens of the turn.
std::string Received(const Stream& whole, size_t count) {
  std::vector<int32_t> ids = whole.ids();
  ids.resize(count);
  return Received(whole.started().seed(), ids);
}

std::unique_ptr<RpcWorld> WorldWithSession() {
  auto world = std::make_unique<RpcWorld>();
  world->MakeSession("s", {1, 2, 3});
  return world;
}

// The turn `whole` without its first tokens.
void ExpectRest(const Stream& rest, const Stream& whole, size_t received) {
  ASSERT_EQ(Outcome(rest.status), "OK");
  ASSERT_EQ(rest.tokens.size() + received, whole.tokens.size());
  for (size_t i = 0; i < rest.tokens.size(); ++i) {
    EXPECT_EQ(rest.tokens[i].ShortDebugString(),
              whole.tokens[received + i].ShortDebugString());
  }
  EXPECT_EQ(rest.started().seed(), whole.started().seed());
  EXPECT_EQ(rest.started().sampling().seed(), whole.started().seed());
  EXPECT_EQ(rest.started().position(), whole.started().position());
  EXPECT_EQ(rest.started().prompt_token_count(),
            whole.started().prompt_token_count());
  EXPECT_GE(rest.started().replayed_token_count(),
            static_cast<int64_t>(received));
  EXPECT_EQ(rest.finished().reason(), whole.finished().reason());
  EXPECT_EQ(rest.finished().text(), whole.finished().text());
  EXPECT_EQ(rest.finished().position(), whole.finished().position());
  EXPECT_EQ(rest.finished().usage().ShortDebugString(),
            whole.finished().usage().ShortDebugString());
}

TEST(Received, AServerThatKnowsNothingOfTheTurnTakesItsTokensOn) {
  const Stream whole = WorldWithSession()->Generate(ReceivedRequest());
  for (int count = 0; count <= kTurnTokens; ++count) {
    const auto world = WorldWithSession();
    const Stream rest = world->Generate(absl::StrCat(
        ReceivedRequest(), "expected_position: 3 ", Received(whole, count)));
    ASSERT_NO_FATAL_FAILURE(ExpectRest(rest, whole, count));
    EXPECT_EQ(rest.started().replayed_token_count(), count);
    EXPECT_EQ(world->GetSession("s").position(), 3 + 2 + kTurnTokens);
    // What was taken on is replayed like all else.
    const Stream again = world->Generate(
        absl::StrCat(ReceivedRequest(), "expected_position: 3"));
    ASSERT_NO_FATAL_FAILURE(ExpectRest(again, whole, 0));
    EXPECT_EQ(again.started().replayed_token_count(), kTurnTokens);
  }
}

TEST(Received, ATurnThatBrokeOffGoesOnBehindWhatWasReceived) {
  const Stream whole = WorldWithSession()->Generate(ReceivedRequest());
  for (int count = 0; count <= kTurnTokens; ++count) {
    const auto world = WorldWithSession();
    // With the seed that the whole turn had.
    const std::string seeded = absl::StrCat(
        ReceivedRequest(), "sampling { seed: ", whole.started().seed(), " }");
    world->runner.FailStep(world->metrics.Get().steps + 5,
                           absl::InternalError("broken"));
    ASSERT_EQ(Outcome(world->Generate(seeded).status), "INTERNAL STEP_FAILED");
    const int64_t held = world->GetSession("s").position() - 5;
    ASSERT_GT(held, 0);
    ASSERT_LT(held, kTurnTokens);
    const Stream rest =
        world->Generate(absl::StrCat(seeded, Received(whole, count)));
    ASSERT_NO_FATAL_FAILURE(ExpectRest(rest, whole, count));
    EXPECT_EQ(rest.started().replayed_token_count(),
              std::max<int64_t>(held, count));
  }
}

TEST(Received, OfAFinishedTurnTheRestIsToldAgain) {
  const auto world = WorldWithSession();
  const Stream whole = world->Generate(ReceivedRequest());
  const int64_t steps = world->metrics.Get().steps;
  for (int count = 0; count <= kTurnTokens; ++count) {
    const Stream rest = world->Generate(
        absl::StrCat(ReceivedRequest(), Received(whole, count)));
    ASSERT_NO_FATAL_FAILURE(ExpectRest(rest, whole, count));
    EXPECT_EQ(rest.started().replayed_token_count(), kTurnTokens);
  }
  EXPECT_EQ(world->metrics.Get().steps, steps);
}

TEST(Received, ATurnWithoutASessionGoesOnOnAnyServer) {
  for (const char* id : {"", "request_id: 'r' "}) {
    RpcWorld first;
    const Stream whole = first.Generate(
        ReceivedRequest(absl::StrCat(id, "sampling { temperature: 3 }")));
    for (int count = 0; count <= kTurnTokens; ++count) {
      RpcWorld second;
      const Stream rest = second.Generate(ReceivedRequest(absl::StrCat(
          id, "sampling { temperature: 3 } ", Received(whole, count))));
      ASSERT_NO_FATAL_FAILURE(ExpectRest(rest, whole, count));
    }
  }
}

TEST(Received, SeedsThatAreUnlikeAreRefused) {
  const auto world = WorldWithSession();
  EXPECT_EQ(Outcome(world
                        ->Generate(absl::StrCat(ReceivedRequest(),
                                                "sampling { seed: 4 }",
                                                Received(5, {})))
                        .status),
            "INVALID_ARGUMENT FIELD_INVALID received.seed");
  EXPECT_EQ(Outcome(world
                        ->Generate(ReceivedRequest(absl::StrCat(
                            "sampling { seed: 4 }", Received(5, {}))))
                        .status),
            "INVALID_ARGUMENT FIELD_INVALID received.seed");
  EXPECT_EQ(world->GetSession("s").position(), 3);
  const Stream whole = world->Generate(ReceivedRequest());
  EXPECT_EQ(Outcome(world
                        ->Generate(absl::StrCat(
                            ReceivedRequest(),
                            Received(whole.started().seed() + 1, {})))
                        .status),
            "ABORTED RESUME_MISMATCH");
  EXPECT_EQ(world->GetSession("s").state(), v1::SESSION_STATE_IDLE);
}

TEST(Received, TokensThatContradictTheSessionAreRefused) {
  const auto world = WorldWithSession();
  const Stream whole = world->Generate(ReceivedRequest());
  const uint64_t seed = whole.started().seed();
  const auto refused = [&](const std::vector<int32_t>& ids) {
    return Outcome(
        world->Generate(absl::StrCat(ReceivedRequest(), Received(seed, ids)))
            .status);
  };
  for (int wrong = 0; wrong < kTurnTokens; ++wrong) {
    std::vector<int32_t> ids = whole.ids();
    ids[wrong] ^= 1;
    EXPECT_EQ(refused(ids), "ABORTED RESUME_MISMATCH") << wrong;
    ids.resize(wrong + 1);
    EXPECT_EQ(refused(ids), "ABORTED RESUME_MISMATCH") << wrong;
  }
  EXPECT_EQ(world->GetSession("s").position(), 3 + 2 + kTurnTokens);
  EXPECT_EQ(refused(whole.ids()), "OK");
}

TEST(Received, TokensBehindTheTurnsEndAreRefused) {
  const Stream plain = WorldWithSession()->Generate(ReceivedRequest());
  const std::vector<int32_t> ids = plain.ids();
  const int32_t stop = ids[4];
  ASSERT_EQ(std::find(ids.begin(), ids.begin() + 4, stop), ids.begin() + 4);
  const auto stopping = [&](const std::string& more) {
    return absl::StrCat(kOnSession, "text: 'ab' stop { max_tokens: 12 ",
                        "stop_token_ids: ", stop, " } ", more);
  };
  const std::string behind = Received(plain, 6);
  // Nothing is known of the turn: it is found when it is to run.
  const auto world = WorldWithSession();
  EXPECT_EQ(Outcome(world->Generate(stopping(behind)).status),
            "ABORTED RESUME_MISMATCH");
  EXPECT_EQ(world->GetSession("s").position(), 3);
  // It has ended.
  const Stream whole = world->Generate(stopping(
      absl::StrCat("received { seed: ", plain.started().seed(), " }")));
  ASSERT_EQ(whole.finished().reason(), v1::FINISH_REASON_STOP_TOKEN);
  EXPECT_EQ(Outcome(world->Generate(stopping(behind)).status),
            "ABORTED RESUME_MISMATCH");
  EXPECT_EQ(Outcome(world->Generate(stopping(Received(plain, 5))).status),
            "OK");
}

TEST(Received, ThePositionIsStillChecked) {
  const Stream whole = WorldWithSession()->Generate(ReceivedRequest());
  const auto world = WorldWithSession();
  const Stream late = world->Generate(absl::StrCat(
      ReceivedRequest(), "expected_position: 2 ", Received(whole, 4)));
  EXPECT_EQ(Outcome(late.status), "ABORTED POSITION_MISMATCH");
  EXPECT_EQ(world->GetSession("s").position(), 3);
}

TEST(Received, WhatWasReceivedNeedsRoomInTheSession) {
  RpcWorldOptions options;
  options.sessions.max_session_tokens = 10;
  RpcWorld world(options);
  world.MakeSession("s", {1, 2, 3});
  // Room for five tokens behind the prompt.
  const std::string request = absl::StrCat(kOnSession, "text: 'ab' ");
  EXPECT_EQ(Outcome(world
                        .Generate(absl::StrCat(
                            request, Received(1, {5, 6, 7, 8, 9, 10})))
                        .status),
            "INVALID_ARGUMENT FIELD_INVALID received");
  EXPECT_EQ(world.GetSession("s").position(), 3);
  const Stream full =
      world.Generate(absl::StrCat(request, Received(1, {5, 6, 7, 8, 9})));
  ASSERT_EQ(Outcome(full.status), "OK");
  EXPECT_EQ(full.finished().reason(), v1::FINISH_REASON_MAX_TOKENS);
  EXPECT_EQ(full.finished().usage().generated_tokens(), 5);
  EXPECT_EQ(world.GetSession("s").position(), 10);
}

}  // namespace
}  // namespace txl
