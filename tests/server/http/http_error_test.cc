#include "server/http/http_error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "server/base/error.h"

namespace txl {
namespace {

using Code = absl::StatusCode;
using Json = nlohmann::json;

absl::Status Error(Code code, const std::string& reason,
                   const std::string& field = "",
                   std::optional<absl::Duration> retry = std::nullopt) {
  ErrorDetails details;
  details.reason = reason;
  details.field = field;
  details.retry = retry;
  return MakeError(code, "what is wrong", details);
}

std::string Header(const HttpReply& reply, const std::string& name) {
  for (const auto& [key, value] : reply.headers) {
    if (key == name) return value;
  }
  return "absent";
}

TEST(HttpStatusOf, EveryCodeHasItsStatus) {
  const std::vector<std::pair<Code, int>> statuses = {
      {Code::kOk, 200},
      {Code::kInvalidArgument, 400},
      {Code::kUnauthenticated, 401},
      {Code::kPermissionDenied, 403},
      {Code::kNotFound, 404},
      {Code::kUnimplemented, 404},
      {Code::kAlreadyExists, 409},
      {Code::kAborted, 409},
      {Code::kFailedPrecondition, 409},
      {Code::kResourceExhausted, 429},
      {Code::kCancelled, 499},
      {Code::kUnavailable, 503},
      {Code::kDeadlineExceeded, 504},
      {Code::kInternal, 500},
      {Code::kUnknown, 500},
      {Code::kDataLoss, 500},
      {Code::kOutOfRange, 500}};
  for (const auto& [code, status] : statuses) {
    EXPECT_EQ(HttpStatusOf(absl::Status(code, "")), status) << code;
  }
}

TEST(HttpStatusOf, TwoReasonsHaveAStatusOfTheirOwn) {
  EXPECT_EQ(HttpStatusOf(Error(Code::kInvalidArgument, "BODY_TOO_LARGE")), 413);
  EXPECT_EQ(HttpStatusOf(Error(Code::kUnimplemented, "METHOD_NOT_ALLOWED")),
            405);
}

TEST(ErrorJson, IsOpenAisObject) {
  const Json json = Json::parse(
      ErrorJson(Error(Code::kInvalidArgument, "FIELD_INVALID", "top_p")));
  EXPECT_EQ(json, Json({{"error",
                         {{"message", "what is wrong"},
                          {"type", "invalid_request_error"},
                          {"param", "top_p"},
                          {"code", "FIELD_INVALID"}}}}));
}

TEST(ErrorJson, NamesNoFieldWhereThereIsNone) {
  const Json json =
      Json::parse(ErrorJson(Error(Code::kInternal, "STEP_FAILED")));
  EXPECT_TRUE(json["error"]["param"].is_null());
}

TEST(ErrorJson, NamesTheFieldAsTheBodySpellsIt) {
  const std::vector<std::pair<std::string, std::string>> fields = {
      {"top_p", "top_p"},
      {"sampling.top_p", "top_p"},
      {"stop.max_tokens", "max_tokens"},
      {"stop.stop_texts", "stop"},
      {"stop.stop_texts[3]", "stop"},
      {"stop.stop_token_ids[0]", "stop_token_ids"},
      {"stop.ignore_end_token", "ignore_eos"},
      {"sampling.logit_bias[7]", "logit_bias"},
      {"output.logprobs", "logprobs"},
      {"tokens.ids[9]", "tokens"},
      {"alternatives[2].tokens.ids[1]", "alternatives"},
      {"alternatives[2].input", "alternatives"},
      {"stop.token_count.id", "id"},
      {"received.token_ids[3]", "token_ids"},
      {"token_ids", "token_ids"},  // no field of a turn
      {"input", "text"},
      {"Last-Event-ID", "Last-Event-ID"}};
  for (const auto& [ours, theirs] : fields) {
    const Json json = Json::parse(
        ErrorJson(Error(Code::kInvalidArgument, "FIELD_INVALID", ours)));
    EXPECT_EQ(json["error"]["param"], theirs) << ours;
  }
}

TEST(ErrorJson, SaysWhereInAListOrAnObjectTheFieldIs) {
  const auto message = [](const char* field) {
    return Json::parse(
        ErrorJson(FieldError(field, "is bad")))["error"]["message"];
  };
  EXPECT_EQ(message("sampling.allowed_token_ids[1]"),
            "allowed_token_ids[1]: is bad");
  EXPECT_EQ(message("tokens.ids[9]"), "tokens[9]: is bad");
  EXPECT_EQ(message("alternatives[2].input"), "alternatives[2].input: is bad");
  EXPECT_EQ(message("stop.token_count.id"), "stop_token_count.id: is bad");
  EXPECT_EQ(message("top_p"), "is bad");
}

TEST(ErrorJson, TypesAreOpenAis) {
  const std::vector<std::pair<Code, std::string>> types = {
      {Code::kInvalidArgument, "invalid_request_error"},
      {Code::kUnauthenticated, "authentication_error"},
      {Code::kPermissionDenied, "permission_error"},
      {Code::kNotFound, "not_found_error"},
      {Code::kAborted, "conflict_error"},
      {Code::kResourceExhausted, "rate_limit_error"},
      {Code::kUnavailable, "server_error"},
      {Code::kDeadlineExceeded, "server_error"},
      {Code::kInternal, "server_error"}};
  for (const auto& [code, type] : types) {
    EXPECT_EQ(Json::parse(ErrorJson(Error(code, "R")))["error"]["type"], type);
  }
}

TEST(ErrorJson, ShowsNothingOfAnErrorThatIsNotOurs) {
  const Json json =
      Json::parse(ErrorJson(absl::InternalError("/secret/path: broken")));
  EXPECT_EQ(json["error"]["code"], "INTERNAL");
  EXPECT_EQ(json["error"]["message"].get<std::string>().find("secret"),
            std::string::npos);
}

TEST(ErrorReply, SaysOfAConflictWhetherARetryMakesSense) {
  EXPECT_EQ(Header(ErrorReply(Error(Code::kAborted, "SESSION_MOVED")),
                   "x-should-retry"),
            "true");
  EXPECT_EQ(Header(ErrorReply(Error(Code::kAborted, "SESSION_BUSY")),
                   "x-should-retry"),
            "true");
  for (const char* reason :
       {"POSITION_MISMATCH", "SESSION_DELETED", "SUPERSEDED", "REPLAY_EVICTED",
        "RESUME_MISMATCH", "BLIND_REPEAT"}) {
    EXPECT_EQ(
        Header(ErrorReply(Error(Code::kAborted, reason)), "x-should-retry"),
        "false")
        << reason;
  }
  EXPECT_EQ(Header(ErrorReply(Error(Code::kUnavailable, "NOT_READY")),
                   "x-should-retry"),
            "absent");
}

// OpenAI's clients repeat 429 and everything from 500 on by themselves.
TEST(ErrorReply, WhatCanNeverSucceedIsNotToBeSentAgain) {
  const auto again = [](Code code, const char* reason,
                        std::optional<absl::Duration> retry = std::nullopt) {
    return Header(ErrorReply(Error(code, reason, "", retry)), "x-should-retry");
  };
  EXPECT_EQ(again(Code::kResourceExhausted, "QUOTA"), "false");
  EXPECT_EQ(again(Code::kResourceExhausted, "QUOTA", absl::Seconds(1)),
            "absent");
  EXPECT_EQ(again(Code::kDeadlineExceeded, "DEADLINE_EXCEEDED"), "false");
  EXPECT_EQ(again(Code::kInternal, "SESSION_DAMAGED"), "false");
  EXPECT_EQ(again(Code::kInternal, "STEP_FAILED"), "absent");
}

TEST(ErrorReply, SaysAfterWhatTimeARetryMakesSense) {
  const HttpReply reply = ErrorReply(Error(
      Code::kResourceExhausted, "QUEUE_FULL", "", absl::Milliseconds(1250)));
  EXPECT_EQ(reply.status, 429);
  EXPECT_EQ(Header(reply, "retry-after-ms"), "1250");
  EXPECT_EQ(Header(reply, "retry-after"), "2");  // whole seconds
  EXPECT_EQ(Header(ErrorReply(Error(Code::kInternal, "STEP_FAILED")),
                   "retry-after-ms"),
            "absent");
}

TEST(PlainError, HasItsOwnStatusAndReason) {
  const HttpReply reply = PlainError(415, "UNSUPPORTED_MEDIA_TYPE", "no");
  EXPECT_EQ(reply.status, 415);
  EXPECT_EQ(reply.content_type, "application/json");
  const Json error = Json::parse(reply.body)["error"];
  EXPECT_EQ(error["code"], "UNSUPPORTED_MEDIA_TYPE");
  EXPECT_EQ(error["message"], "no");
  EXPECT_EQ(error["type"], "invalid_request_error");
}

TEST(AsOfInput, NamesTheInputOfATurnAsTheBodyDoes) {
  for (const char* field : {"text", "tokens", "tokens.ids[3]", "input"}) {
    const absl::Status status =
        AsOfInput(FieldError(field, "is bad"), "prompt");
    EXPECT_THAT(GetErrorDetails(status).field, ::testing::StartsWith("prompt"))
        << field;
    EXPECT_EQ(status.message(), "is bad");
  }
  EXPECT_EQ(
      GetErrorDetails(AsOfInput(FieldError("tokens.ids[3]", "m"), "prompt"))
          .field,
      "prompt[3]");
  EXPECT_EQ(
      GetErrorDetails(AsOfInput(FieldError("text", "m"), "messages")).field,
      "messages");
  EXPECT_EQ(GetErrorDetails(AsOfInput(FieldError("stop", "m"), "prompt")).field,
            "stop");
}

TEST(InObject, NamesTheOwnerOfAField) {
  EXPECT_EQ(GetErrorDetails(InObject(FieldError("id", "m"), "stop")).field,
            "stop.id");
  EXPECT_TRUE(InObject(absl::OkStatus(), "stop").ok());
}

}  // namespace
}  // namespace txl
