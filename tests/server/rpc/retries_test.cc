// A request_id makes a call safe to send again: docs/design/retries.md.

#include <gmock/gmock.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/server/rpc/rpc_world.h"

namespace txl {
namespace {

using ::testing::SizeIs;

constexpr int kTokens = 12;

std::string RetriedRequest(const std::string& more = "") {
  return absl::StrCat(
      "session_id: 's' request_id: 'r' text: 'ab' expected_position: 3 "
      "stop { max_tokens: ",
      kTokens, " } ", more);
}

class Retries : public ::testing::Test {
 protected:
  Retries() { world_.MakeSession("s", {1, 2, 3}); }

  // What the turn gives whole: nothing of it depends on the server's life.
  Stream Whole(const std::string& request) {
    RpcWorld other;
    other.MakeSession("s", {1, 2, 3});
    return other.Generate(request);
  }

  // A call that reads `count` tokens and leaves, without a trace of it running.
  // It stays until its turn has started: the server could take one that left
  // before for a retry of what comes next.
  Stream ReadAndLeave(const std::string& request, int count) {
    Stream stream;
    grpc::ClientContext context;
    const auto reader = world_.generation->Generate(
        &context, Proto<v1::GenerateRequest>(request));
    v1::GenerateResponse event;
    while ((stream.events.empty() ||
            static_cast<int>(stream.tokens.size()) < count) &&
           reader->Read(&event)) {
      if (event.has_token()) stream.tokens.push_back(event.token());
      stream.events.push_back(event);
    }
    context.TryCancel();
    stream.status = reader->Finish();
    EXPECT_TRUE(Eventually([this] {
      return world_.GetSession("s").state() == v1::SESSION_STATE_IDLE;
    }));
    return stream;
  }

  static std::vector<std::string> Texts(const Stream& stream) {
    std::vector<std::string> texts;
    for (const v1::Token& token : stream.tokens) {
      texts.push_back(token.ShortDebugString());
    }
    return texts;
  }
  static void ExpectSameTurn(const Stream& retry, const Stream& whole) {
    ASSERT_EQ(Outcome(retry.status), "OK");
    EXPECT_EQ(Texts(retry), Texts(whole));
    EXPECT_EQ(retry.finished().reason(), whole.finished().reason());
    EXPECT_EQ(retry.finished().text(), whole.finished().text());
    EXPECT_EQ(retry.finished().position(), whole.finished().position());
    EXPECT_EQ(retry.finished().usage().ShortDebugString(),
              whole.finished().usage().ShortDebugString());
    EXPECT_EQ(retry.finished().matched_stop_text(),
              whole.finished().matched_stop_text());
    EXPECT_EQ(retry.started().position(), whole.started().position());
    EXPECT_EQ(retry.started().prompt_token_count(),
              whole.started().prompt_token_count());
  }

  RpcWorld world_;
};

TEST_F(Retries, AFinishedTurnIsReplayedWordForWord) {
  const Stream first =
      world_.Generate(RetriedRequest("output { logprobs: 3 }"));
  const int64_t steps = world_.metrics.Get().steps;
  const Stream again =
      world_.Generate(RetriedRequest("output { logprobs: 3 }"));
  ASSERT_THAT(again.events, SizeIs(first.events.size()));
  EXPECT_EQ(first.started().replayed_token_count(), 0);
  EXPECT_EQ(again.started().replayed_token_count(), kTokens);
  v1::Started started = again.started();
  started.set_replayed_token_count(0);
  EXPECT_EQ(started.ShortDebugString(), first.started().ShortDebugString());
  for (size_t i = 1; i < first.events.size(); ++i) {
    EXPECT_EQ(again.events[i].ShortDebugString(),
              first.events[i].ShortDebugString());
  }
  EXPECT_EQ(world_.metrics.Get().steps, steps) << "nothing ran";
  EXPECT_EQ(world_.GetSession("s").position(), 3 + 2 + kTokens);
}

TEST_F(Retries, ATurnCutAnywhereGoesOnToItsOwnEnd) {
  const Stream whole = Whole(RetriedRequest());
  for (int cut = 0; cut < kTokens; ++cut) {
    ASSERT_TRUE(world_.store->Delete("s").ok());
    world_.MakeSession("s", {1, 2, 3});
    ReadAndLeave(RetriedRequest(), cut);
    const Stream retry = world_.Generate(RetriedRequest());
    ASSERT_NO_FATAL_FAILURE(ExpectSameTurn(retry, whole));
    EXPECT_GE(retry.started().replayed_token_count(), cut);
  }
}

TEST_F(Retries, AChosenSeedIsKept) {
  const std::string request = RetriedRequest("sampling { temperature: 3 }");
  const Stream broken = ReadAndLeave(request, 4);
  const uint64_t seed = broken.events.front().started().seed();
  const Stream retry = world_.Generate(request);
  ASSERT_EQ(Outcome(retry.status), "OK");
  EXPECT_EQ(retry.started().seed(), seed);
  EXPECT_EQ(retry.started().sampling().seed(), seed);
  // A turn that is given this seed from the start gives the same.
  EXPECT_EQ(retry.ids(),
            Whole(RetriedRequest(absl::StrCat(
                      "sampling { temperature: 3 seed: ", seed, " }")))
                .ids());
}

bool IsAscii(const v1::Token& token) {
  return token.text().size() == 1 && token.text()[0] > ' ' &&
         token.text()[0] < 127;
}

// Stops at two characters of the turn's own, the first of which is held back
// until the second one comes; as is one that "never" does not follow.
TEST_F(Retries, TextThatWasHeldBackComesWithTheRetry) {
  v1::GenerateRequest parsed = Proto<v1::GenerateRequest>(RetriedRequest());
  parsed.mutable_stop()->set_max_tokens(60);
  const std::vector<v1::Token> plain = Whole(parsed.ShortDebugString()).tokens;
  size_t pair = 10;
  while (!IsAscii(plain.at(pair)) || !IsAscii(plain.at(pair + 1))) ++pair;
  const std::string stop = plain[pair].text() + plain[pair + 1].text();
  const size_t early =
      std::find_if(plain.begin(), plain.end(), IsAscii) - plain.begin();
  ASSERT_LT(early, pair);
  parsed.mutable_stop()->add_stop_texts(stop);
  parsed.mutable_stop()->add_stop_texts(plain[early].text() + "never");
  const std::string request = parsed.ShortDebugString();
  const Stream whole = Whole(request);
  ASSERT_EQ(whole.finished().matched_stop_text(), stop);
  ASSERT_EQ(whole.tokens[early].text(), "") << "held back";
  for (int cut = 1; cut < static_cast<int>(whole.tokens.size()); ++cut) {
    ASSERT_TRUE(world_.store->Delete("s").ok());
    world_.MakeSession("s", {1, 2, 3});
    ReadAndLeave(request, cut);
    const Stream retry = world_.Generate(request);
    ExpectSameTurn(retry, whole);
    EXPECT_EQ(retry.text(), whole.text());
  }
}

// The first call does not read on, so that its turn cannot end by itself.
TEST_F(Retries, ARunningTurnIsTakenOver) {
  const std::string request =
      "session_id: 's' request_id: 'r' text: 'ab' output { logprobs: 20 } "
      "stop { max_tokens: 4000 }";
  const Stream whole = Whole(request);
  grpc::ClientContext context;
  const auto reader = world_.generation->Generate(
      &context, Proto<v1::GenerateRequest>(request));
  v1::GenerateResponse event;
  ASSERT_TRUE(reader->Read(&event));
  ASSERT_TRUE(event.has_started());
  EXPECT_TRUE(
      Eventually([this] { return world_.metrics.Get().turns_parked == 1; }));
  const Stream retry = world_.Generate(request);
  ExpectSameTurn(retry, whole);
  EXPECT_GT(retry.started().replayed_token_count(), 0);
  while (reader->Read(&event)) {
  }
  EXPECT_EQ(Outcome(reader->Finish()), "ABORTED SUPERSEDED");
}

TEST_F(Retries, AnIdBelongsToOneRequest) {
  world_.Generate(RetriedRequest());
  const Stream other =
      world_.Generate(RetriedRequest("output { logprobs: 1 }"));
  EXPECT_EQ(Outcome(other.status), "INVALID_ARGUMENT FIELD_INVALID request_id");
  EXPECT_EQ(world_.GetSession("s").state(), v1::SESSION_STATE_IDLE);
}

TEST_F(Retries, AfterAnotherTurnTheIdIsRefused) {
  world_.Generate(RetriedRequest());
  world_.Generate("session_id: 's' text: 'c' stop { max_tokens: 1 }");
  const Stream again = world_.Generate(RetriedRequest());
  EXPECT_EQ(Outcome(again.status), "ABORTED REPLAY_EVICTED");
}

TEST_F(Retries, TurnsThatChangeNothingForgetNothing) {
  const Stream first = world_.Generate(RetriedRequest());
  world_.Generate("session_id: 's' text: 'c' stop { max_tokens: 0 }");
  grpc::ClientContext context;
  v1::ScoreResponse scored;
  EXPECT_TRUE(world_.generation
                  ->Score(&context,
                          Proto<v1::ScoreRequest>("session_id: 's' text: 'c'"),
                          &scored)
                  .ok());
  ExpectSameTurn(world_.Generate(RetriedRequest()), first);
}

TEST_F(Retries, AStepThatFailedIsGoneOnFrom) {
  const Stream whole = Whole(RetriedRequest());
  world_.runner.FailStep(world_.metrics.Get().steps + 5,
                         absl::InternalError("broken"));
  EXPECT_EQ(Outcome(world_.Generate(RetriedRequest()).status),
            "INTERNAL STEP_FAILED");
  ExpectSameTurn(world_.Generate(RetriedRequest()), whole);
}

TEST_F(Retries, AnAppendIsFedOnce) {
  const auto append = [this](const std::string& text) {
    grpc::ClientContext context;
    v1::AppendTokensResponse response;
    const grpc::Status status = world_.sessions->AppendTokens(
        &context, Proto<v1::AppendTokensRequest>(text), &response);
    return std::make_pair(Outcome(status), response.ShortDebugString());
  };
  const std::string request =
      "session_id: 's' request_id: 'a' text: 'xyz' return_logprobs: true";
  const auto first = append(request);
  EXPECT_EQ(first.first, "OK");
  EXPECT_EQ(append(request), first);
  EXPECT_EQ(world_.GetSession("s").position(), 6);
  EXPECT_EQ(append("session_id: 's' request_id: 'a' text: 'other'").first,
            "INVALID_ARGUMENT FIELD_INVALID request_id");
  // Nor may a turn have its id.
  EXPECT_EQ(Outcome(world_
                        .Generate("session_id: 's' request_id: 'a' text: 'xyz' "
                                  "stop { max_tokens: 1 }")
                        .status),
            "INVALID_ARGUMENT FIELD_INVALID request_id");
}

TEST_F(Retries, AnAppendThatComesAgainAfterALaterOneIsNotFed) {
  const auto append = [this](const char* id, const char* text) {
    grpc::ClientContext context;
    v1::AppendTokensRequest request;
    request.set_session_id("s");
    request.set_request_id(id);
    request.set_text(text);
    v1::AppendTokensResponse response;
    return Outcome(world_.sessions->AppendTokens(&context, request, &response));
  };
  EXPECT_EQ(append("a", "hello"), "OK");
  EXPECT_EQ(append("b", "xy"), "OK");
  const int64_t position = world_.GetSession("s").position();
  EXPECT_EQ(append("a", "hello"), "ABORTED REPLAY_EVICTED");
  EXPECT_EQ(world_.GetSession("s").position(), position);
  EXPECT_EQ(append("b", "xy"), "OK");
  EXPECT_EQ(world_.GetSession("s").position(), position);
}

TEST_F(Retries, OfATemporarySessionAreTurnsOfTheirOwn) {
  const std::string request =
      "request_id: 'r' text: 'ab' stop { max_tokens: 3 }";
  EXPECT_EQ(world_.Generate(request).started().replayed_token_count(), 0);
  EXPECT_EQ(world_.Generate(request).started().replayed_token_count(), 0);
  EXPECT_EQ(Outcome(world_.Generate("request_id: 'a.b' text: 'ab'").status),
            "INVALID_ARGUMENT FIELD_INVALID request_id");
}

}  // namespace
}  // namespace txl
