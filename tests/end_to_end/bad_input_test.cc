// Every bad input gets its status, its reason and the name of its field, and
// leaves no trace in the counters.

#include <gmock/gmock.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "absl/strings/str_cat.h"
#include "client/call_error.h"
#include "tests/end_to_end/server_process.h"
#include "tests/end_to_end/turns.h"

namespace txl::testing {
namespace {

using ::testing::HasSubstr;

struct BadGenerate {
  const char* name;
  const char* reason;
  const char* field;  // part of the field that BadRequest names
  std::function<void(v1::GenerateRequest&)> spoil;
};

v1::SamplingParams& Sampling(v1::GenerateRequest& request) {
  return *request.mutable_sampling();
}

v1::StopConditions& Stop(v1::GenerateRequest& request) {
  return *request.mutable_stop();
}

const double kNan = std::numeric_limits<double>::quiet_NaN();

std::vector<BadGenerate> BadPrompts() {
  return {
      {"no prompt in a fresh session", "FIELD_INVALID", "prompt",
       [](auto& r) { r.clear_tokens(); }},
      {"empty token list", "FIELD_INVALID", "tokens",
       [](auto& r) { r.mutable_tokens()->clear_ids(); }},
      {"token id outside the vocabulary", "FIELD_INVALID", "tokens",
       [](auto& r) { r.mutable_tokens()->add_ids(kVocabulary); }},
      {"largest token id", "FIELD_INVALID", "tokens",
       [](auto& r) { r.mutable_tokens()->add_ids(~0u); }},
      {"text for a model of ids", "FIELD_INVALID", "text",
       [](auto& r) { r.set_text("To be"); }},
      {"empty text", "FIELD_INVALID", "text", [](auto& r) { r.set_text(""); }},
      {"prompt of too many tokens", "OVER_LIMIT", "tokens",
       [](auto& r) {
         for (int i = 0; i < 8192; ++i) r.mutable_tokens()->add_ids(1);
       }},
      {"unknown symbol without a vocabulary", "FIELD_INVALID", "unknown",
       [](auto& r) { r.set_unknown(v1::UNKNOWN_TEXT_SYMBOL); }},
      {"unlisted value of unknown", "FIELD_INVALID", "unknown",
       [](auto& r) { r.set_unknown(static_cast<v1::UnknownText>(3)); }},
      {"session id with a space", "FIELD_INVALID", "session_id",
       [](auto& r) { r.set_session_id("a b"); }},
      {"session id of 65 characters", "FIELD_INVALID", "session_id",
       [](auto& r) { r.set_session_id(std::string(65, 'a')); }},
      {"request id with a dot", "FIELD_INVALID", "request_id",
       [](auto& r) { r.set_request_id("a.b"); }},
      {"negative expected position", "FIELD_INVALID", "expected_position",
       [](auto& r) { r.set_expected_position(-1); }},
  };
}

std::vector<BadGenerate> BadSampling() {
  return {
      {"negative temperature", "FIELD_INVALID", "temperature",
       [](auto& r) { Sampling(r).set_temperature(-0.1); }},
      {"temperature that is not a number", "FIELD_INVALID", "temperature",
       [](auto& r) { Sampling(r).set_temperature(kNan); }},
      {"infinite temperature", "FIELD_INVALID", "temperature",
       [](auto& r) {
         Sampling(r).set_temperature(std::numeric_limits<double>::infinity());
       }},
      {"negative top_k", "FIELD_INVALID", "top_k",
       [](auto& r) { Sampling(r).set_top_k(-1); }},
      {"top_p of 0", "FIELD_INVALID", "top_p",
       [](auto& r) { Sampling(r).set_top_p(0); }},
      {"top_p above 1", "FIELD_INVALID", "top_p",
       [](auto& r) { Sampling(r).set_top_p(1.5); }},
      {"min_p above 1", "FIELD_INVALID", "min_p",
       [](auto& r) { Sampling(r).set_min_p(1.5); }},
      {"typical_p of 0", "FIELD_INVALID", "typical_p",
       [](auto& r) { Sampling(r).set_typical_p(0); }},
      {"repetition penalty of 0", "FIELD_INVALID", "repetition_penalty",
       [](auto& r) { Sampling(r).set_repetition_penalty(0); }},
      {"presence penalty above 2", "FIELD_INVALID", "presence_penalty",
       [](auto& r) { Sampling(r).set_presence_penalty(2.5); }},
      {"frequency penalty below -2", "FIELD_INVALID", "frequency_penalty",
       [](auto& r) { Sampling(r).set_frequency_penalty(-2.5); }},
      {"negative penalty window", "FIELD_INVALID", "penalty_window",
       [](auto& r) { Sampling(r).set_penalty_window(-1); }},
      {"bias of an unknown token", "FIELD_INVALID", "logit_bias",
       [](auto& r) { (*Sampling(r).mutable_logit_bias())[kVocabulary] = 1; }},
      {"bias above 100", "FIELD_INVALID", "logit_bias",
       [](auto& r) { (*Sampling(r).mutable_logit_bias())[1] = 101; }},
      {"too many biases", "OVER_LIMIT", "logit_bias",
       [](auto& r) {
         for (int i = 0; i <= 1024; ++i) {
           (*Sampling(r).mutable_logit_bias())[i] = 1;
         }
       }},
      {"allowed id outside the vocabulary", "FIELD_INVALID",
       "allowed_token_ids",
       [](auto& r) { Sampling(r).add_allowed_token_ids(kVocabulary); }},
      {"too many allowed ids", "OVER_LIMIT", "allowed_token_ids",
       [](auto& r) {
         for (int i = 0; i <= 1024; ++i) Sampling(r).add_allowed_token_ids(1);
       }},
      {"kinds of a model without them", "FIELD_INVALID", "follow_kinds",
       [](auto& r) { Sampling(r).set_follow_kinds(true); }},
      {"negative min_tokens", "FIELD_INVALID", "min_tokens",
       [](auto& r) { Sampling(r).set_min_tokens(-1); }},
      {"min_tokens above max_tokens", "FIELD_INVALID", "min_tokens",
       [](auto& r) { Sampling(r).set_min_tokens(6); }},
  };
}

std::vector<BadGenerate> BadStopAndOutput() {
  return {
      {"max_tokens of 0", "FIELD_INVALID", "max_tokens",
       [](auto& r) { Stop(r).set_max_tokens(0); }},
      {"negative max_tokens", "FIELD_INVALID", "max_tokens",
       [](auto& r) { Stop(r).set_max_tokens(-5); }},
      {"max_tokens above the limit", "OVER_LIMIT", "max_tokens",
       [](auto& r) { Stop(r).set_max_tokens(4097); }},
      {"stop token outside the vocabulary", "FIELD_INVALID", "stop_token_ids",
       [](auto& r) { Stop(r).add_stop_token_ids(kVocabulary); }},
      {"counted token outside the vocabulary", "FIELD_INVALID", "id",
       [](auto& r) { Stop(r).mutable_token_count()->set_id(kVocabulary); }},
      {"count of no occurrence", "FIELD_INVALID", "count",
       [](auto& r) { Stop(r).mutable_token_count()->set_id(1); }},
      {"named id outside the vocabulary", "FIELD_INVALID", "logprob_token_ids",
       [](auto& r) { r.mutable_output()->add_logprob_token_ids(kVocabulary); }},
      {"stop text without a vocabulary", "FIELD_INVALID", "stop_texts",
       [](auto& r) { Stop(r).add_stop_texts("x"); }},
      {"too many stop texts", "OVER_LIMIT", "stop_texts",
       [](auto& r) {
         for (int i = 0; i < 9; ++i) Stop(r).add_stop_texts("x");
       }},
      {"too many alternatives", "OVER_LIMIT", "logprobs",
       [](auto& r) { r.mutable_output()->set_logprobs(21); }},
      {"no tokens in a message", "FIELD_INVALID", "max_tokens_per_message",
       [](auto& r) { r.mutable_output()->set_max_tokens_per_message(0); }},
      {"bytes without a vocabulary", "FIELD_INVALID", "include_token_bytes",
       [](auto& r) { r.mutable_output()->set_include_token_bytes(true); }},
  };
}

// Everything that a request could leave behind; the clock is not.
// But what every call leaves, refused or not.
std::string Trace(v1::GetServerStatusResponse status) {
  status.clear_uptime();
  status.clear_resident_bytes();
  status.clear_request_bytes();
  status.clear_calls_open();
  status.clear_work_done();
  status.clear_connections_open();
  return status.DebugString();
}

class BadInput : public ::testing::Test {
 protected:
  void SetUp() override {
    // The turn that warmed the server up gives its slot back after its end.
    EXPECT_TRUE(WaitUntil([this] {
      const v1::GetServerStatusResponse status = server_.Status();
      before_ = Trace(status);
      return status.slots_used() == 0 && status.last_step_age().nanos() == 0;
    }));
  }
  // A client knows of its call's end a moment before the server has let go of
  // all that belonged to it.
  void TearDown() override {
    std::string now;
    WaitUntil([&] { return (now = Trace(server_.Status())) == before_; });
    EXPECT_EQ(now, before_);
  }

  void ExpectRefused(const std::vector<BadGenerate>& table) {
    for (const BadGenerate& row : table) {
      SCOPED_TRACE(row.name);
      v1::GenerateRequest request =
          Greedy("", std::vector<uint32_t>{1, 2, 3}, 5);
      row.spoil(request);
      const TurnOutput turn = RunTurn(server_.client(), request);
      ExpectError(turn.status, absl::StatusCode::kInvalidArgument, row.reason);
      const std::vector<std::string> fields = GetCallError(turn.status).fields;
      ASSERT_EQ(fields.size(), 1u);
      EXPECT_THAT(fields[0], HasSubstr(row.field));
    }
  }

  // The status of a call whose request is these bytes.
  absl::Status Raw(const std::string& method, const std::string& bytes,
                   const std::string& session_header = "") {
    grpc::GenericStub stub(grpc::CreateChannel(
        server_.address(), grpc::InsecureChannelCredentials()));
    grpc::ClientContext context;
    if (!session_header.empty()) {
      context.AddMetadata("x-txl-session", session_header);
    }
    const grpc::Slice slice(bytes);
    const grpc::ByteBuffer request(&slice, 1);
    grpc::ByteBuffer response;
    grpc::CompletionQueue queue;
    auto call = stub.PrepareUnaryCall(
        &context, absl::StrCat("/txl.v1.", method), request, &queue);
    call->StartCall();
    grpc::Status status;
    call->Finish(&response, &status, this);
    void* tag = nullptr;
    bool ok = false;
    queue.Next(&tag, &ok);
    return FromGrpcStatus(status);
  }

  ServerProcess server_{GoldenModel("kimi-char"), {"--slots", "4"}};
  std::string before_;
};

TEST_F(BadInput, InThePromptIsRefused) { ExpectRefused(BadPrompts()); }

TEST_F(BadInput, InSamplingIsRefused) { ExpectRefused(BadSampling()); }

TEST_F(BadInput, InStopAndOutputIsRefused) {
  ExpectRefused(BadStopAndOutput());
}

TEST_F(BadInput, BytesThatDoNotParseAreRefusedByEveryMethod) {
  for (const char* method :
       {"GenerationService/Generate", "GenerationService/Score",
        "SessionService/CreateSession", "SessionService/GetSession",
        "SessionService/ListSessions", "SessionService/DeleteSession",
        "SessionService/AppendTokens", "ModelService/GetModel",
        "ModelService/GetServerStatus", "ModelService/Tokenize",
        "ModelService/Detokenize"}) {
    SCOPED_TRACE(method);
    ExpectError(Raw(method, "\xff\xff\xff\xff"),
                absl::StatusCode::kInvalidArgument, "MALFORMED_MESSAGE");
  }
}

TEST_F(BadInput, TextThatIsNoUtf8IsMalformed) {
  // Field 1 (session_id), two bytes that are no character.
  ExpectError(Raw("SessionService/GetSession", "\x0a\x02\xc3\x28"),
              absl::StatusCode::kInvalidArgument, "MALFORMED_MESSAGE");
}

TEST_F(BadInput, AHeaderUnlikeTheFieldIsRefused) {
  v1::GetSessionRequest request;
  request.set_session_id("one");
  const absl::Status status =
      Raw("SessionService/GetSession", request.SerializeAsString(), "other");
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_EQ(GetCallError(status).reason, "FIELD_INVALID");
}

TEST_F(BadInput, UnknownSessionsAreNotFound) {
  Client& client = server_.client();
  ExpectError(
      RunTurn(client, Greedy("nobody", std::vector<uint32_t>{1}, 5)).status,
      absl::StatusCode::kNotFound, "SESSION_UNKNOWN");
  ExpectError(Append(client, "nobody", std::vector<uint32_t>{1}).status(),
              absl::StatusCode::kNotFound, "SESSION_UNKNOWN");
  v1::DeleteSessionRequest remove;
  remove.set_session_id("nobody");
  ExpectError(client.DeleteSession(remove).status(),
              absl::StatusCode::kNotFound, "SESSION_UNKNOWN");
}

TEST_F(BadInput, OfOtherMethodsNamesItsField) {
  Client& client = server_.client();
  v1::ScoreRequest score;
  ExpectError(client.Score(score).status(), absl::StatusCode::kInvalidArgument,
              "FIELD_INVALID");
  score.mutable_tokens()->add_ids(kVocabulary);
  ExpectError(client.Score(score).status(), absl::StatusCode::kInvalidArgument,
              "FIELD_INVALID");
  v1::CreateSessionRequest create;
  create.mutable_ttl()->set_seconds(-1);
  ExpectError(client.CreateSession(create).status(),
              absl::StatusCode::kInvalidArgument, "FIELD_INVALID");
  v1::ListSessionsRequest list;
  list.set_page_token("?");
  ExpectError(client.ListSessions(list).status(),
              absl::StatusCode::kInvalidArgument, "FIELD_INVALID");
  list.clear_page_token();
  list.set_page_size(-1);
  ExpectError(client.ListSessions(list).status(),
              absl::StatusCode::kInvalidArgument, "FIELD_INVALID");
  v1::DetokenizeRequest ids;
  ids.add_token_ids(1);
  ExpectError(client.Detokenize(ids).status(),
              absl::StatusCode::kInvalidArgument, "FIELD_INVALID");
}

TEST(BadTurn, AnotherPositionThanExpectedIsAborted) {
  ServerProcess server(GoldenModel("kimi-char"), {"--slots", "2"});
  CreateSession(server.client(), "s");
  const std::vector<uint32_t> prompt = {1, 2, 3};
  ASSERT_TRUE(Append(server.client(), "s", prompt).ok());
  v1::GenerateRequest request = Greedy("s", prompt, 5);
  request.set_expected_position(2);
  const TurnOutput turn = RunTurn(server.client(), request);
  ExpectError(turn.status, absl::StatusCode::kAborted, "POSITION_MISMATCH");
  EXPECT_EQ(GetCallError(turn.status).metadata["position"], "3");
  v1::CreateSessionRequest create;
  create.set_session_id("s");
  ExpectError(server.client().CreateSession(create).status(),
              absl::StatusCode::kAlreadyExists, "SESSION_EXISTS");
}

}  // namespace
}  // namespace txl::testing
