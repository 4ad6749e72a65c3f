#include "server/exporter/status_collector.h"

#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include "tests/server/exporter/fake_status.h"

namespace txl {
namespace {

using testing::ExpectConserved;

TEST(StatusCollectorTest, AsksForTheStatusOncePerScrape) {
  int asked = 0;
  const StatusCollector collector(testing::FakeFacts(), [&] {
    ++asked;
    return testing::FakeStatus();
  });
  const auto families = collector.Collect();
  EXPECT_EQ(asked, 1);
  const testing::Scrape scrape =
      testing::ParseScrape(testing::TextOf(families));
  EXPECT_EQ(scrape.At("txl_steps_total"), 300);
  EXPECT_EQ(scrape.At("txl_session_state_bytes{tier=\"device\"}"), 8000);
  // The process is the real one.
  EXPECT_GT(scrape.At("process_resident_memory_bytes"), 0);
}

// Turns that go through a server's counters at random: queued, run for some
// tokens, ended; steps, some of which fail; and a softmax of two clusters.
class RandomWork {
 public:
  RandomWork(Metrics* metrics, unsigned seed)
      : metrics_(metrics), random_(seed) {}

  void Turn() {
    metrics_->Update([](Snapshot& s) {
      ++s.turns_started;
      ++s.turns_active;
      ++s.queued_calls;
      s.queued_tokens += 3;
    });
    metrics_->Update([](Snapshot& s) {
      --s.queued_calls;
      s.queued_tokens -= 3;
      s.distributions.queue_seconds.Observe(0.01);
    });
    const int tokens = Below(6);
    for (int i = 0; i < tokens; ++i) Token(i == 0);
    if (Below(2) == 0) Waste();
    const char* code = Below(3) == 0 ? "CANCELLED" : "OK";
    metrics_->Update([&](Snapshot& s) {
      --s.turns_active;
      ++s.turns_finished[code];
      ++s.turns_ended[{code, "REASON"}];
      s.distributions.request_seconds.Observe(0.5);
      s.distributions.prompt_tokens.Observe(3);
      s.distributions.generated_tokens.Observe(tokens);
    });
  }

 private:
  int Below(int limit) { return static_cast<int>(random_() % limit); }
  void Token(bool first) {
    const bool fails = Below(20) == 0;
    const bool computed = Below(2) == 0;
    metrics_->Update([&](Snapshot& s) {
      ++s.steps;
      s.distributions.step_batch_size.Observe(1);
      s.distributions.step_tokens.Observe(1);
      if (fails) {
        ++s.steps_failed;
      } else {
        s.distributions.step_seconds[0].Observe(0.001);
        s.softmax_tails.resize(2);
        ++(computed ? s.softmax_tails[0].computed : s.softmax_tails[0].skipped);
        ++s.softmax_tails[1].skipped;
      }
    });
    metrics_->Update([&](Snapshot& s) {
      ++s.rows_run;
      ++s.rows_decode;
      ++s.tokens_fed;
      ++s.tokens_sampled;
      ++s.tokens_delivered;
      (first ? s.distributions.first_token_seconds
             : s.distributions.inter_token_seconds)
          .Observe(0.002);
    });
  }
  void Waste() {
    metrics_->Update([](Snapshot& s) {
      ++s.rows_run;
      ++s.rows_decode;
      ++s.rows_discarded;
      ++s.tokens_sampled;
      ++s.tokens_discarded;
    });
  }

  Metrics* const metrics_;
  std::minstd_rand random_;
};

TEST(StatusCollectorTest, EveryScrapeIsConservedWhileEverythingMoves) {
  constexpr int kWorkers = 3;
  constexpr int kScrapes = 100;
  Metrics metrics;
  const StatusCollector collector(testing::FakeFacts(), [&] {
    ServerStatus status;
    status.snapshot = metrics.Get();
    return status;
  });
  const auto scrape = [&] {
    return testing::ParseScrape(testing::TextOf(collector.Collect()));
  };
  std::atomic<bool> stop{false};
  std::atomic<int> turns{0};
  std::vector<std::thread> workers;
  for (unsigned w = 0; w < kWorkers; ++w) {
    workers.emplace_back([&, w] {
      RandomWork work(&metrics, w + 1);
      for (; !stop; ++turns) work.Turn();
    });
  }
  for (int i = 0; i < kScrapes; ++i) ExpectConserved(scrape());
  stop = true;
  for (std::thread& worker : workers) worker.join();
  const testing::Scrape last = scrape();
  ExpectConserved(last);
  EXPECT_EQ(last.At("txl_requests_started_total"), turns);
  EXPECT_EQ(last.At("txl_requests_running"), 0);
  EXPECT_EQ(last.Sum("txl_softmax_tail_total"),
            2 * last.At("txl_step_seconds_count{kind=\"decode\"}"));
}

}  // namespace
}  // namespace txl
