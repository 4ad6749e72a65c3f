#include "server/exporter/status_families.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/server/exporter/fake_status.h"
#include "tests/server/metrics/conservation.h"

namespace txl {
namespace {

using testing::FakeStatus;
using testing::Scrape;
using testing::ScrapeOf;

TEST(StatusFamiliesTest, TheFakeServerKeepsAllLaws) {
  EXPECT_THAT(BrokenLaws(FakeStatus().snapshot), ::testing::IsEmpty());
  EXPECT_THAT(BrokenLaws(FakeStatus().sessions), ::testing::IsEmpty());
}

TEST(StatusFamiliesTest, WhatRunsIsInTheLabelsOfInfoMetrics) {
  const Scrape scrape = ScrapeOf(FakeStatus());
  EXPECT_EQ(scrape.At("txl_build_info{version=\"1.2.3\"}"), 1);
  EXPECT_EQ(scrape.At("txl_model_info{name=\"verona\",fingerprint=\"f00d\","
                      "device=\"cpu\",kernel=\"k\",form=\"projected\","
                      "weight_dtype=\"f32\",memory_dtype=\"f16\"}"),
            1);
}

TEST(StatusFamiliesTest, TheSelfTestSaysWhatItFoundAndTook) {
  const Scrape scrape = ScrapeOf(FakeStatus());
  EXPECT_EQ(scrape.At("txl_self_test_info{result=\"fell_back\"}"), 1);
  EXPECT_EQ(scrape.At("txl_self_test_seconds"), 0.75);
}

TEST(StatusFamiliesTest, TheStateIsTheOneThatIsOne) {
  for (const auto& [phase, name] :
       {std::pair(ServerPhase::kStarting, "starting"),
        std::pair(ServerPhase::kReady, "ready"),
        std::pair(ServerPhase::kDraining, "draining")}) {
    ServerStatus status = FakeStatus();
    status.phase = phase;
    const Scrape scrape = ScrapeOf(status);
    EXPECT_EQ(scrape.At(absl::StrCat("txl_server_state{state=\"", name, "\"}")),
              1);
    EXPECT_EQ(scrape.Sum("txl_server_state"), 1);
  }
}

struct Expected {
  const char* sample;
  double value;
};

const Expected kSamples[] = {
    {"txl_server_uptime_seconds", 1234.5},
    {"txl_tls_certificate_begin_seconds", 1700000100},
    {"txl_tls_certificate_end_seconds", 1700100000},
    {"txl_last_step_age_seconds", 1.5},
    {"txl_last_step_timestamp_seconds", 1700000000.25},
    {"txl_calls_total{method=\"txl.v1.S/A\",status=\"OK\"}", 71},
    {"txl_calls_total{method=\"txl.v1.S/A\",status=\"ABORTED\"}", 21},
    {"txl_calls_total{method=\"txl.v1.S/B\",status=\"OK\"}", 31},
    {"txl_requests_running", 5},
    {"txl_requests_waiting", 6},
    {"txl_requests_parked", 3},
    {"txl_requests_parked_out", 2},
    {"txl_parked_moves_total", 17},
    {"txl_queue_tokens", 66},
    {"txl_stream_queue_tokens", 77},
    {"txl_requests_started_total", 101},
    {"txl_requests_total{outcome=\"OK\",reason=\"MAX_TOKENS\"}", 60},
    {"txl_requests_total{outcome=\"OK\",reason=\"APPENDED\"}", 10},
    {"txl_requests_total{outcome=\"CANCELLED\",reason=\"CANCELLED\"}", 20},
    {"txl_tenant_requests_started_total{tenant=\"other\"}", 30},
    {"txl_tenant_requests_started_total{tenant=\"a\"}", 71},
    {"txl_tenant_requests_active{tenant=\"a\"}", 9},
    {"txl_tenant_prompt_tokens_total{tenant=\"a\"}", 255},
    {"txl_tenant_generated_tokens_total{tenant=\"a\"}", 400},
    {"txl_tenant_refused_total{tenant=\"other\"}", 4},
    {"txl_tenant_sessions{tenant=\"other\"}", 5},
    {"txl_tenant_session_bytes{tenant=\"a\"}", 6000},
    {"txl_steps_total", 300},
    {"txl_steps_failed_total", 3},
    {"txl_steps_with_decode_total", 250},
    {"txl_rows_total{kind=\"decode\"}", 610},
    {"txl_rows_total{kind=\"prefill\"}", 410},
    {"txl_rows_total{kind=\"score\"}", 210},
    {"txl_rows_total{kind=\"rebuild\"}", 110},
    {"txl_rows_kept_total", 1300},
    {"txl_rows_discarded_total", 40},
    {"txl_tokens_guessed_total", 91},
    {"txl_guesses_accepted_total", 53},
    {"txl_steps_saved_total", 29},
    {"txl_tokens_sampled_total", 608},
    {"txl_tokens_total{kind=\"prompt\"}", 555},
    {"txl_tokens_total{kind=\"generated\"}", 600},
    {"txl_tokens_total{kind=\"recomputed\"}", 110},
    {"txl_tokens_total{kind=\"wasted\"}", 8},
    {"txl_softmax_tail_total{cluster=\"0\",action=\"computed\"}", 700},
    {"txl_softmax_tail_total{cluster=\"0\",action=\"skipped\"}", 118},
    {"txl_softmax_tail_total{cluster=\"1\",action=\"computed\"}", 18},
    {"txl_softmax_tail_total{cluster=\"1\",action=\"skipped\"}", 800},
    {"txl_sessions{state=\"busy\"}", 11},
    {"txl_sessions{state=\"idle\"}", 12},
    {"txl_sessions_created_total", 123},
    {"txl_sessions_ended_total", 99},
    {"txl_sessions_loaded_total", 25},
    {"txl_sessions_stored_away_total", 26},
    {"txl_store_sessions", 501},
    {"txl_store_bytes{kind=\"database\"}", 502},
    {"txl_store_bytes{kind=\"images\"}", 503},
    {"txl_store_limit_bytes", 504},
    {"txl_store_lag_tokens", 505},
    {"txl_store_tokens_total", 506},
    {"txl_store_commits_total", 507},
    {"txl_ownership_total{event=\"acquired\"}", 508},
    {"txl_ownership_total{event=\"taken_over\"}", 509},
    {"txl_ownership_total{event=\"fenced\"}", 510},
    {"txl_ownership_total{event=\"busy\"}", 511},
    {"txl_store_lost_tokens_total", 512},
    {"txl_session_slots", 32},
    {"txl_session_slots_used", 8},
    {"txl_session_slots_used_ratio", 0.25},
    {"txl_session_state_bytes{tier=\"device\"}", 8000},
    {"txl_session_state_bytes{tier=\"host\"}", 7777},
    {"txl_session_evictions_total{from=\"device\",to=\"host\",cause="
     "\"slot_needed\"}",
     9},
    {"txl_session_restores_total{source=\"image\",outcome=\"ok\"}", 6},
    {"txl_session_restores_total{source=\"image\",outcome=\"failed\"}", 1},
    {"txl_session_restores_total{source=\"tokens\",outcome=\"ok\"}", 5},
    {"txl_session_restores_total{source=\"tokens\",outcome=\"failed\"}", 2},
    {"txl_prefix_cache_lookups_total", 88},
    {"txl_prefix_cache_hits_total", 66},
    {"txl_prompt_tokens_cached_total", 333},
    {"txl_prefix_cache_images", 13},
    {"txl_prefix_cache_bytes", 2222},
    {"txl_prefix_cache_evictions_total", 14},
    {"txl_memory_limit_bytes", 395},
    {"txl_memory_part_bytes{part=\"weights\"}", 10},
    {"txl_memory_part_bytes{part=\"slots\"}", 20},
    {"txl_memory_part_bytes{part=\"images\"}", 30},
    {"txl_memory_part_bytes{part=\"prefixes\"}", 35},
    {"txl_memory_part_bytes{part=\"ids\"}", 40},
    {"txl_memory_part_bytes{part=\"records\"}", 50},
    {"txl_memory_part_bytes{part=\"requests\"}", 60},
    {"txl_memory_part_bytes{part=\"streams\"}", 70},
    {"txl_memory_part_bytes{part=\"reserve\"}", 80},
    {"txl_memory_used_bytes{part=\"images\"}", 7777},
    {"txl_memory_used_bytes{part=\"prefixes\"}", 2222},
    {"txl_memory_used_bytes{part=\"ids\"}", 6666},
    {"txl_memory_used_bytes{part=\"records\"}", 5555},
    {"txl_memory_used_bytes{part=\"requests\"}", 4444},
    {"txl_memory_used_bytes{part=\"streams\"}", 3333},
    {"txl_memory_refused_total{part=\"requests\"}", 44},
    {"txl_memory_refused_total{part=\"streams\"}", 33},
    {"txl_memory_shedding", 1},
    {"txl_calls_open{state=\"reading\"}", 3},
    {"txl_calls_open{state=\"answering\"}", 2},
    {"txl_calls_open{state=\"working\"}", 4},
    {"txl_calls_refused_total", 51},
    {"txl_connections", 61},
    {"txl_connections_limit", 62},
    {"txl_connections_refused_total", 63},
    {"txl_work_queued", 4},
    {"txl_work_running", 1},
    {"txl_work_total{outcome=\"done\"}", 52},
    {"txl_work_total{outcome=\"refused\"}", 53},
    {"txl_log_lines_dropped_total", 54},
    {"txl_audit_lines_lost_total", 71},
    {"txl_trace_lines_lost_total", 72},
    {"process_cpu_seconds_total", 12.5},
    {"process_start_time_seconds", 1699999000},
    {"process_resident_memory_bytes", 4096},
    {"process_virtual_memory_bytes", 8192},
    {"process_threads", 13},
    {"process_open_fds", 14},
    {"process_max_fds", 1024}};

TEST(StatusFamiliesTest, EveryCountHasItsOwnSample) {
  const Scrape scrape = ScrapeOf(FakeStatus());
  for (const auto& [sample, value] : kSamples) {
    EXPECT_EQ(scrape.At(sample), value) << sample;
  }
}

TEST(StatusFamiliesTest, EveryDistributionHasItsOwnHistogram) {
  const Scrape scrape = ScrapeOf(FakeStatus());
  struct Row {
    const char* name;
    const char* labels;
    double count;
    double sum;
  };
  for (const auto& [name, labels, count, sum] : std::vector<Row>{
           {"txl_request_queue_seconds", "", 95, 23.75},
           {"txl_request_duration_seconds", "", 90, 45},
           {"txl_request_prompt_tokens", "", 90, 1440},
           {"txl_request_generated_tokens", "", 80, 2560},
           {"txl_time_to_first_token_seconds", "", 60, 3.75},
           {"txl_inter_token_latency_seconds", "", 540, 16.875},
           {"txl_request_time_per_output_token_seconds", "", 50, 1.5625},
           {"txl_cancel_to_release_seconds", "", 20, 2.5},
           {"txl_stream_stall_seconds", "", 2, 8},
           {"txl_step_seconds", "{kind=\"decode\"}", 200, 3.125},
           {"txl_step_seconds", "{kind=\"prompt\"}", 80, 20},
           {"txl_step_seconds", "{kind=\"mixed\"}", 17, 8.5},
           {"txl_step_batch_size", "", 300, 1200},
           {"txl_step_tokens", "", 300, 2400},
           {"txl_session_idle_before_evict_seconds", "", 9, 576},
           {"txl_store_commit_seconds", "", 507, 63.375},
           {"txl_session_restore_seconds", "{source=\"image\"}", 6, 3}}) {
    EXPECT_EQ(scrape.types.at(name), "histogram");
    EXPECT_EQ(scrape.At(absl::StrCat(name, "_count", labels)), count) << name;
    EXPECT_EQ(scrape.At(absl::StrCat(name, "_sum", labels)), sum) << name;
  }
}

TEST(StatusFamiliesTest, ConservationHoldsInTheText) {
  testing::ExpectConserved(ScrapeOf(FakeStatus()));
  testing::ExpectConserved(ScrapeOf(ServerStatus()));
}

TEST(StatusFamiliesTest, BeforeAnyWorkEverythingIsZeroAndDeclared) {
  const Scrape idle = ScrapeOf(ServerStatus());
  for (const char* sample :
       {"txl_last_step_timestamp_seconds", "txl_session_slots_used_ratio",
        "txl_steps_total", "txl_requests_running"}) {
    EXPECT_EQ(idle.At(sample), 0) << sample;
  }
  EXPECT_EQ(idle.types, ScrapeOf(FakeStatus()).types);
}

TEST(StatusFamiliesTest, TheStoresStateIsTheOneThatIsOne) {
  for (const char* name : {"serving", "full", "failed"}) {
    ServerStatus status = FakeStatus();
    status.store->state = name;
    const Scrape scrape = ScrapeOf(status);
    EXPECT_EQ(scrape.At(absl::StrCat("txl_store_state{state=\"", name, "\"}")),
              1);
    EXPECT_EQ(scrape.Sum("txl_store_state"), 1);
  }
}

TEST(StatusFamiliesTest, WithoutAStoreItsFamiliesHaveNoSample) {
  const Scrape scrape = ScrapeOf(ServerStatus());
  EXPECT_EQ(scrape.types.at("txl_store_state"), "gauge");
  for (const auto& [sample, value] : scrape.samples) {
    EXPECT_FALSE(absl::StartsWith(sample, "txl_store_") ||
                 absl::StartsWith(sample, "txl_sessions_loaded_total") ||
                 absl::StartsWith(sample, "txl_sessions_stored_away_total"))
        << sample;
  }
}

TEST(StatusFamiliesTest, APlainSoftmaxHasNoTails) {
  ServerStatus status = FakeStatus();
  status.snapshot.softmax_tails.clear();
  const Scrape scrape = ScrapeOf(status);
  EXPECT_EQ(scrape.types.at("txl_softmax_tail_total"), "counter");
  for (const auto& [sample, value] : scrape.samples) {
    EXPECT_FALSE(absl::StartsWith(sample, "txl_softmax_tail_total")) << sample;
  }
}

TEST(StatusFamiliesTest, NamesFollowPrometheusConventions) {
  const Scrape scrape = ScrapeOf(FakeStatus());
  for (const auto& [name, type] : scrape.types) {
    EXPECT_EQ(name.find_first_not_of("abcdefghijklmnopqrstuvwxyz_"),
              std::string::npos)
        << name;
    EXPECT_TRUE(absl::StartsWith(name, "txl_") ||
                absl::StartsWith(name, "process_"))
        << name;
    EXPECT_EQ(absl::EndsWith(name, "_total"), type == "counter") << name;
    EXPECT_FALSE(scrape.helps.at(name).empty()) << name;
  }
}

constexpr std::array kBounds = {0.5, 1., 10.};

TEST(FamilyListTest, WritesCountersAndGaugesWithTheirLabels) {
  FamilyList list;
  list.Counter("a_total", "what a is").Sample(3);
  list.Gauge("b", "what b is")
      .Sample(1.5, {{"x", "1"}, {"y", "two"}})
      .Sample(-2, {{"x", "2"}, {"y", "three"}});
  EXPECT_EQ(testing::TextOf(list.Take()),
            "# HELP a_total what a is\n"
            "# TYPE a_total counter\n"
            "a_total 3\n"
            "# HELP b what b is\n"
            "# TYPE b gauge\n"
            "b{x=\"1\",y=\"two\"} 1.5\n"
            "b{x=\"2\",y=\"three\"} -2\n");
}

TEST(FamilyListTest, BucketsOfAHistogramAddUp) {
  Histogram histogram(kBounds);
  for (const double value : {0.25, 0.5, 0.75, 2., 99.}) {
    histogram.Observe(value);
  }
  FamilyList list;
  list.Histograms("h_seconds", "what h is").Sample(histogram, {{"k", "v"}});
  const testing::Scrape scrape =
      testing::ParseScrape(testing::TextOf(list.Take()));
  EXPECT_EQ(scrape.types.at("h_seconds"), "histogram");
  EXPECT_EQ(scrape.At("h_seconds_count{k=\"v\"}"), 5);
  EXPECT_EQ(scrape.At("h_seconds_sum{k=\"v\"}"), 102.5);
  EXPECT_EQ(scrape.At("h_seconds_bucket{k=\"v\",le=\"0.5\"}"), 2);
  EXPECT_EQ(scrape.At("h_seconds_bucket{k=\"v\",le=\"1\"}"), 3);
  EXPECT_EQ(scrape.At("h_seconds_bucket{k=\"v\",le=\"10\"}"), 4);
  EXPECT_EQ(scrape.At("h_seconds_bucket{k=\"v\",le=\"+Inf\"}"), 5);
  EXPECT_EQ(scrape.samples.size(), 6u);
}

TEST(FamilyListTest, AFamilyWithoutASampleIsStillDeclared) {
  FamilyList list;
  list.Counter("none_total", "nothing yet");
  EXPECT_EQ(testing::TextOf(list.Take()),
            "# HELP none_total nothing yet\n# TYPE none_total counter\n");
}

TEST(FamilyListTest, BigCountsAreWholeNumbers) {
  FamilyList list;
  list.Counter("big_total", "big").Sample(9'007'199'254'740'991.0);
  EXPECT_NE(testing::TextOf(list.Take()).find("big_total 9007199254740991\n"),
            std::string::npos);
}

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
