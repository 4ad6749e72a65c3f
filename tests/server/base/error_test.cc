#include "server/base/error.h"

#include <gtest/gtest.h>

#include <string>

namespace txl {
namespace {

TEST(ErrorTest, CarriesCodeMessageAndEveryDetail) {
  ErrorDetails details;
  details.reason = "POSITION_MISMATCH";
  details.field = "expected_position";
  details.retry = absl::Milliseconds(250);
  details.metadata = {{"position", "17"}, {"empty", ""}};
  const absl::Status status =
      MakeError(absl::StatusCode::kAborted, "at another position", details);
  EXPECT_EQ(status.code(), absl::StatusCode::kAborted);
  EXPECT_EQ(status.message(), "at another position");
  const ErrorDetails back = GetErrorDetails(status);
  EXPECT_EQ(back.reason, "POSITION_MISMATCH");
  EXPECT_EQ(back.field, "expected_position");
  EXPECT_EQ(back.retry, absl::Milliseconds(250));
  EXPECT_EQ(back.metadata, details.metadata);
}

TEST(ErrorTest, DetailsThatWereNotGivenStayAbsent) {
  ErrorDetails details;
  details.reason = "DRAINING";
  const ErrorDetails back =
      GetErrorDetails(MakeError(absl::StatusCode::kUnavailable, "", details));
  EXPECT_EQ(back.reason, "DRAINING");
  EXPECT_EQ(back.field, "");
  EXPECT_FALSE(back.retry.has_value());
  EXPECT_TRUE(back.metadata.empty());
}

TEST(ErrorTest, ARetryOfZeroIsNotAnAbsentRetry) {
  ErrorDetails details;
  details.retry = absl::ZeroDuration();
  const ErrorDetails back =
      GetErrorDetails(MakeError(absl::StatusCode::kAborted, "", details));
  EXPECT_EQ(back.retry, absl::ZeroDuration());
}

TEST(ErrorTest, AStatusOfOtherOriginHasNoDetails) {
  EXPECT_EQ(GetErrorDetails(absl::InternalError("broken")).reason, "");
  EXPECT_EQ(GetErrorDetails(absl::OkStatus()).reason, "");
}

TEST(ErrorTest, DetailsSurviveCopiesOfTheStatus) {
  const absl::Status status = FieldError("ttl", "too long");
  absl::Status copy;
  copy = status;
  EXPECT_EQ(GetErrorDetails(copy).field, "ttl");
}

TEST(ErrorTest, BytesThatAreNotUtf8BecomeReplacementCharacters) {
  ErrorDetails details;
  details.reason = "FIELD_INVALID";
  details.metadata["value"] = "a\xff";
  const ErrorDetails back = GetErrorDetails(
      MakeError(absl::StatusCode::kInvalidArgument, "", details));
  EXPECT_EQ(back.metadata.at("value"), "a\xEF\xBF\xBD");
}

TEST(ErrorTest, FieldErrorIsInvalidArgumentWithTheFieldsName) {
  const absl::Status status = FieldError("sampling.top_p", "above 1");
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "above 1");
  EXPECT_EQ(GetErrorDetails(status).reason, "FIELD_INVALID");
  EXPECT_EQ(GetErrorDetails(status).field, "sampling.top_p");
}

TEST(ErrorTest, OverLimitErrorHasItsOwnReason) {
  const absl::Status status = OverLimitError("prompt", "9000 tokens of 8192");
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "9000 tokens of 8192");
  EXPECT_EQ(GetErrorDetails(status).reason, "OVER_LIMIT");
  EXPECT_EQ(GetErrorDetails(status).field, "prompt");
}

TEST(CutUtf8, NeverCutsACharacter) {
  EXPECT_EQ(CutUtf8("abc", 3), "abc");
  EXPECT_EQ(CutUtf8("abc", 2), "ab");
  EXPECT_EQ(CutUtf8("a\xe2\x82\xac", 3), "a");  // a, euro sign
  EXPECT_EQ(CutUtf8("\xf0\x9f\x98\x80", 3), "");
}

TEST(ReasonOf, IsTheCodesNameWhenNobodyGaveOne) {
  EXPECT_EQ(ReasonOf(absl::CancelledError()), "CANCELLED");
  EXPECT_EQ(ReasonOf(FieldError("f", "m")), "FIELD_INVALID");
}

TEST(ShownText, HidesWhatDidNotComeFromOurRules) {
  EXPECT_EQ(ShownText(absl::InternalError("at 0x7f")), "internal error");
  EXPECT_EQ(ShownText(absl::UnknownError("errno 5")), "internal error");
  EXPECT_EQ(ShownText(absl::CancelledError("the client has left")),
            "the client has left");
  EXPECT_EQ(ShownText(FieldError("f", std::string(600, 'x'))),
            std::string(512, 'x'));
}

TEST(MalformedError, HasItsReason) {
  EXPECT_EQ(ReasonOf(MalformedError("m")), "MALFORMED_MESSAGE");
}

}  // namespace
}  // namespace txl
