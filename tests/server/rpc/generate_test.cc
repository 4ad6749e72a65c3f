// Generate as clients see it.

#include <gmock/gmock.h>

#include <set>
#include <thread>

#include "absl/strings/str_cat.h"
#include "tests/server/rpc/rpc_world.h"

namespace txl {
namespace {

using testing::SizeIs;
using Ids = std::vector<int32_t>;

TEST(Generate, StreamsStartedTokensAndFinished) {
  RpcWorld world;
  const Stream stream =
      world.Generate("tokens { ids: [1, 2, 3] } stop { max_tokens: 5 }");
  EXPECT_EQ(Outcome(stream.status), "OK");
  ASSERT_THAT(stream.events, SizeIs(7));
  EXPECT_TRUE(stream.events.front().has_started());
  EXPECT_TRUE(stream.events.back().has_finished());
  EXPECT_EQ(stream.ids(), world.runner.Continue({1, 2, 3}, 5));
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(stream.events[i + 1].has_token());
    EXPECT_EQ(stream.tokens[i].index(), i);
  }
}

TEST(Generate, SaysAtTheEndWhatTheTurnDid) {
  RpcWorld world;
  const Stream stream =
      world.Generate("tokens { ids: [1, 2, 3] } stop { max_tokens: 5 }");
  const v1::Finished& finished = stream.finished();
  EXPECT_EQ(finished.reason(), v1::FINISH_REASON_MAX_TOKENS);
  EXPECT_EQ(finished.position(), 8);
  EXPECT_EQ(finished.usage().prompt_tokens(), 3);
  EXPECT_EQ(finished.usage().generated_tokens(), 5);
  EXPECT_TRUE(finished.has_timing());
}

TEST(Generate, ReportsLogprobsOfTheModel) {
  RpcWorld world;
  const Stream stream = world.Generate(
      "tokens { ids: 9 } stop { max_tokens: 1 } output { logprobs: 2 }");
  ASSERT_THAT(stream.tokens, SizeIs(1));
  const v1::Token& token = stream.tokens[0];
  const std::vector<float> logprobs = world.runner.LogProbs(Ids{9});
  EXPECT_FLOAT_EQ(token.logprob(), logprobs[token.token_id()]);
  ASSERT_EQ(token.top_logprobs_size(), 2);
  EXPECT_EQ(token.top_logprobs(0).token_id(), token.token_id());
  EXPECT_GE(token.top_logprobs(0).logprob(), token.top_logprobs(1).logprob());
}

TEST(Generate, StreamsTheTextOfTheTokens) {
  RpcWorld world;
  const Stream stream = world.Generate("text: 'ab' stop { max_tokens: 20 }");
  EXPECT_EQ(stream.ids(), world.runner.Continue({'a', 'b'}, 20));
  EXPECT_EQ(stream.text(), *world.vocabulary.Decode(stream.ids()));
}

TEST(Generate, SendsTokenBytesOnlyWhenAsked) {
  RpcWorld world;
  const Stream plain = world.Generate("text: 'a' stop { max_tokens: 3 }");
  const Stream bytes = world.Generate(
      "text: 'a' stop { max_tokens: 3 } output { include_token_bytes: true }");
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(plain.tokens[i].token_bytes(), "");
    EXPECT_EQ(bytes.tokens[i].token_bytes(),
              std::string(1, static_cast<char>(bytes.tokens[i].token_id())));
  }
}

TEST(Generate, StartsWithTheEffectiveParameters) {
  RpcWorldOptions options;
  options.generation.sampling.top_k = 4;
  options.generation.max_tokens = 2;
  RpcWorld world(options);
  const Stream stream = world.Generate(
      "text: 'abc' sampling { temperature: 0 seed: 77 } "
      "stop { stop_token_ids: 255 }");
  const v1::Started& started = stream.started();
  EXPECT_EQ(started.position(), 0);
  EXPECT_EQ(started.prompt_token_count(), 3);
  EXPECT_EQ(started.seed(), 77u);
  EXPECT_EQ(started.sampling().seed(), 77u);
  EXPECT_EQ(started.sampling().temperature(), 0);
  EXPECT_EQ(started.sampling().top_k(), 4);
  EXPECT_EQ(started.sampling().penalty_window(), 64);
  EXPECT_EQ(started.stop().max_tokens(), 2);
  EXPECT_EQ(started.stop().stop_token_ids(0), 255u);
  EXPECT_EQ(started.model_fingerprint(), "f00d");
}

TEST(Generate, ChoosesASeedWhenThereIsNone) {
  RpcWorld world;
  std::set<uint64_t> seeds;
  for (int i = 0; i < 4; ++i) {
    seeds.insert(
        world.Generate("text: 'a' stop { max_tokens: 1 }").started().seed());
  }
  EXPECT_THAT(seeds, SizeIs(4));
}

TEST(Generate, OfATemporarySessionLeavesNothing) {
  RpcWorld world;
  const Stream stream = world.Generate("text: 'a' stop { max_tokens: 1 }");
  EXPECT_EQ(stream.started().session_id(), "");
  EXPECT_EQ(stream.session_metadata, "");
  EXPECT_TRUE(Eventually([&] { return world.store->counts().busy == 0; }));
  EXPECT_EQ(world.store->counts().idle, 0);
}

TEST(Generate, ContinuesASession) {
  RpcWorld world;
  world.MakeSession("s");
  const Stream first = world.Generate(
      "session_id: 's' tokens { ids: [5, 6] } stop { max_tokens: 3 }");
  const Stream second = world.Generate(
      "session_id: 's' tokens { ids: 7 } stop { max_tokens: 3 }");
  EXPECT_EQ(second.started().session_id(), "s");
  EXPECT_EQ(second.started().position(), 5);
  EXPECT_EQ(second.finished().position(), 9);
  Ids held = {5, 6};
  for (const int32_t id : first.ids()) held.push_back(id);
  held.push_back(7);
  EXPECT_EQ(second.ids(), world.runner.Continue(held, 3));
}

TEST(Generate, WithoutAPromptGoesOnFromTheLastToken) {
  RpcWorld world;
  world.MakeSession("s", {5, 6});
  const Stream stream =
      world.Generate("session_id: 's' stop { max_tokens: 3 }");
  EXPECT_EQ(stream.started().prompt_token_count(), 0);
  EXPECT_EQ(stream.ids(), world.runner.Continue({5, 6}, 3));
}

TEST(Generate, WithoutAPromptOnAFreshSessionNeedsStartTokens) {
  RpcWorld world;
  world.MakeSession("s");
  EXPECT_EQ(Outcome(world.Generate("session_id: 's'").status),
            "INVALID_ARGUMENT FIELD_INVALID prompt");
  RpcWorldOptions options;
  options.generation.start_tokens = {10};
  RpcWorld starting(options);
  const Stream stream = starting.Generate("stop { max_tokens: 2 }");
  EXPECT_EQ(stream.started().prompt_token_count(), 1);
  EXPECT_EQ(stream.ids(), starting.runner.Continue({10}, 2));
}

TEST(Generate, EndsAtAnEndToken) {
  RpcWorldOptions options;
  RpcWorld probe;
  const Ids expected = probe.runner.Continue({1}, 3);
  options.generation.end_tokens = {expected[2]};
  RpcWorld world(options);
  const Stream stream = world.Generate("tokens { ids: 1 }");
  EXPECT_EQ(stream.finished().reason(), v1::FINISH_REASON_END_TOKEN);
  EXPECT_EQ(stream.ids(), expected);
}

TEST(Generate, ChecksTheExpectedPosition) {
  RpcWorld world;
  world.MakeSession("s", {5, 6});
  const Stream wrong = world.Generate("session_id: 's' expected_position: 3");
  EXPECT_EQ(Outcome(wrong.status), "ABORTED POSITION_MISMATCH");
  EXPECT_EQ(ErrorMetadata(wrong.status, "position"), "2");
  EXPECT_EQ(Outcome(world
                        .Generate("session_id: 's' expected_position: 2 "
                                  "stop { max_tokens: 1 }")
                        .status),
            "OK");
}

TEST(Generate, OnAnUnknownSessionIsNotFound) {
  RpcWorld world;
  EXPECT_EQ(Outcome(world.Generate("session_id: 'x' text: 'a'").status),
            "NOT_FOUND SESSION_UNKNOWN");
}

TEST(Generate, RemembersTheRequestIdInTheLastTurn) {
  RpcWorld world;
  world.MakeSession("s");
  world.Generate(
      "session_id: 's' text: 'a' request_id: 'r-1' stop { max_tokens: 2 }");
  const v1::LastTurn last = world.GetSession("s").last_turn();
  EXPECT_EQ(last.request_id(), "r-1");
  EXPECT_EQ(last.outcome(), "MAX_TOKENS");
  EXPECT_EQ(last.generated_tokens(), 2);
}

TEST(Generate, SendsOneTokenAMessageByDefault) {
  RpcWorld world;
  const auto go_on = world.HoldWrites();
  std::thread client([&world] {
    const Stream stream = world.Generate("text: 'a' stop { max_tokens: 9 }");
    EXPECT_THAT(stream.events, SizeIs(11));
  });
  EXPECT_TRUE(Eventually(
      [&] { return world.metrics.Get().turns_finished["OK"] == 1; }));
  go_on();
  client.join();
}

TEST(Generate, TokensThatWaitForTheirWriteAreCounted) {
  RpcWorld world;
  const auto counted = [&world] {
    grpc::ClientContext client;
    v1::GetServerStatusResponse status;
    EXPECT_TRUE(world.model->GetServerStatus(&client, {}, &status).ok());
    return status.stream_queue_tokens();
  };
  const auto go_on = world.HoldWrites();
  std::thread client([&world] {
    const Stream stream = world.Generate("text: 'a' stop { max_tokens: 9 }");
    EXPECT_THAT(stream.tokens, SizeIs(9));
  });
  EXPECT_TRUE(Eventually(
      [&] { return world.metrics.Get().turns_finished["OK"] == 1; }));
  EXPECT_TRUE(Eventually([&] { return counted() == 9; }));
  go_on();
  client.join();
  EXPECT_EQ(counted(), 0);
}

TEST(Generate, SendsTokensThatAreThereTogetherWhenAsked) {
  RpcWorld world;
  const auto go_on = world.HoldWrites();
  std::thread client([&world] {
    const Stream stream = world.Generate(
        "text: 'a' stop { max_tokens: 9 } "
        "output { max_tokens_per_message: 4 }");
    ASSERT_THAT(stream.events, SizeIs(5));
    EXPECT_TRUE(stream.events[0].has_started());
    EXPECT_EQ(stream.events[1].tokens().tokens_size(), 4);
    EXPECT_EQ(stream.events[2].tokens().tokens_size(), 4);
    EXPECT_TRUE(stream.events[3].has_token());  // one is no batch
    EXPECT_TRUE(stream.events[4].has_finished());
    EXPECT_EQ(stream.ids(), world.runner.Continue({'a'}, 9));
  });
  EXPECT_TRUE(Eventually(
      [&] { return world.metrics.Get().turns_finished["OK"] == 1; }));
  go_on();
  client.join();
}

TEST(Generate, OfManyStreamsAtOnceGivesEachItsOwnTokens) {
  RpcWorld world;
  std::vector<std::thread> clients;
  for (int i = 0; i < 16; ++i) {
    clients.emplace_back([&world, i] {
      const Stream stream = world.Generate(
          absl::StrCat("tokens { ids: ", i, " } stop { max_tokens: 30 }"));
      EXPECT_EQ(Outcome(stream.status), "OK");
      EXPECT_EQ(stream.ids(), world.runner.Continue({i}, 30));
    });
  }
  for (std::thread& client : clients) client.join();
}

}  // namespace
}  // namespace txl
