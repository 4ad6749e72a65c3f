// The small parts: life cycle, access log, cancelled calls.

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "server/api/api_call.h"
#include "server/api/call_record.h"
#include "server/api/lifecycle.h"
#include "server/base/log.h"
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

TEST(EndRecord, WritesOneLineWithNeitherTextNorIds) {
  FakeClock clock;
  Metrics metrics;
  CallRecord record = StartRecord("txl.v1.S/M", &clock, &metrics);
  record.tenant = "alice";
  record.key = "laptop";
  record.named_session = true;
  record.prompt_tokens = 3;
  record.generated_tokens = 4;
  clock.Advance(absl::Milliseconds(1500));
  LogCapture capture;
  EndRecord(record, FieldError("f", "m"));
  ASSERT_EQ(capture.lines().size(), 1u);
  const auto line = nlohmann::json::parse(capture.lines()[0]);
  EXPECT_EQ(line["severity"], "INFO");
  EXPECT_EQ(line["fields"], nlohmann::json({{"method", "txl.v1.S/M"},
                                            {"status", "INVALID_ARGUMENT"},
                                            {"reason", "FIELD_INVALID"},
                                            {"tenant", "alice"},
                                            {"key", "laptop"},
                                            {"named_session", true},
                                            {"prompt_tokens", 3},
                                            {"generated_tokens", 4},
                                            {"seconds", 1.5}}));
}

TEST(EndRecord, CountsTheCallByMethodAndStatus) {
  FakeClock clock;
  Metrics metrics;
  LogCapture capture;
  EndRecord(StartRecord("S/M", &clock, &metrics), absl::OkStatus());
  EndRecord(StartRecord("S/M", &clock, &metrics), FieldError("f", "m"));
  EndRecord(StartRecord("S/M", &clock, &metrics), FieldError("f", "m"));
  const Snapshot s = metrics.Get();
  EXPECT_EQ(s.calls.size(), 2u);
  EXPECT_EQ(s.calls.at({"S/M", absl::StatusCode::kOk}), 1);
  EXPECT_EQ(s.calls.at({"S/M", absl::StatusCode::kInvalidArgument}), 2);
}

TEST(EndRecord, ShowsTheOperatorWhatClientsDoNotSee) {
  FakeClock clock;
  Metrics metrics;
  LogCapture capture;
  EndRecord(StartRecord("m", &clock, &metrics),
            absl::InternalError("the cause"));
  const auto line = nlohmann::json::parse(capture.lines()[0]);
  EXPECT_EQ(line["severity"], "ERROR");
  EXPECT_EQ(line["fields"]["error"], "the cause");
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
