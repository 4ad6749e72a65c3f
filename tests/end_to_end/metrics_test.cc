// The metrics endpoint of the real server, scraped with plain HTTP.

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/end_to_end/server_process.h"
#include "tests/end_to_end/turns.h"
#include "tests/server/exporter/scrape.h"

namespace txl::testing {
namespace {

const std::vector<uint32_t> kPrompt = {1, 2, 3};

class MetricsEndToEnd : public ::testing::Test {
 protected:
  Scrape Scraped() const { return ScrapeMetrics(address_); }
  static std::string Call(const std::string& method,
                          const std::string& status) {
    return absl::StrCat("txl_calls_total{method=\"txl.v1.", method,
                        "\",status=\"", status, "\"}");
  }

  ServerProcess server_{ShippedModel(),
                        {"--slots", "4", "--metrics-listen", "127.0.0.1:0"}};
  const std::string address_ = server_.ReadMetricsAddress();
};

// Whatever both tell, of a server at rest.
void ExpectSame(const Scrape& scrape, const v1::GetServerStatusResponse& s) {
  for (const auto& [sample, value] :
       std::vector<std::pair<std::string, double>>{
           {"txl_server_state{state=\"ready\"}",
            s.state() == v1::SERVER_STATE_READY},
           {"txl_sessions{state=\"busy\"}", s.sessions_busy()},
           {"txl_sessions{state=\"idle\"}", s.sessions_idle()},
           {"txl_sessions_created_total", s.sessions_created()},
           {"txl_sessions_ended_total", s.sessions_ended()},
           {"txl_session_slots_used", s.slots_used()},
           {"txl_session_slots", s.slots_total()},
           {"txl_session_state_bytes{tier=\"host\"}", s.image_bytes()},
           {"txl_requests_waiting", s.queued_calls()},
           {"txl_requests_running", s.turns_active() - s.queued_calls()},
           {"txl_requests_parked", s.turns_parked()},
           {"txl_queue_tokens", s.queued_tokens()},
           {"txl_stream_queue_tokens", s.stream_queue_tokens()},
           {"txl_requests_started_total", s.turns_started()},
           {"txl_steps_total", s.steps()},
           {"txl_steps_with_decode_total", s.steps_with_decode()},
           {"txl_step_seconds_count{kind=\"mixed\"}",
            s.steps_with_prompt_and_decode()},
           {"txl_rows_total{kind=\"decode\"}", s.rows_decode()},
           {"txl_rows_total{kind=\"prefill\"}", s.rows_prefill()},
           {"txl_rows_total{kind=\"score\"}", s.rows_score()},
           {"txl_rows_total{kind=\"rebuild\"}", s.rows_rebuild()},
           {"txl_rows_discarded_total", s.rows_discarded()},
           {"txl_tokens_sampled_total", s.tokens_sampled()},
           {"txl_tokens_total{kind=\"generated\"}", s.tokens_delivered()},
           {"txl_tokens_total{kind=\"wasted\"}", s.tokens_discarded()}}) {
    EXPECT_EQ(scrape.At(sample), value) << sample;
  }
  double finished = 0;
  for (const auto& [status, count] : s.turns_finished()) finished += count;
  EXPECT_EQ(scrape.Sum("txl_requests_total"), finished);
  EXPECT_NEAR(scrape.Sum("txl_step_seconds_sum"), s.step_seconds(), 1e-9);
  double tails = 0;
  for (const v1::SoftmaxTail& tail : s.softmax_tails()) {
    tails += static_cast<double>(tail.computed() + tail.skipped());
  }
  EXPECT_EQ(scrape.Sum("txl_softmax_tail_total"), tails);
}

TEST_F(MetricsEndToEnd, AScrapeIsWhatGetServerStatusSays) {
  CreateSession(server_.client(), "a");
  const v1::GenerateRequest turn = Greedy("a", kPrompt, 7);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(RunTurn(server_.client(), turn).status.ok());
  }
  EXPECT_TRUE(Append(server_.client(), "a", kPrompt, true).ok());
  IdleSession(server_.client(), "a");
  const v1::GetServerStatusResponse status = server_.Status();
  const Scrape scrape = Scraped();
  ExpectSame(scrape, status);
  ExpectConserved(scrape);
  EXPECT_EQ(scrape.At("txl_sessions{state=\"idle\"}"), 1);
}

TEST(MetricsOfAnAdaptiveSoftmax, EveryClusterOfEveryDistributionIsCounted) {
  ServerProcess server(GoldenModel("kimi-adaptive-div2"),
                       {"--slots", "2", "--metrics-listen", "127.0.0.1:0"});
  const std::string address = server.ReadMetricsAddress();
  CreateSession(server.client(), "a");
  EXPECT_TRUE(RunTurn(server.client(), Greedy("a", kPrompt, 20)).status.ok());
  EXPECT_TRUE(Append(server.client(), "a", kPrompt, true).ok());
  IdleSession(server.client(), "a");
  const v1::GetServerStatusResponse status = server.Status();
  const Scrape scrape = ScrapeMetrics(address);
  ExpectSame(scrape, status);
  ExpectConserved(scrape);
  ASSERT_EQ(status.softmax_tails_size(), 3);
  const int64_t wanted = status.rows_decode() + status.rows_score();
  EXPECT_GT(wanted, 20);
  int64_t skipped = 0;
  for (const v1::SoftmaxTail& tail : status.softmax_tails()) {
    EXPECT_EQ(tail.computed() + tail.skipped(), wanted);
    skipped += tail.skipped();
  }
  EXPECT_GT(skipped, 0);
}

TEST_F(MetricsEndToEnd, APlainSoftmaxHasNoTails) {
  EXPECT_TRUE(RunTurn(server_.client(), Greedy("", kPrompt, 7)).status.ok());
  EXPECT_EQ(server_.Status().softmax_tails_size(), 0);
  EXPECT_EQ(Scraped().Sum("txl_softmax_tail_total"), 0);
}

TEST_F(MetricsEndToEnd, TurnsAreInEveryHistogram) {
  const Scrape before = Scraped();
  const auto grown = [&before](const Scrape& now, const std::string& sample) {
    return now.At(sample) - before.At(sample);
  };
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(RunTurn(server_.client(), Greedy("", kPrompt, 7)).status.ok());
  }
  const Scrape now = Scraped();
  EXPECT_EQ(grown(now, "txl_time_to_first_token_seconds_count"), 3);
  EXPECT_EQ(grown(now, "txl_inter_token_latency_seconds_count"), 3 * 6);
  EXPECT_EQ(grown(now, "txl_request_queue_seconds_count"), 3);
  EXPECT_EQ(grown(now, "txl_request_duration_seconds_count"), 3);
  EXPECT_EQ(grown(now, "txl_request_prompt_tokens_sum"), 3 * 3);
  EXPECT_EQ(grown(now, "txl_request_generated_tokens_sum"), 3 * 7);
  EXPECT_EQ(grown(now, "txl_request_time_per_output_token_seconds_count"), 3);
  EXPECT_EQ(grown(now, "txl_tokens_total{kind=\"prompt\"}"), 3 * 3);
  EXPECT_EQ(
      now.At("txl_requests_total{outcome=\"OK\",reason=\"MAX_TOKENS\"}") -
          before.At("txl_requests_total{outcome=\"OK\",reason=\"MAX_TOKENS\"}"),
      3);
  EXPECT_GT(now.At("txl_request_duration_seconds_sum"), 0);
  EXPECT_GT(now.At("txl_last_step_timestamp_seconds"),
            now.At("process_start_time_seconds"));
  EXPECT_GT(now.At("process_resident_memory_bytes"), 1e6);
}

TEST_F(MetricsEndToEnd, CallsAreCountedByMethodAndStatus) {
  EXPECT_TRUE(RunTurn(server_.client(), Greedy("", kPrompt, 2)).status.ok());
  EXPECT_FALSE(
      RunTurn(server_.client(), Greedy("none", kPrompt, 2)).status.ok());
  v1::GetSessionRequest unknown;
  unknown.set_session_id("none");
  EXPECT_FALSE(server_.client().GetSession(unknown).ok());
  // A stream is counted when gRPC is done with it, after its client is.
  const auto counted = [&](const std::string& sample) {
    return WaitUntil([&] {
      const Scrape scrape = Scraped();
      return scrape.samples.contains(sample) && scrape.At(sample) == 1;
    });
  };
  EXPECT_TRUE(counted(Call("GenerationService/Generate", "OK")));
  EXPECT_TRUE(counted(Call("GenerationService/Generate", "NOT_FOUND")));
  EXPECT_TRUE(counted(Call("SessionService/GetSession", "NOT_FOUND")));
}

TEST_F(MetricsEndToEnd, EveryScrapeIsConservedWhileTurnsComeAndGo) {
  std::atomic<int> running{3};
  std::vector<std::thread> clients;
  for (int c = 0; c < 3; ++c) {
    clients.emplace_back([&, c] {
      const std::unique_ptr<Client> client = server_.NewClient();
      for (int turn = 0; turn < 5; ++turn) {
        Canceller canceller;
        CallOptions options;
        options.canceller = &canceller;
        // Some leave in the middle.
        RunTurn(*client, Greedy("", kPrompt, 5 + 7 * c), options,
                [&](int64_t tokens) {
                  if (turn % 2 == 1 && tokens == 3) canceller.Cancel();
                });
      }
      --running;
    });
  }
  int scrapes = 0;
  while (running > 0) {
    ExpectConserved(Scraped());
    ++scrapes;
  }
  for (std::thread& client : clients) client.join();
  EXPECT_GT(scrapes, 0);
  EXPECT_TRUE(
      WaitUntil([&] { return Scraped().At("txl_requests_running") == 0; }));
  ExpectConserved(Scraped());
}

TEST_F(MetricsEndToEnd, TheEndpointGoesWithTheServer) {
  server_.Terminate();
  EXPECT_EQ(server_.Wait(), 0);
  EXPECT_EQ(HttpGet(address_, "/metrics").code, 0);
}

TEST(MetricsAddress, OneThatCannotBeHadIsAnErrorThatNamesTheFlag) {
  for (const auto& [address, code] :
       {std::pair("nowhere", 2), std::pair("192.0.2.1:1", 1)}) {
    const Completed run =
        RunProgram({TXL_SERVER_PROGRAM, "--model", ShippedModel(), "--listen",
                    "127.0.0.1:0", "--metrics-listen", address});
    EXPECT_EQ(run.exit_code, code) << run.err;
    EXPECT_NE(run.err.find("--metrics-listen"), std::string::npos) << run.err;
    EXPECT_NE(run.err.find(address), std::string::npos) << run.err;
  }
}

}  // namespace
}  // namespace txl::testing
