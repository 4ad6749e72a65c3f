#include "server/rpc/call_context.h"

#include <gtest/gtest.h>

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "server/base/error.h"

namespace txl {
namespace {

google::rpc::Status Rich(const grpc::Status& status) {
  google::rpc::Status rich;
  EXPECT_TRUE(rich.ParseFromString(status.error_details()));
  return rich;
}

template <typename Detail>
Detail Find(const grpc::Status& status) {
  Detail detail;
  bool found = false;
  const google::rpc::Status rich = Rich(status);
  for (const auto& any : rich.details()) {
    if (any.Is<Detail>()) found = any.UnpackTo(&detail);
  }
  EXPECT_TRUE(found) << Detail::descriptor()->full_name();
  return detail;
}

TEST(ToGrpcStatus, OfOkIsOk) {
  EXPECT_TRUE(ToGrpcStatus(absl::OkStatus()).ok());
}

TEST(ToGrpcStatus, KeepsCodeAndMessage) {
  const grpc::Status status = ToGrpcStatus(FieldError("f", "is bad"));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(status.error_message(), "is bad");
  EXPECT_EQ(Rich(status).code(), 3);
  EXPECT_EQ(Rich(status).message(), "is bad");
}

TEST(ToGrpcStatus, AlwaysCarriesAReasonInOurDomain) {
  const ErrorDetails details = {
      "POSITION_MISMATCH", "", {}, {{"position", "7"}}};
  const auto info = Find<google::rpc::ErrorInfo>(
      ToGrpcStatus(MakeError(absl::StatusCode::kAborted, "m", details)));
  EXPECT_EQ(info.domain(), "txl.v1");
  EXPECT_EQ(info.reason(), "POSITION_MISMATCH");
  EXPECT_EQ(info.metadata().at("position"), "7");
}

TEST(ToGrpcStatus, NamesTheFieldInABadRequest) {
  const auto bad = Find<google::rpc::BadRequest>(
      ToGrpcStatus(OverLimitError("stop.max_tokens", "too many")));
  ASSERT_EQ(bad.field_violations_size(), 1);
  EXPECT_EQ(bad.field_violations(0).field(), "stop.max_tokens");
  EXPECT_EQ(bad.field_violations(0).description(), "too many");
}

TEST(ToGrpcStatus, SaysWhenARetryMakesSense) {
  ErrorDetails details;
  details.reason = "SESSION_BUSY";
  details.retry = absl::Milliseconds(1250);
  const auto retry = Find<google::rpc::RetryInfo>(
      ToGrpcStatus(MakeError(absl::StatusCode::kAborted, "m", details)));
  EXPECT_EQ(retry.retry_delay().seconds(), 1);
  EXPECT_EQ(retry.retry_delay().nanos(), 250'000'000);
}

TEST(ToGrpcStatus, CarriesNoDetailThatDoesNotApply) {
  ErrorDetails details;
  details.reason = "SESSION_DELETED";
  const grpc::Status status =
      ToGrpcStatus(MakeError(absl::StatusCode::kAborted, "m", details));
  EXPECT_EQ(Rich(status).details_size(), 1);
}

TEST(ToGrpcStatus, HidesTheTextOfInternalErrorsThatAreNotOurs) {
  const grpc::Status status =
      ToGrpcStatus(absl::InternalError("/secret/path: null pointer"));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INTERNAL);
  EXPECT_EQ(status.error_message(), "internal error");
  EXPECT_EQ(status.error_details().find("secret"), std::string::npos);
}

TEST(ToGrpcStatus, KeepsTrailersSmall) {
  const grpc::Status status =
      ToGrpcStatus(FieldError("text", std::string(100'000, 'x')));
  EXPECT_LT(status.error_message().size() + status.error_details().size(),
            4096u);
}

}  // namespace

}  // namespace txl
