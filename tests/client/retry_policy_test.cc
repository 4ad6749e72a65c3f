#include "client/retry_policy.h"

#include <grpcpp/support/status.h>
#include <gtest/gtest.h>

#include "client/call_error.h"
#include "tests/client/fake_service.h"

namespace txl {
namespace {

using testing::FakeError;

absl::Status Server(grpc::StatusCode code, const std::string& reason,
                    std::optional<int64_t> retry_milliseconds = {}) {
  return FromGrpcStatus(FakeError(code, "m", reason, "", retry_milliseconds));
}

RetryPolicy Policy() {
  RetryPolicy policy;
  policy.max_failures = 6;
  policy.first_delay = absl::Milliseconds(100);
  policy.max_delay = absl::Milliseconds(500);
  return policy;
}

TEST(IsRetryable, WhatAnotherAttemptMayNotMeet) {
  EXPECT_TRUE(IsRetryable(absl::UnavailableError("no server")));
  EXPECT_TRUE(IsRetryable(Server(grpc::UNAVAILABLE, "DRAINING")));
  EXPECT_TRUE(IsRetryable(Server(grpc::RESOURCE_EXHAUSTED, "QUEUE_FULL", 100)));
  EXPECT_TRUE(IsRetryable(Server(grpc::ABORTED, "SESSION_BUSY", 100)));
}

TEST(IsRetryable, CallsThatBrokeOnTheWay) {
  EXPECT_TRUE(IsRetryable(absl::InternalError("RST_STREAM")));
  EXPECT_TRUE(IsRetryable(absl::UnknownError("stream removed")));
  EXPECT_TRUE(IsRetryable(absl::CancelledError("reset by a proxy")));
}

TEST(IsRetryable, NotWhatTheServerDecided) {
  EXPECT_FALSE(IsRetryable(absl::OkStatus()));
  EXPECT_FALSE(IsRetryable(Server(grpc::INTERNAL, "STEP_FAILED")));
  EXPECT_FALSE(IsRetryable(Server(grpc::ABORTED, "SUPERSEDED")));
  EXPECT_FALSE(IsRetryable(Server(grpc::ABORTED, "SESSION_DELETED")));
  EXPECT_FALSE(IsRetryable(Server(grpc::NOT_FOUND, "SESSION_UNKNOWN")));
  EXPECT_FALSE(IsRetryable(Server(grpc::INVALID_ARGUMENT, "FIELD_INVALID")));
  EXPECT_FALSE(IsRetryable(Server(grpc::CANCELLED, "CANCELLED")));
  EXPECT_FALSE(IsRetryable(absl::DeadlineExceededError("too late")));
}

// The words of gRPC 1.51.
TEST(IsRetryable, NotWhatTheNextAttemptMeetsToo) {
  EXPECT_FALSE(IsRetryable(absl::UnavailableError(
      "failed to connect to all addresses; last error: INTERNAL: "
      "ipv4:127.0.0.1:1: Trying to connect an http1.x server")));
  const std::string proxy = "Received http2 header with status: ";
  EXPECT_FALSE(IsRetryable(absl::InternalError(proxy + "400")));
  for (const char* status : {"405", "413", "415", "431", "501", "505"}) {
    EXPECT_FALSE(IsRetryable(absl::UnknownError(proxy + status))) << status;
  }
  for (const char* status : {"408", "425", "500"}) {
    EXPECT_TRUE(IsRetryable(absl::UnknownError(proxy + status))) << status;
  }
  for (const char* status : {"429", "502", "503", "504"}) {
    EXPECT_TRUE(IsRetryable(absl::UnavailableError(proxy + status))) << status;
  }
}

TEST(IsRetryable, NotAMessageThatIsTooLarge) {
  EXPECT_FALSE(IsRetryable(absl::ResourceExhaustedError(
      "Received message larger than max (10000043 vs. 1048576)")));
}

TEST(RetryDelay, DoublesUpToTheLongest) {
  const absl::Status status = absl::UnavailableError("m");
  const absl::Duration expected[] = {
      absl::Milliseconds(100), absl::Milliseconds(200), absl::Milliseconds(400),
      absl::Milliseconds(500), absl::Milliseconds(500)};
  for (int failures = 1; failures <= 5; ++failures) {
    EXPECT_EQ(RetryDelay(Policy(), failures, status, 0),
              expected[failures - 1]);
  }
}

TEST(RetryDelay, GivesUpAfterTheLastFailure) {
  const absl::Status status = absl::UnavailableError("m");
  EXPECT_EQ(RetryDelay(Policy(), 6, status, 0), std::nullopt);
  RetryPolicy once;
  once.max_failures = 1;
  EXPECT_EQ(RetryDelay(once, 1, status, 0), std::nullopt);
}

TEST(RetryDelay, GivesUpWhereARetryMakesNoSense) {
  EXPECT_EQ(RetryDelay(Policy(), 1, absl::NotFoundError("m"), 0), std::nullopt);
}

TEST(RetryDelay, JitterShortensByUpToAHalf) {
  const absl::Status status = absl::UnavailableError("m");
  EXPECT_EQ(RetryDelay(Policy(), 1, status, 0.5), absl::Milliseconds(75));
  EXPECT_GT(*RetryDelay(Policy(), 1, status, 0.999), absl::Milliseconds(50));
}

TEST(RetryDelay, IsNeverShorterThanTheServerAsksFor) {
  const absl::Status busy = Server(grpc::ABORTED, "SESSION_BUSY", 3000);
  EXPECT_EQ(RetryDelay(Policy(), 1, busy, 0.9), absl::Seconds(3));
  const absl::Status soon = Server(grpc::ABORTED, "SESSION_BUSY", 1);
  EXPECT_EQ(RetryDelay(Policy(), 1, soon, 0), absl::Milliseconds(100));
}

}  // namespace
}  // namespace txl
