#include "client/call_error.h"

#include <grpcpp/support/status.h>
#include <gtest/gtest.h>

#include "tests/client/fake_service.h"

namespace txl {
namespace {

using testing::FakeError;

TEST(CallError, KeepsCodeMessageReasonFieldAndRetryDelay) {
  const absl::Status status = FromGrpcStatus(FakeError(
      grpc::StatusCode::ABORTED, "busy", "SESSION_BUSY", "session_id", 1250));
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted);
  EXPECT_EQ(status.message(), "busy");
  const CallError error = GetCallError(status);
  EXPECT_EQ(error.reason, "SESSION_BUSY");
  EXPECT_EQ(error.fields, std::vector<std::string>{"session_id"});
  EXPECT_EQ(error.metadata.at("position"), "7");
  EXPECT_EQ(error.retry_delay, absl::Milliseconds(1250));
}

TEST(CallError, EveryGrpcCodeIsTheAbseilCodeOfThatName) {
  EXPECT_TRUE(FromGrpcStatus(grpc::Status::OK).ok());
  const std::pair<grpc::StatusCode, absl::StatusCode> kCodes[] = {
      {grpc::CANCELLED, absl::StatusCode::kCancelled},
      {grpc::INVALID_ARGUMENT, absl::StatusCode::kInvalidArgument},
      {grpc::DEADLINE_EXCEEDED, absl::StatusCode::kDeadlineExceeded},
      {grpc::NOT_FOUND, absl::StatusCode::kNotFound},
      {grpc::ALREADY_EXISTS, absl::StatusCode::kAlreadyExists},
      {grpc::RESOURCE_EXHAUSTED, absl::StatusCode::kResourceExhausted},
      {grpc::ABORTED, absl::StatusCode::kAborted},
      {grpc::UNIMPLEMENTED, absl::StatusCode::kUnimplemented},
      {grpc::INTERNAL, absl::StatusCode::kInternal},
      {grpc::UNAVAILABLE, absl::StatusCode::kUnavailable}};
  for (const auto& [grpc_code, code] : kCodes) {
    EXPECT_EQ(FromGrpcStatus(grpc::Status(grpc_code, "x")).code(), code);
  }
}

TEST(CallError, AStatusWithoutDetailsHasNoReason) {
  const CallError error = GetCallError(absl::UnavailableError("no server"));
  EXPECT_EQ(error.reason, "");
  EXPECT_FALSE(error.retry_delay.has_value());
  EXPECT_TRUE(error.fields.empty());
}

TEST(CallError, DetailsThatDoNotParseAreDropped) {
  const absl::Status status =
      FromGrpcStatus(grpc::Status(grpc::ABORTED, "x", "\xff\xff no proto"));
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted);
  EXPECT_EQ(GetCallError(status).reason, "");
}

TEST(CallError, PeopleSeeCodeReasonMessageAndRetry) {
  EXPECT_EQ(DescribeError(FromGrpcStatus(FakeError(
                grpc::RESOURCE_EXHAUSTED, "full", "QUEUE_FULL", "", 200))),
            "RESOURCE_EXHAUSTED (QUEUE_FULL): full; retry after 200ms");
  EXPECT_EQ(DescribeError(absl::NotFoundError("gone")), "NOT_FOUND: gone");
}

TEST(CallError, PeopleSeeTheFieldOnce) {
  const auto describe = [](const std::string& message) {
    return DescribeError(
        FromGrpcStatus(FakeError(grpc::INVALID_ARGUMENT, message,
                                 "FIELD_INVALID", "sampling.temperature")));
  };
  const std::string whole =
      "INVALID_ARGUMENT (FIELD_INVALID): sampling.temperature: must be in "
      "[0, 100]";
  EXPECT_EQ(describe("must be in [0, 100]"), whole);
  EXPECT_EQ(describe("sampling.temperature: must be in [0, 100]"), whole);
}

}  // namespace
}  // namespace txl
