#include "server/metrics/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <random>
#include <thread>
#include <vector>

#include "tests/server/metrics/conservation.h"

namespace txl {
namespace {

TEST(MetricsTest, StartsAtZero) {
  const Snapshot snapshot = Metrics().Get();
  EXPECT_EQ(snapshot.turns_started, 0);
  EXPECT_EQ(snapshot.steps, 0);
  EXPECT_EQ(snapshot.step_seconds, 0);
  EXPECT_TRUE(snapshot.turns_finished.empty());
  EXPECT_TRUE(snapshot.calls.empty());
  EXPECT_EQ(snapshot.distributions.request_seconds.count(), 0);
}

TEST(MetricsTest, UpdatesAddUp) {
  Metrics metrics;
  for (int i = 0; i < 3; ++i) {
    metrics.Update([](Snapshot& values) {
      ++values.turns_started;
      ++values.turns_finished["OK"];
      values.step_seconds += 0.5;
    });
  }
  metrics.Update(
      [](Snapshot& values) { ++values.turns_finished["CANCELLED"]; });
  const Snapshot snapshot = metrics.Get();
  EXPECT_EQ(snapshot.turns_started, 3);
  EXPECT_THAT(snapshot.turns_finished,
              ::testing::ElementsAre(::testing::Pair("CANCELLED", 1),
                                     ::testing::Pair("OK", 3)));
  EXPECT_EQ(snapshot.step_seconds, 1.5);
}

TEST(MetricsTest, ASnapshotIsACopy) {
  Metrics metrics;
  Snapshot snapshot = metrics.Get();
  snapshot.steps = 7;
  EXPECT_EQ(metrics.Get().steps, 0);
  metrics.Update([](Snapshot& values) { values.steps = 9; });
  EXPECT_EQ(snapshot.steps, 7);
}

TEST(MetricsTest, CallsAreCountedByMethodAndStatus) {
  Metrics metrics;
  const auto count = [&](absl::string_view method, absl::StatusCode code) {
    metrics.Update([&](Snapshot& values) { ++values.calls[{method, code}]; });
  };
  count("S/A", absl::StatusCode::kOk);
  count("S/B", absl::StatusCode::kOk);
  count("S/A", absl::StatusCode::kAborted);
  count("S/A", absl::StatusCode::kOk);
  const Snapshot snapshot = metrics.Get();
  EXPECT_EQ(snapshot.calls.size(), 3u);
  EXPECT_EQ(snapshot.calls.at({"S/A", absl::StatusCode::kOk}), 2);
  EXPECT_EQ(snapshot.calls.at({"S/A", absl::StatusCode::kAborted}), 1);
  EXPECT_EQ(snapshot.calls.at({"S/B", absl::StatusCode::kOk}), 1);
}

TEST(MetricsTest, TokensOfStreamsAreAddedWithoutAnUpdate) {
  Metrics metrics;
  metrics.AddStreamTokens(5);
  metrics.AddStreamTokens(-2);
  // Under the lock, where an Update would wait for ever.
  metrics.Update([&](Snapshot& s) {
    ++s.steps;
    metrics.AddStreamTokens(1);
  });
  EXPECT_EQ(metrics.Get().stream_queue_tokens, 4);
  EXPECT_EQ(metrics.Get().steps, 1);
}

// Each update moves a turn from active to finished or starts one, in two
// counters; no reader may see one without the other.
TEST(MetricsTest, ReadersNeverSeeHalfAnUpdate) {
  constexpr int kWriters = 3;
  constexpr int kTurns = 2000;
  Metrics metrics;
  std::atomic<int> running{kWriters};
  std::vector<std::thread> writers;
  for (int w = 0; w < kWriters; ++w) {
    writers.emplace_back([&] {
      for (int i = 0; i < kTurns; ++i) {
        metrics.Update([](Snapshot& values) {
          ++values.turns_started;
          ++values.turns_active;
          values.distributions.queue_seconds.Observe(0.1);
        });
        metrics.Update([](Snapshot& values) {
          --values.turns_active;
          ++values.turns_finished["OK"];
          ++values.turns_ended[{"OK", "MAX_TOKENS"}];
          values.distributions.request_seconds.Observe(0.2);
          values.distributions.prompt_tokens.Observe(3);
        });
      }
      --running;
    });
  }
  while (running > 0) {
    EXPECT_THAT(BrokenLaws(metrics.Get()), ::testing::IsEmpty());
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(metrics.Get().turns_started, kWriters * kTurns);
  EXPECT_EQ(metrics.Get().turns_finished.at("OK"), kWriters * kTurns);
}

constexpr std::array kBounds = {1., 2., 5.};

TEST(HistogramTest, StartsEmpty) {
  const Histogram histogram(kBounds);
  EXPECT_EQ(histogram.count(), 0);
  EXPECT_EQ(histogram.sum(), 0);
  EXPECT_EQ(histogram.AtMost(2), 0);
}

TEST(HistogramTest, AValueOnABoundIsWithinIt) {
  Histogram histogram(kBounds);
  for (const double value : {0.5, 1., 1.5, 2., 5.}) histogram.Observe(value);
  EXPECT_EQ(histogram.AtMost(0), 2);
  EXPECT_EQ(histogram.AtMost(1), 4);
  EXPECT_EQ(histogram.AtMost(2), 5);
  EXPECT_EQ(histogram.sum(), 10);
}

TEST(HistogramTest, ValuesOverTheLastBoundAreInTheCountOnly) {
  Histogram histogram(kBounds);
  histogram.Observe(5.1);
  histogram.Observe(std::numeric_limits<double>::infinity());
  EXPECT_EQ(histogram.AtMost(2), 0);
  EXPECT_EQ(histogram.count(), 2);
}

TEST(HistogramTest, ACopyGoesOnAlone) {
  Histogram histogram(kBounds);
  histogram.Observe(1);
  Histogram copy = histogram;
  copy.Observe(1);
  EXPECT_EQ(histogram.count(), 1);
  EXPECT_EQ(copy.count(), 2);
}

TEST(HistogramTest, EveryBoundCountsWhatSortingCounts) {
  std::mt19937 random(7);
  std::lognormal_distribution<double> spread(-4, 3);
  std::vector<double> values(1000);
  Histogram histogram(kFirstTokenBounds);
  for (double& value : values) {
    value = spread(random);
    histogram.Observe(value);
  }
  for (size_t i = 0; i < kFirstTokenBounds.size(); ++i) {
    EXPECT_EQ(histogram.AtMost(i),
              std::count_if(values.begin(), values.end(), [&](double value) {
                return value <= kFirstTokenBounds[i];
              }));
  }
}

std::vector<Histogram> All(const Distributions& d) {
  return {d.queue_seconds,
          d.request_seconds,
          d.prompt_tokens,
          d.generated_tokens,
          d.first_token_seconds,
          d.inter_token_seconds,
          d.stall_seconds,
          d.time_per_output_token_seconds,
          d.step_seconds[0],
          d.step_seconds[1],
          d.step_seconds[2],
          d.step_batch_size,
          d.step_tokens,
          d.restore_seconds,
          d.idle_before_evict_seconds,
          d.cancel_to_release_seconds};
}

TEST(DistributionsTest, HaveAscendingBoundsThatFit) {
  for (const Histogram& histogram : All(Distributions())) {
    ASSERT_LE(histogram.bounds().size(), Histogram::kMaxBounds);
    EXPECT_TRUE(std::is_sorted(histogram.bounds().begin(),
                               histogram.bounds().end(),
                               std::less_equal<double>()));
    EXPECT_GT(histogram.bounds().front(), 0);
  }
}

TEST(DistributionsTest, CanTellTheUsualObjectivesForTheFirstToken) {
  for (const double seconds : {0.2, 0.5, 1., 2.}) {
    EXPECT_NE(
        std::find(kFirstTokenBounds.begin(), kFirstTokenBounds.end(), seconds),
        kFirstTokenBounds.end());
  }
}

}  // namespace

}  // namespace txl
