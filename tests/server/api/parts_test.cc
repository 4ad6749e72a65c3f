// The small parts: life cycle, cancelled calls.

#include <gmock/gmock.h>

#include <optional>

#include "server/api/api_call.h"
#include "server/api/call_record.h"
#include "server/api/lifecycle.h"
#include "tests/fakes/fake_clock.h"
#include "tests/server/api/convert_fixture.h"

namespace txl {
namespace {

TEST(Lifecycle, RefusesUntilReadyAndOnceDraining) {
  Lifecycle lifecycle;
  EXPECT_EQ(Refusal(lifecycle.CheckServing()), "UNAVAILABLE NOT_READY");
  lifecycle.SetReady();
  EXPECT_TRUE(lifecycle.CheckServing().ok());
  lifecycle.SetDraining();
  EXPECT_EQ(Refusal(lifecycle.CheckServing()), "UNAVAILABLE DRAINING");
}

TEST(Lifecycle, NeverLeavesDraining) {
  Lifecycle lifecycle;
  lifecycle.SetDraining();
  lifecycle.SetReady();
  EXPECT_EQ(lifecycle.phase(), ServerPhase::kDraining);
}

TEST(Lifecycle, RefusesTurnsOfATenantThatDrains) {
  Lifecycle lifecycle;
  lifecycle.SetReady();
  EXPECT_TRUE(lifecycle.CheckTenant("alice").ok());
  lifecycle.SetTenantDraining("bob", true);
  lifecycle.SetTenantDraining("alice", true);
  const absl::Status refused = lifecycle.CheckTenant("alice");
  EXPECT_EQ(Refusal(refused), "UNAVAILABLE TENANT_DRAINING");
  EXPECT_TRUE(GetErrorDetails(refused).retry.has_value());
  EXPECT_TRUE(lifecycle.CheckTenant("carol").ok());
  EXPECT_TRUE(lifecycle.CheckServing().ok());
  EXPECT_THAT(lifecycle.draining_tenants(),
              testing::ElementsAre("alice", "bob"));
  lifecycle.SetTenantDraining("alice", false);
  EXPECT_TRUE(lifecycle.CheckTenant("alice").ok());
  EXPECT_THAT(lifecycle.draining_tenants(), testing::ElementsAre("bob"));
}

TEST(CancelTurn, SaysDeadlineOnceThatHasPassed) {
  FakeClock clock;
  Metrics metrics;
  const CallRecord record = StartRecord("m", &clock, &metrics);
  const absl::Duration deadline = clock.Monotonic() + absl::Seconds(1);
  const auto why = [&](std::optional<absl::Duration> of_call) {
    CancelToken token;
    CancelTurn(record, of_call, &token);
    return token.why();
  };
  EXPECT_EQ(why(std::nullopt), CancelToken::Why::kCancelled);
  EXPECT_EQ(why(deadline), CancelToken::Why::kCancelled);
  clock.Advance(absl::Seconds(1));
  EXPECT_EQ(why(deadline), CancelToken::Why::kDeadline);
}

}  // namespace
}  // namespace txl
