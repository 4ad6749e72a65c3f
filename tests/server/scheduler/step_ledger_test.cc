#include "server/scheduler/step_ledger.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "server/metrics/conservation.h"

namespace txl {
namespace {

RowCounts OneOfEach() {
  RowCounts rows;
  for (RowKind kind : {RowKind::kDecode, RowKind::kPrefill, RowKind::kScore,
                       RowKind::kRebuild}) {
    rows.Add(kind);
  }
  return rows;
}

TEST(StepLedger, KeptRowsAreFedAndTheirTokenDelivered) {
  Metrics metrics;
  StepLedger ledger(&metrics);
  ledger.Kept(OneOfEach(), /*token_delivered=*/true);
  const Snapshot s = metrics.Get();
  EXPECT_EQ(s.rows_run, 4);
  EXPECT_EQ(s.rows_decode, 1);
  EXPECT_EQ(s.rows_prefill, 1);
  EXPECT_EQ(s.rows_score, 1);
  EXPECT_EQ(s.rows_rebuild, 1);
  EXPECT_EQ(s.tokens_fed, 4);
  EXPECT_EQ(s.tokens_sampled, 1);
  EXPECT_EQ(s.tokens_delivered, 1);
  EXPECT_EQ(BrokenLaws(s), std::vector<std::string>());
}

TEST(StepLedger, DiscardedRowsAndTokensAreBookedAsThat) {
  Metrics metrics;
  StepLedger ledger(&metrics);
  ledger.Discarded(OneOfEach(), 1);
  const Snapshot s = metrics.Get();
  EXPECT_EQ(s.rows_run, 4);
  EXPECT_EQ(s.rows_discarded, 4);
  EXPECT_EQ(s.tokens_fed, 0);
  EXPECT_EQ(s.tokens_sampled, 1);
  EXPECT_EQ(s.tokens_discarded, 1);
  EXPECT_EQ(BrokenLaws(s), std::vector<std::string>());
}

TEST(StepLedger, StepsAreCountedByWhatStoodInThem) {
  Metrics metrics;
  StepLedger ledger(&metrics);
  ledger.Step({.decode = true, .stream_and_prompt = true}, 0.25);
  ledger.Step({.decode = true, .stream_and_prompt = false}, 0.5);
  ledger.Step({.decode = false, .stream_and_prompt = false}, 0.25);
  const Snapshot s = metrics.Get();
  EXPECT_EQ(s.steps, 3);
  EXPECT_EQ(s.steps_with_decode, 2);
  EXPECT_EQ(s.steps_with_prompt_and_decode, 1);
  EXPECT_EQ(s.step_seconds, 1.0);
}

}  // namespace
}  // namespace txl
