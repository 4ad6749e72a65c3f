// Requests that are refused: each with its status, reason and field, and
// without a trace in the server.

#include <gmock/gmock.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/server/http/http_world.h"

namespace txl {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// A world in which nothing of a refused request may be found.
class BadHttp : public ::testing::Test {
 protected:
  BadHttp() { world_.rpc.MakeSession("kept", {1, 2, 3}); }

  // No session more, none changed, no turn begun; and others are served.
  ~BadHttp() override {
    EXPECT_TRUE(world_.ComesToRest());
    EXPECT_EQ(world_.rpc.store->counts().idle, 1);
    EXPECT_EQ(world_.rpc.GetSession("kept").position(), 3);
    EXPECT_EQ(world_.rpc.metrics.Get().turns_started, turns_);
    EXPECT_EQ(world_.Complete({{"prompt", "a"}, {"max_tokens", 1}}).outcome(),
              "200");
  }

  void Expect(const std::string& outcome, const std::string& request,
              const std::string& name) {
    RawClient client(world_.address());
    ASSERT_TRUE(client.Send(request)) << name;
    const HttpAnswer answer = client.ReadAnswer();
    EXPECT_TRUE(answer.whole) << name;
    if (answer.status == 0) return ADD_FAILURE() << "no answer: " << name;
    EXPECT_EQ(answer.outcome(), outcome) << name << answer.body;
    EXPECT_THAT(answer.header("x-request-id"), StartsWith("req-")) << name;
  }

  // Bodies to a path.
  struct Case {
    std::string body;
    std::string outcome;
  };
  void ExpectAll(const std::string& path, const std::vector<Case>& cases) {
    for (const Case& one : cases) {
      Expect(one.outcome, RequestBytes("POST", path, one.body),
             absl::StrCat(path, " ", one.body.substr(0, 80)));
    }
  }

  // Completions of "a" with one of these for a field more.
  void ExpectFields(const std::vector<Case>& fields) {
    for (const auto& [field, outcome] : fields) {
      ExpectAll("/v1/completions",
                {{absl::StrCat(R"({"prompt": "a", )", field, "}"), outcome}});
    }
  }

  struct Target {
    const char* method;
    const char* target;
    const char* outcome;
  };
  void ExpectAll(const std::vector<Target>& targets) {
    for (const Target& one : targets) {
      const std::string body = std::string(one.method) == "POST" ? "{}" : "";
      Expect(one.outcome, RequestBytes(one.method, one.target, body),
             one.target);
    }
  }

  HttpWorld world_;
  int64_t turns_ = 1;  // MakeSession's
};

std::string Nested(int depth) {
  return absl::StrCat("{\"prompt\":", std::string(depth, '['),
                      std::string(depth, ']'), "}");
}

// A list of so many.
std::string Many(const std::string& one, int count) {
  return absl::StrCat(
      "[", absl::StrJoin(std::vector<std::string>(count, one), ","), "]");
}

TEST_F(BadHttp, BodiesThatAreNoJsonObject) {
  for (const char* path :
       {"/v1/completions", "/v1/score", "/tokenize", "/detokenize",
        "/v1/sessions", "/v1/sessions/kept/append", "/v1/sessions/kept/fork",
        "/v1/sessions/kept/rewind"}) {
    ExpectAll(path, {{"", "400 MALFORMED_MESSAGE"},
                     {"{", "400 MALFORMED_MESSAGE"},
                     {"[]", "400 MALFORMED_MESSAGE"},
                     {"{\"prompt\": NaN}", "400 MALFORMED_MESSAGE"},
                     {"{\"position\": 1e999}", "400 MALFORMED_MESSAGE"},
                     {"{\"text\": \"\xff\"}", "400 MALFORMED_MESSAGE"},
                     {Nested(8), "400 MALFORMED_MESSAGE"},
                     {Nested(100'000), "400 MALFORMED_MESSAGE"},
                     {"{\"text\": \"a\", \"text\": \"a\"}",
                      "400 FIELD_INVALID text"}});
  }
}

TEST_F(BadHttp, FieldsOfCompletionsThatAreOfAnotherKind) {
  ExpectAll("/v1/completions",
            {{R"({"prompt": 1})", "400 FIELD_INVALID prompt"},
             {R"({"prompt": {"a": 1}})", "400 FIELD_INVALID prompt"},
             {R"({"prompt": [1, "a"]})", "400 FIELD_INVALID prompt"}});
  ExpectFields(
      {{R"("max_tokens": "5")", "400 FIELD_INVALID max_tokens"},
       {R"("max_tokens": 1.5)", "400 FIELD_INVALID max_tokens"},
       {R"("stream": "yes")", "400 FIELD_INVALID stream"},
       {R"("stop": [1])", "400 FIELD_INVALID stop"},
       {R"("seed": "x")", "400 FIELD_INVALID seed"},
       {R"("logit_bias": {"x": 1})", "400 FIELD_INVALID logit_bias"},
       {R"("stream_options": true)", "400 FIELD_INVALID stream_options"},
       {R"("session_id": 7)", "400 FIELD_INVALID session_id"},
       {R"("model": ["fake"])", "400 FIELD_INVALID model"}});
}

TEST_F(BadHttp, NumbersOfCompletionsThatAreOutOfRange) {
  ExpectFields(
      {{R"("max_tokens": 0)", "400 FIELD_INVALID max_tokens"},
       {R"("max_tokens": -1)", "400 FIELD_INVALID max_tokens"},
       {R"("max_tokens": 4097)", "400 OVER_LIMIT max_tokens"},
       {R"("max_tokens": 4294967297)", "400 FIELD_INVALID max_tokens"},
       {R"("temperature": -1)", "400 FIELD_INVALID temperature"},
       {R"("temperature": 1e300)", "400 FIELD_INVALID temperature"},
       {R"("top_p": 1.5)", "400 FIELD_INVALID top_p"},
       {R"("top_k": -2)", "400 FIELD_INVALID top_k"},
       {R"("min_p": 2)", "400 FIELD_INVALID min_p"},
       {R"("typical_p": -1)", "400 FIELD_INVALID typical_p"},
       {R"("repetition_penalty": -1)", "400 FIELD_INVALID repetition_penalty"},
       {R"("logit_bias": {"1": 1e300})", "400 FIELD_INVALID logit_bias"},
       {R"("logit_bias": {"256": 1})", "400 FIELD_INVALID logit_bias"},
       {R"("allowed_token_ids": [1, 256])",
        "400 FIELD_INVALID allowed_token_ids"},
       {R"("follow_kinds": true)", "400 FIELD_INVALID follow_kinds"},
       {R"("follow_kinds": 1)", "400 FIELD_INVALID follow_kinds"},
       {R"("logprob_token_ids": [256])", "400 FIELD_INVALID logprob_token_ids"},
       {R"("stop_token_count": {"id": 256, "count": 1})",
        "400 FIELD_INVALID id"},
       {R"("stop_token_count": {"id": 1})", "400 FIELD_INVALID count"},
       {R"("logprobs": 21)", "400 OVER_LIMIT logprobs"},
       {R"("logprobs": -1)", "400 FIELD_INVALID logprobs"},
       {R"("n": 0)", "400 FIELD_INVALID n"},
       {R"("n": 129)", "400 OVER_LIMIT n"},
       {R"("best_of": 1e15)", "400 OVER_LIMIT best_of"},
       {R"("min_tokens": 17)", "400 FIELD_INVALID min_tokens"},
       {R"("stop_token_ids": [256])", "400 FIELD_INVALID stop_token_ids"},
       {R"("stop": "")", "400 FIELD_INVALID stop"}});
}

// Also where the prompt comes before the turn, or alone.
TEST_F(BadHttp, FieldsOfTurnsThatBeginLaterOrNever) {
  for (const char* before :
       {R"("echo": true, "max_tokens": 0)", R"("n": 2, "max_tokens": 4)",
        R"("session_id": "kept", "echo": true, "max_tokens": 0)",
        R"("session_id": "kept", "echo": true, "logprobs": 1)"}) {
    const auto with = [&](const char* field) {
      return absl::StrCat(R"({"prompt": "a", )", before, ", ", field, "}");
    };
    ExpectAll(
        "/v1/completions",
        {{with(R"("temperature": -1)"), "400 FIELD_INVALID temperature"},
         {with(R"("stop": "")"), "400 FIELD_INVALID stop"},
         {with(R"("stop_token_ids": [256])"),
          "400 FIELD_INVALID stop_token_ids"},
         {with(R"("priority": 10)"), "400 FIELD_INVALID priority"},
         {with(R"("expected_position": -1)"),
          "400 FIELD_INVALID expected_position"},
         {with(R"("min_tokens": 4097)"), "400 FIELD_INVALID min_tokens"}});
  }
  ExpectAll("/v1/completions",
            {{R"({"prompt": "a", "echo": true, "max_tokens": 0,
                  "request_id": "a b"})",
              "400 FIELD_INVALID request_id"}});
}

TEST_F(BadHttp, CompletionsThatAreTooLarge) {
  const std::string stops = Many("\"x\"", 9);
  ExpectAll("/v1/completions",
            {{absl::StrCat("{\"prompt\": ", Many("\"a\"", 129), "}"),
              "400 OVER_LIMIT prompt"},
             {absl::StrCat("{\"prompt\": \"a\", \"stop\": ", stops, "}"),
              "400 OVER_LIMIT stop"},
             {absl::StrCat("{\"prompt\": \"a\", \"stop\": \"",
                           std::string(257, 'x'), "\"}"),
              "400 OVER_LIMIT stop"},
             {absl::StrCat("{\"prompt\": \"a\", \"stop_token_ids\": ",
                           Many("1", 65), "}"),
              "400 OVER_LIMIT stop_token_ids"}});
}

TEST_F(BadHttp, CompletionsThatThisServerDoesNotServe) {
  ExpectAll("/v1/completions",
            {{R"({})", "400 FIELD_INVALID prompt"},
             {R"({"prompt": ""})", "400 FIELD_INVALID prompt"}});
  ExpectFields(
      {{R"("model": "gpt-4")", "404 model_not_found model"},
       {R"("received": {"token_ids": 1, "token_ids": 1})",
        "400 FIELD_INVALID token_ids"},
       {R"("suffix": "b")", "400 FIELD_INVALID suffix"},
       {R"("tools": [{"type": "function"}])", "400 FIELD_INVALID tools"},
       {R"("response_format": {"type": "json_object"})",
        "400 FIELD_INVALID response_format"},
       {R"("best_of": 2, "stream": true)", "400 FIELD_INVALID best_of"},
       {R"("session_id": "unknown")", "404 SESSION_UNKNOWN"},
       {R"("session_id": "a/b")", "400 FIELD_INVALID session_id"},
       {R"("session_id": "kept", "request_id": "a b")",
        "400 FIELD_INVALID request_id"},
       {R"("session_id": "kept", "expected_position": -1)",
        "400 FIELD_INVALID expected_position"}});
  ExpectAll("/v1/chat/completions",
            {{R"({"messages": []})", "400 NO_CHAT_FORMAT"}});
}

TEST_F(BadHttp, ScoresTokensAndTexts) {
  ExpectAll(
      "/v1/score",
      {{"{}", "400 FIELD_INVALID text"},
       {R"({"text": "a", "tokens": [1]})", "400 FIELD_INVALID tokens"},
       {R"({"text": 1})", "400 FIELD_INVALID text"},
       {R"({"text": ""})", "400 FIELD_INVALID text"},
       {R"({"tokens": [256]})", "400 FIELD_INVALID tokens"},
       {R"({"tokens": []})", "400 FIELD_INVALID tokens"},
       {absl::StrCat("{\"tokens\": ", Many("1", 8193), "}"),
        "400 OVER_LIMIT tokens"},
       {absl::StrCat("{\"text\": \"", std::string(262'145, 'a'), "\"}"),
        "400 OVER_LIMIT text"},
       {R"({"text": "a", "logprobs": 21})", "400 OVER_LIMIT logprobs"},
       {R"({"text": "a", "alternatives": {}})",
        "400 FIELD_INVALID alternatives"},
       {R"({"text": "a", "alternatives": []})",
        "400 FIELD_INVALID alternatives"},
       {R"({"text": "a", "alternatives": ["b", 1]})",
        "400 FIELD_INVALID alternatives"},
       {absl::StrCat("{\"alternatives\": ", Many("[1]", 1025), "}"),
        "400 OVER_LIMIT alternatives"},
       {R"({"text": "a", "session_id": "unknown"})", "404 SESSION_UNKNOWN"}});
  ExpectAll("/tokenize", {{"{}", "400 FIELD_INVALID prompt"},
                          {R"({"prompt": [1]})", "400 FIELD_INVALID prompt"}});
  ExpectAll("/detokenize",
            {{"{}", "400 FIELD_INVALID tokens"},
             {R"({"tokens": "a"})", "400 FIELD_INVALID tokens"},
             {R"({"tokens": [-1]})", "400 FIELD_INVALID tokens"}});
}

TEST_F(BadHttp, Sessions) {
  ExpectAll("/v1/sessions",
            {{R"({"session_id": "kept"})", "409 SESSION_EXISTS"},
             {R"({"session_id": "a b"})", "400 FIELD_INVALID session_id"},
             {R"({"session_id": 1})", "400 FIELD_INVALID session_id"},
             {absl::StrCat("{\"session_id\": \"", std::string(65, 'a'), "\"}"),
              "400 FIELD_INVALID session_id"},
             {R"({"session_id": "s", "ttl": "soon"})", "400 FIELD_INVALID ttl"},
             {R"({"session_id": "s", "ttl": -1})", "400 FIELD_INVALID ttl"},
             {R"({"session_id": "s", "ttl": 1e11})", "400 FIELD_INVALID ttl"}});
  ExpectAll("/v1/sessions/kept/append",
            {{"{}", "400 FIELD_INVALID text"},
             {R"({"tokens": [256]})", "400 FIELD_INVALID tokens"},
             {R"({"text": "a", "session_id": "other"})",
              "400 FIELD_INVALID session_id"}});
  ExpectAll("/v1/sessions/kept/rewind",
            {{"{}", "400 FIELD_INVALID position"},
             {R"({"position": null})", "400 FIELD_INVALID position"},
             {R"({"pos": 1})", "400 FIELD_INVALID pos"},
             {R"({"position": 4})", "400 FIELD_INVALID position"},
             {R"({"position": -1})", "400 FIELD_INVALID position"},
             {R"({"position": "1"})", "400 FIELD_INVALID position"}});
  turns_ = 2;  // a fork first has its session's state saved
  ExpectAll("/v1/sessions/kept/fork",
            {{R"({"new_session_id": "kept"})", "409 SESSION_EXISTS"},
             {R"({"new_session_id": "x", "position": 9})",
              "400 FIELD_INVALID position"}});
  ExpectAll("/v1/sessions/unknown/append",
            {{R"({"text": "a"})", "404 SESSION_UNKNOWN"}});
}

TEST_F(BadHttp, Paths) {
  ExpectAll(
      {{"GET", "/ui/none.js", "404 NOT_FOUND"},
       {"POST", "/", "405 METHOD_NOT_ALLOWED"},
       {"GET", "/v1", "404 NOT_FOUND"},
       {"GET", "//health", "404 NOT_FOUND"},
       {"GET", "/health/", "404 NOT_FOUND"},
       {"GET", "/HEALTH", "404 NOT_FOUND"},
       {"GET", "/v1/../health", "404 NOT_FOUND"},
       {"GET", "/v1/sessionsx", "404 NOT_FOUND"},
       {"GET", "/v1/sessions/kept/export/x", "404 NOT_FOUND"},
       {"POST", "/v1/sessions/kept/burn", "404 NOT_FOUND"},
       {"GET", "/v1/completions", "405 METHOD_NOT_ALLOWED"},
       {"DELETE", "/health", "405 METHOD_NOT_ALLOWED"},
       {"POST", "/metrics", "405 METHOD_NOT_ALLOWED"},
       {"PATCH", "/v1/sessions/kept", "405 METHOD_NOT_ALLOWED"},
       {"DELETE", "/v1/sessions", "405 METHOD_NOT_ALLOWED"},
       {"BREW", "/health", "405 METHOD_NOT_ALLOWED"},
       {"GET", "/v1/sessions/", "400 FIELD_INVALID session_id"},
       {"DELETE", "/v1/sessions/", "400 FIELD_INVALID session_id"},
       {"GET", "/v1/sessions/unknown", "404 SESSION_UNKNOWN"},
       {"GET", "/v1/sessions/a%20b", "400 FIELD_INVALID session_id"},
       {"GET", "/v1/sessions/%ff", "400 FIELD_INVALID session_id"},
       {"DELETE", "/v1/sessions/%c3%28", "400 FIELD_INVALID session_id"},
       {"GET", "/v1/sessions/%", "400 MALFORMED_MESSAGE"},
       {"GET", "/v1/sessions/%2", "400 MALFORMED_MESSAGE"},
       {"GET", "/v1/sessions/%zz", "400 MALFORMED_MESSAGE"},
       {"GET", "/v1/sessions/a%2fb", "400 MALFORMED_MESSAGE"},
       {"GET", "/v1/sessions/%00", "400 MALFORMED_MESSAGE"},
       {"GET", "/v1/sessions/%0d%0aSet-Cookie:%20a", "400 MALFORMED_MESSAGE"},
       {"GET", "http://evil.example/health", "403 PERMISSION_DENIED"},
       {"GET", "http://a@127.0.0.1/health", "403 PERMISSION_DENIED"},
       {"GET", "ftp://127.0.0.1/health", "400 MALFORMED_MESSAGE"},
       {"GET", "*", "404 NOT_FOUND"},
       {"GET", "/health?a=%", "400 MALFORMED_MESSAGE"}});
}

TEST_F(BadHttp, Queries) {
  ExpectAll(
      {{"GET", "/v1/sessions?page_size=x", "400 FIELD_INVALID page_size"},
       {"GET", "/v1/sessions?page_size=-1", "400 FIELD_INVALID page_size"},
       {"GET", "/v1/sessions?page_size=9999999999999",
        "400 FIELD_INVALID page_size"},
       {"GET", "/v1/sessions/kept?page_size=1.5",
        "400 FIELD_INVALID page_size"},
       {"GET", "/v1/sessions/kept?page_size=", "400 FIELD_INVALID page_size"},
       {"GET", "/v1/sessions/kept?page_size=1&page_size=2",
        "400 FIELD_INVALID page_size"},
       {"GET", "/v1/sessions/kept?include_tokens=yes",
        "400 FIELD_INVALID include_tokens"},
       {"GET", "/v1/sessions/kept?include_token=true",
        "400 FIELD_INVALID include_token"},
       {"GET", "/v1/sessions/kept?start_position=-1",
        "400 FIELD_INVALID start_position"},
       {"GET", "/v1/sessions/kept?page_token=x",
        "400 FIELD_INVALID page_token"},
       {"GET", "/v1/sessions/kept?session_id=other",
        "400 FIELD_INVALID session_id"},
       {"DELETE", "/v1/sessions/kept?force=1", "400 FIELD_INVALID force"},
       {"POST", "/v1/sessions/kept/rewind?position=1",
        "400 FIELD_INVALID position"},
       {"POST", "/v1/sessions?session_id=s", "400 FIELD_INVALID session_id"},
       {"POST", "/v1/score?text=a", "400 FIELD_INVALID text"},
       {"GET", "/v1/status?watch=1", "400 FIELD_INVALID watch"}});
}

TEST_F(BadHttp, Heads) {
  const std::string body = "{\"prompt\":\"a\"}";
  const auto post = [&](const HttpFields& fields) {
    return RequestBytes("POST", "/v1/completions", body, fields);
  };
  const std::string json = "Content-Type: application/json\r\n";
  const std::string start = "POST /v1/completions HTTP/1.1\r\n";
  const std::string host = "Host: 127.0.0.1\r\n";
  struct Head {
    std::string outcome;
    std::string bytes;
  };
  const std::vector<Head> heads = {
      {"403 PERMISSION_DENIED", start + json + "Content-Length: 2\r\n\r\n{}"},
      {"403 PERMISSION_DENIED", post({{"Host", "evil.example"}})},
      {"403 PERMISSION_DENIED", post({{"Host", "127.0.0.1.evil.example"}})},
      {"403 PERMISSION_DENIED", post({{"Host", ""}})},
      {"403 PERMISSION_DENIED",
       post({{"Host", "127.0.0.1"}, {"Host", "127.0.0.1"}})},
      {"403 PERMISSION_DENIED",
       RequestBytes("GET", "/health", "", {{"Host", "evil.example"}})},
      {"403 PERMISSION_DENIED", post({{"Origin", "http://evil.example"}})},
      {"403 PERMISSION_DENIED", post({{"Origin", "null"}})},
      {"403 PERMISSION_DENIED",
       RequestBytes("DELETE", "/v1/sessions/kept", "",
                    {{"Origin", "http://evil.example"}})},
      {"415 UNSUPPORTED_MEDIA_TYPE", post({{"Content-Type", "text/plain"}})},
      {"415 UNSUPPORTED_MEDIA_TYPE",
       post({{"Content-Type", "application/x-www-form-urlencoded"}})},
      {"415 UNSUPPORTED_MEDIA_TYPE",
       start + host + "Content-Length: 2\r\n\r\n{}"},
      {"411 LENGTH_REQUIRED", start + host + json + "\r\n"},
      {"501 UNSUPPORTED_TRANSFER_ENCODING",
       start + host + json + "Transfer-Encoding: gzip, chunked\r\n\r\n"},
      {"501 UNSUPPORTED_TRANSFER_ENCODING",
       RequestBytes("GET", "/health", "", {{"Transfer-Encoding", "gzip"}})},
      {"415 UNSUPPORTED_MEDIA_TYPE", post({{"Content-Encoding", "gzip"}})},
      {"413 BODY_TOO_LARGE",
       start + host + json + "Content-Length: 4194305\r\n\r\n"},
      {"413 BODY_TOO_LARGE",
       start + host + json + "Content-Length: 18446744073709551615\r\n\r\n"},
      {"431 HEADERS_TOO_LARGE", post({{"X-A", std::string(17 << 10, 'a')}})},
      {"400 FIELD_INVALID session_id",
       RequestBytes("POST", "/v1/completions", body,
                    {{"x-txl-session", "a"}, {"x-session-id", "b"}})},
      {"400 FIELD_INVALID session_id",
       RequestBytes("POST", "/v1/completions", body,
                    {{"x-session-id", "a b"}})},
      {"400 FIELD_INVALID Last-Event-ID", post({{"Last-Event-ID", "x"}})},
      {"409 BLIND_REPEAT request_id",
       post({{"x-txl-session", "kept"}, {"x-stainless-retry-count", "1"}})}};
  for (const Head& one : heads) {
    Expect(one.outcome, one.bytes, one.bytes.substr(0, 200));
  }
}

TEST_F(BadHttp, WhatIsNoHttp) {
  const std::string json = "Host: localhost\r\nContent-Type: application/json";
  for (const std::string& bytes : std::vector<std::string>{
           "\r\n\r\n\r\n", "hello\r\n\r\n", "GET\r\n\r\n",
           "GET /health\r\n\r\n", "GET /health HTTP/9.9\r\n\r\n",
           "GET /health FTP/1.1\r\n\r\n",
           "GET /health HTTP/1.1\r\nno colon\r\n\r\n",
           "GET /health HTTP/1.1\r\n: a\r\n\r\n",
           "GET /health HTTP/1.1\r\nHost : localhost\r\n\r\n",
           "GET /a b HTTP/1.1\r\nHost: localhost\r\n\r\n",
           "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
           "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
           "POST / HTTP/1.1\r\n" + json + "\r\nContent-Length: -1\r\n\r\n",
           "POST / HTTP/1.1\r\n" + json + "\r\nContent-Length: 2x\r\n\r\n",
           "POST / HTTP/1.1\r\n" + json +
               "\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{} ",
           "POST / HTTP/1.1\r\n" + json +
               "\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}",
           "POST / HTTP/1.1\r\n" + json +
               "\r\nContent-Length: 99999999999999999999\r\n\r\n"}) {
    Expect("400 MALFORMED_MESSAGE", bytes, bytes);
  }
}

TEST_F(BadHttp, MembersThatAreNoFields) {
  ExpectAll("/v1/sessions/kept/rewind", {{R"({"position": 1, "expected": 3})",
                                          "400 FIELD_INVALID expected"}});
  ExpectAll("/v1/sessions/kept/append", {{R"({"text": "a", "requestid": "r"})",
                                          "400 FIELD_INVALID requestid"}});
  ExpectAll("/v1/sessions/kept/fork",
            {{R"({"new_id": "x"})", "400 FIELD_INVALID new_id"}});
  ExpectAll("/v1/sessions", {{R"({"id": "x"})", "400 FIELD_INVALID id"}});
  ExpectAll("/v1/score",
            {{R"({"text": "a", "unkown": "skip"})", "400 FIELD_INVALID unkown"},
             {R"({"alternatives": ["a"], "logprobs": 1})",
              "400 FIELD_INVALID logprobs"}});
  ExpectAll("/tokenize",
            {{R"({"prompt": "a", "unknow": 1})", "400 FIELD_INVALID unknow"}});
  ExpectAll("/v1/completions", {{R"({"prompt": "a", "sessionid": "kept"})",
                                 "400 FIELD_INVALID sessionid"}});
}

TEST_F(BadHttp, ARefusedRequestsConnectionEnds) {
  RawClient client(world_.address());
  // What stands behind a request that was refused may be part of it.
  client.Send(RequestBytes(
                  "POST", "/v1/completions", "{}",
                  {{"Transfer-Encoding", "chunked"}, {"Content-Length", "2"}}) +
              RequestBytes("DELETE", "/v1/sessions/kept"));
  bool ended = false;
  const std::string all = client.ReceiveAll(&ended);
  EXPECT_TRUE(ended);
  EXPECT_THAT(all, HasSubstr("Connection: close"));
  EXPECT_EQ(all.find("HTTP/1.1", 1), std::string::npos) << all;
}

}  // namespace
}  // namespace txl
