// A stream gives the same tokens alone and among others.

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <ostream>
#include <thread>

#include "absl/synchronization/notification.h"
#include "tests/end_to_end/golden_case.h"
#include "tests/end_to_end/server_process.h"
#include "tests/end_to_end/turns.h"

namespace txl::testing {
namespace {

constexpr int kStreams = 64;

// A step's implementation, what it promises, and streams long enough to meet.
struct Promise {
  const char* step;
  float logprob_tolerance;
  int tokens;
  int group;  // stream i begins when stream i - group has its first token

  friend void PrintTo(const Promise& promise, std::ostream* out) {
    *out << promise.step;
  }
};

// Even streams are greedy, odd ones seeded, each with its own parameters.
v1::GenerateRequest Stream(int i, int tokens) {
  v1::GenerateRequest request = Greedy(
      "", RandomIds(i, 1 + i * 7 % 50, kVocabulary), tokens + i * 13 % 64);
  if (i % 2 == 0) return request;
  v1::SamplingParams& sampling = *request.mutable_sampling();
  sampling.set_temperature(0.5 + 0.05 * i);
  sampling.set_seed(1000 + i);
  if (i % 3 == 0) sampling.set_top_k(5 + i % 40);
  if (i % 5 == 0) sampling.set_top_p(0.9);
  if (i % 7 == 0) sampling.set_repetition_penalty(1.2);
  if (i % 11 == 0) sampling.set_min_p(0.02);
  if (i % 13 == 0) sampling.set_typical_p(0.8);
  return request;
}

// Runs all at a time, stream i when stream i - group has its first token.
std::vector<TurnOutput> RunTogether(
    ServerProcess& server, const std::vector<v1::GenerateRequest>& requests,
    int group) {
  const int count = static_cast<int>(requests.size());
  std::vector<TurnOutput> outputs(count);
  std::vector<absl::Notification> begun(count);
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) {
    threads.emplace_back([&, i] {
      if (i >= group) begun[i - group].WaitForNotification();
      outputs[i] =
          RunTurn(server.client(), requests[i], {}, [&](int64_t tokens) {
            if (tokens == 1) begun[i].Notify();
          });
      if (!begun[i].HasBeenNotified()) begun[i].Notify();
    });
  }
  for (std::thread& thread : threads) thread.join();
  return outputs;
}

double MeanDecodeRows(const v1::GetServerStatusResponse& before,
                      const v1::GetServerStatusResponse& after) {
  return static_cast<double>(after.rows_decode() - before.rows_decode()) /
         static_cast<double>(after.steps_with_decode() -
                             before.steps_with_decode());
}

int64_t CountTokens(const std::vector<TurnOutput>& outputs) {
  int64_t tokens = 0;
  for (const TurnOutput& output : outputs) {
    tokens += static_cast<int64_t>(output.ids.size());
  }
  return tokens;
}

class Company : public ::testing::TestWithParam<Promise> {};

TEST_P(Company, SixtyFourStreamsGiveWhatEachGivesAlone) {
  ServerProcess server(
      GoldenModel("kimi-char"),
      {"--slots", "64", "--step", GetParam().step, "--config", NeverParked()});
  std::vector<v1::GenerateRequest> requests;
  std::vector<TurnOutput> alone;
  for (int i = 0; i < kStreams; ++i) {
    requests.push_back(Stream(i, GetParam().tokens));
    alone.push_back(RunTurn(server.client(), requests[i]));
    ASSERT_TRUE(alone[i].status.ok()) << alone[i].status;
  }
  const v1::GetServerStatusResponse before = server.Status();
  const std::vector<TurnOutput> together =
      RunTogether(server, requests, GetParam().group);
  const v1::GetServerStatusResponse after = server.Status();

  for (int i = 0; i < kStreams; ++i) {
    EXPECT_EQ(together[i].ids, alone[i].ids) << "stream " << i;
    ASSERT_EQ(together[i].logprobs.size(), alone[i].logprobs.size());
    for (size_t k = 0; k < alone[i].logprobs.size(); ++k) {
      EXPECT_NEAR(together[i].logprobs[k], alone[i].logprobs[k],
                  GetParam().logprob_tolerance);
    }
  }
  EXPECT_GE(MeanDecodeRows(before, after), 16);
  EXPECT_EQ(after.turns_finished().at("OK") - before.turns_finished().at("OK"),
            kStreams);
  EXPECT_EQ(after.turns_active(), 0);
  EXPECT_EQ(after.tokens_delivered() - before.tokens_delivered(),
            CountTokens(together));
}

INSTANTIATE_TEST_SUITE_P(Steps, Company,
                         ::testing::Values(Promise{"native", 0.0f, 800, 24},
                                           Promise{"torch", 1e-4f, 100, 8}),
                         [](const ::testing::TestParamInfo<Promise>& info) {
                           return info.param.step;
                         });

// Counted while all of them run: from when the last one has begun until the
// first one nears its end.
TEST(EqualCompany, ThirtyTwoEqualStreamsShareTheirSteps) {
  constexpr int kEqual = 32;
  constexpr int kTokens = 4000;  // long beside the time to start the streams
  constexpr int kNearEnd = kTokens - 100;
  ServerProcess server(GoldenModel("kimi-char"),
                       {"--slots", "32", "--config", NeverParked()});
  const v1::GenerateRequest request =
      Greedy("", std::vector<uint32_t>{1, 2, 3}, kTokens);
  std::atomic<int> begun{0};
  std::once_flag near_end;
  v1::GetServerStatusResponse before, after;
  const auto watch = [&](int64_t tokens) {
    if (tokens == 1 && ++begun == kEqual) before = server.Status();
    if (tokens == kNearEnd) {
      std::call_once(near_end, [&] { after = server.Status(); });
    }
  };
  std::vector<TurnOutput> outputs(kEqual);
  std::vector<std::thread> threads;
  for (TurnOutput& output : outputs) {
    threads.emplace_back(
        [&] { output = RunTurn(server.client(), request, {}, watch); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(after.steps_with_decode(), before.steps_with_decode());
  EXPECT_GE(MeanDecodeRows(before, after), 30);
  EXPECT_EQ(CountTokens(outputs), kEqual * kTokens);
  for (const TurnOutput& output : outputs) {
    EXPECT_EQ(output.ids, outputs[0].ids);
  }
}

}  // namespace
}  // namespace txl::testing
