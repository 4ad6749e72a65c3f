#include "server/http/message_json.h"

#include <gmock/gmock.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/http/http_options.h"
#include "txl/v1/generation_service.pb.h"
#include "txl/v1/model_service.pb.h"
#include "txl/v1/session_service.pb.h"

namespace txl {
namespace {

using ::testing::ElementsAre;
using Json = nlohmann::json;

template <typename Message>
absl::Status Read(const std::string& body, Message* message) {
  const absl::StatusOr<Json> json = ParseBody(body);
  EXPECT_TRUE(json.ok()) << body;
  BodyFields fields(*json);
  return ReadMessage(fields, message);
}

template <typename Message>
std::string FieldOf(const std::string& body) {
  Message message;
  const absl::Status status = Read(body, &message);
  return status.ok() ? "ok" : GetErrorDetails(status).field;
}

TEST(MessageToJson, NamesFieldsAsTheProtoDoes) {
  v1::Session session;
  session.set_session_id("s");
  session.set_state(v1::SESSION_STATE_BUSY);
  session.set_position(int64_t{1} << 60);
  session.mutable_ttl()->set_seconds(90);
  session.mutable_create_time()->set_seconds(0);
  session.mutable_last_turn()->set_request_id("r");
  const Json json = MessageToJson(session);
  EXPECT_EQ(json["session_id"], "s");
  EXPECT_EQ(json["state"], "SESSION_STATE_BUSY");
  // A number, and not a text as in protobuf's own mapping.
  EXPECT_EQ(json["position"].dump(), "1152921504606846976");
  EXPECT_EQ(json["ttl"], "90s");
  EXPECT_EQ(json["create_time"], "1970-01-01T00:00:00Z");
  EXPECT_EQ(json["last_turn"]["request_id"], "r");
  EXPECT_EQ(json["memory_bytes"], 0);
  EXPECT_FALSE(json.contains("expire_time"));
}

TEST(MessageToJson, WritesListsAndMaps) {
  v1::GetServerStatusResponse status;
  (*status.mutable_turns_finished())["OK"] = 7;
  status.add_softmax_tails()->set_computed(3);
  const Json json = MessageToJson(status);
  EXPECT_EQ(json["turns_finished"], Json({{"OK", 7}}));
  EXPECT_EQ(json["softmax_tails"],
            Json::array({{{"computed", 3}, {"skipped", 0}}}));
  v1::SamplingParams sampling;
  (*sampling.mutable_logit_bias())[9] = 0.5f;
  EXPECT_EQ(MessageToJson(sampling)["logit_bias"], Json({{"9", 0.5}}));
  v1::TokenizeResponse ids;
  EXPECT_EQ(MessageToJson(ids)["token_ids"], Json::array());
}

TEST(MessageToJson, TellsAbsentFromZero) {
  v1::ScoredToken token;
  EXPECT_FALSE(MessageToJson(token).contains("logprob"));
  token.set_logprob(0);
  EXPECT_EQ(MessageToJson(token)["logprob"], 0.0);
}

TEST(MessageToJson, HasNoNumberThatJsonLacks) {
  v1::ScoredToken token;
  token.set_logprob(-std::numeric_limits<float>::infinity());
  EXPECT_EQ(MessageToJson(token)["logprob"], kNeverLogprob);
  v1::ScoreResponse score;
  score.set_sum_logprob(std::numeric_limits<double>::quiet_NaN());
  EXPECT_EQ(MessageToJson(score)["sum_logprob"], kNeverLogprob);
}

TEST(ReadMessage, ReadsEveryKindOfField) {
  v1::AppendTokensRequest append;
  ASSERT_TRUE(Read(R"({"session_id": "s", "tokens": [1, 2], "request_id": "r",
      "expected_position": 7, "return_logprobs": true})",
                   &append)
                  .ok());
  EXPECT_EQ(append.session_id(), "s");
  EXPECT_THAT(append.tokens().ids(), ElementsAre(1, 2));
  EXPECT_EQ(append.request_id(), "r");
  EXPECT_EQ(append.expected_position(), 7);
  EXPECT_TRUE(append.return_logprobs());
  v1::ScoreRequest score;
  ASSERT_TRUE(Read(R"({"text": "a", "logprobs": 4})", &score).ok());
  EXPECT_EQ(score.text(), "a");
  EXPECT_EQ(score.logprobs(), 4u);
  v1::GetSessionRequest get;
  ASSERT_TRUE(Read(R"({"page_size": 5})", &get).ok());
  EXPECT_EQ(get.page_size(), 5);
}

TEST(ReadMessage, NullIsAbsent) {
  v1::AppendTokensRequest append;
  ASSERT_TRUE(Read(R"({"text": null, "tokens": [1],
      "expected_position": null})",
                   &append)
                  .ok());
  EXPECT_FALSE(append.has_expected_position());
  EXPECT_TRUE(append.has_tokens());
}

TEST(ReadMessage, TakesOneOfTextAndTokens) {
  EXPECT_EQ(FieldOf<v1::ScoreRequest>(R"({"text": "a", "tokens": [1]})"),
            "tokens");
}

TEST(ReadMessage, ADurationIsSecondsAsANumberOrAsAText) {
  const auto ttl = [](const std::string& value) {
    v1::CreateSessionRequest request;
    EXPECT_TRUE(Read(absl::StrCat("{\"ttl\": ", value, "}"), &request).ok());
    return absl::StrCat(request.ttl().seconds(), " ", request.ttl().nanos());
  };
  EXPECT_EQ(ttl("90"), "90 0");
  EXPECT_EQ(ttl("1.5"), "1 500000000");
  EXPECT_EQ(ttl("\"1.5s\""), "1 500000000");
  EXPECT_EQ(ttl("-2.25"), "-2 -250000000");
  EXPECT_EQ(ttl("0"), "0 0");
  // Never a billion nanoseconds, which no duration has.
  EXPECT_EQ(ttl("1.9999999999"), "2 0");
  EXPECT_EQ(ttl("-1.9999999999"), "-2 0");
}

TEST(ReadMessage, NamesADurationThatIsNone) {
  for (const char* value : {"\"1.5\"", "\"s\"", "\"1m\"", "\"\"", "true", "[1]",
                            "{}", "1e300", "3e11", "-3e11"}) {
    EXPECT_EQ(FieldOf<v1::CreateSessionRequest>(
                  absl::StrCat("{\"ttl\": ", value, "}")),
              "ttl")
        << value;
  }
}

TEST(ReadMessage, NamesAFieldOfAnotherKindOrRange) {
  EXPECT_EQ(FieldOf<v1::AppendTokensRequest>(R"({"text": 1})"), "text");
  EXPECT_EQ(FieldOf<v1::AppendTokensRequest>(R"({"tokens": "a"})"), "tokens");
  EXPECT_EQ(FieldOf<v1::AppendTokensRequest>(R"({"tokens": {"ids": [1]}})"),
            "tokens");
  EXPECT_EQ(FieldOf<v1::AppendTokensRequest>(R"({"expected_position": "1"})"),
            "expected_position");
  EXPECT_EQ(FieldOf<v1::AppendTokensRequest>(R"({"return_logprobs": 1})"),
            "return_logprobs");
  for (const char* value : {"-1", "4294967296", "0.5"}) {
    EXPECT_EQ(
        FieldOf<v1::ScoreRequest>(absl::StrCat("{\"logprobs\": ", value, "}")),
        "logprobs")
        << value;
  }
  for (const char* value : {"2147483648", "-2147483649"}) {
    EXPECT_EQ(FieldOf<v1::GetSessionRequest>(
                  absl::StrCat("{\"page_size\": ", value, "}")),
              "page_size")
        << value;
  }
}

TEST(ReadMessage, LeavesFieldsThatTheMessageLacks) {
  const Json body = {{"text", "a"}, {"other", 1}};
  BodyFields fields(body);
  v1::ScoreRequest request;
  EXPECT_TRUE(ReadMessage(fields, &request).ok());
  EXPECT_THAT(fields.Unknown(), ElementsAre("other"));
}

}  // namespace
}  // namespace txl
