// Every call can be followed, over gRPC and HTTP: its traceparent comes back,
// whatever becomes of it, and stands in its line and its span.

#include <gmock/gmock.h>

#include <cstdio>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "server/access/key_ring.h"
#include "server/base/digest.h"
#include "server/base/line_file.h"
#include "server/base/text_file.h"
#include "server/http/metrics_endpoint.h"
#include "server/trace/trace_context.h"
#include "tests/server/http/http_world.h"

namespace txl {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

constexpr char kTrace[] = "4bf92f3577b34da6a3ce929d0e0e4736";
constexpr char kSent[] =
    "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
constexpr char kGenerate[] = "txl.v1.GenerationService/Generate";
// What nobody may find in any line.
constexpr char kText[] = "Verona beach";

class Records : public testing::Test {
 protected:
  void Start(bool with_keys = true) {
    for (const std::string& path : {keys_path_, audit_path_, spans_path_}) {
      std::remove(path.c_str());
    }
    std::vector<KeyEntry> keys(2);
    keys[0].caller = {"alice", "laptop", Role::kUser};
    keys[0].digest = Sha256Of("user");
    keys[1].caller = {"alice", "judge", Role::kScorer};
    keys[1].digest = Sha256Of("scorer");
    ASSERT_TRUE(WriteKeysFile(keys_path_, keys).ok());
    ring_ = *KeyRing::Open(keys_path_, Clock::Real());
    audit_ = *LineFile::Open({"audit-log", audit_path_});
    spans_ = *LineFile::Open({"trace-file", spans_path_});
    HttpWorldOptions options;
    if (with_keys) options.rpc.keys = ring_.get();
    options.rpc.audit = audit_.get();
    options.rpc.spans = spans_.get();
    options.rpc.trace_rate = rate_;
    world_ = std::make_unique<HttpWorld>(std::move(options));
  }
  // The fields of a trace's lines, once there are so many.
  std::vector<json> Lines(const std::string& trace, size_t count) {
    std::vector<json> found;
    Eventually([&] {
      found.clear();
      for (const auto line :
           absl::StrSplit(ReadTextFile(audit_path_), '\n', absl::SkipEmpty())) {
        const json one = json::parse(line, nullptr, false);
        if (one.is_discarded()) continue;
        if (one["fields"]["trace_id"] == trace) found.push_back(one["fields"]);
      }
      return found.size() >= count;
    });
    return found;
  }
  json Line(const std::string& trace) {
    const std::vector<json> lines = Lines(trace, 1);
    EXPECT_THAT(lines, SizeIs(1));
    return lines.empty() ? json() : lines[0];
  }
  std::vector<json> Spans(const std::string& trace, size_t count) {
    std::vector<json> found;
    Eventually([&] {
      found.clear();
      for (const auto line :
           absl::StrSplit(ReadTextFile(spans_path_), '\n', absl::SkipEmpty())) {
        const json one = json::parse(line, nullptr, false);
        if (one.is_discarded()) continue;
        for (const json& span :
             one["resourceSpans"][0]["scopeSpans"][0]["spans"]) {
          if (span["traceId"] == trace) found.push_back(span);
        }
      }
      return found.size() >= count;
    });
    return found;
  }
  RawReply Call(const std::string& method, const std::string& bytes,
                const std::string& key, const std::string& trace = "") {
    RpcWorld::Metadata metadata;
    if (!key.empty()) metadata.emplace("authorization", "Bearer " + key);
    if (!trace.empty()) metadata.emplace("traceparent", trace);
    return CallRaw(world_->rpc.channel, "/" + method, bytes, false, nullptr,
                   metadata);
  }
  HttpAnswer Ask(const std::string& method, const std::string& path,
                 const std::string& body, const std::string& key,
                 HttpFields fields = {}) {
    if (!key.empty()) fields.emplace_back("Authorization", "Bearer " + key);
    return world_->Send(method, path, body, fields);
  }
  // The trace that an answer names; fails the test where it names none.
  static std::string TraceOf(const std::string& traceparent) {
    const auto parsed = ParseTraceparent(traceparent);
    EXPECT_TRUE(parsed.has_value()) << traceparent;
    return parsed.has_value() ? parsed->trace_id : "";
  }

  double rate_ = 1;
  const std::string keys_path_ = testing::TempDir() + "/record_keys";
  const std::string audit_path_ = testing::TempDir() + "/record_audit";
  const std::string spans_path_ = testing::TempDir() + "/record_spans";
  std::unique_ptr<KeyRing> ring_;
  std::unique_ptr<LineFile> audit_;
  std::unique_ptr<LineFile> spans_;
  std::unique_ptr<HttpWorld> world_;
};

std::string GenerateBytes(const std::string& text) {
  return Proto<v1::GenerateRequest>(text).SerializeAsString();
}

TEST_F(Records, ACallOverGrpcIsFollowedByItsClientsTrace) {
  Start();
  world_->rpc.MakeSession("s");
  const RawReply reply =
      Call(kGenerate,
           GenerateBytes(absl::StrCat(
               "text: '", kText, "' request_id: 'r-1' stop { max_tokens: 3 }")),
           "user", kSent);
  ASSERT_EQ(Outcome(reply.status), "OK");
  const auto returned = ParseTraceparent(reply.traceparent);
  ASSERT_TRUE(returned.has_value()) << reply.traceparent;
  EXPECT_EQ(returned->trace_id, kTrace);
  EXPECT_TRUE(returned->sampled);
  const json line = Line(kTrace);
  EXPECT_EQ(line["method"], kGenerate);
  EXPECT_EQ(line["status"], "OK");
  EXPECT_EQ(line["tenant"], "alice");
  EXPECT_EQ(line["key"], "laptop");
  EXPECT_EQ(line["request_id"], "r-1");
  EXPECT_EQ(line["session"], "");
  EXPECT_EQ(line["prompt_tokens"], std::string(kText).size());
  EXPECT_EQ(line["generated_tokens"], 3);
  EXPECT_THAT(line["peer"].get<std::string>(), HasSubstr("127.0.0.1:"));
  EXPECT_GE(
      line["seconds"].get<double>(),
      line["queue_seconds"].get<double>() + line["run_seconds"].get<double>());
  const std::vector<json> spans = Spans(kTrace, 4);
  ASSERT_THAT(spans, SizeIs(4));
  EXPECT_EQ(spans[0]["spanId"], returned->span_id);
  EXPECT_EQ(spans[0]["parentSpanId"], "00f067aa0ba902b7");
  EXPECT_EQ(spans[0]["name"], kGenerate);
  for (size_t i = 1; i < 4; ++i) {
    EXPECT_EQ(spans[i]["parentSpanId"], spans[0]["spanId"]);
  }
}

TEST_F(Records, ACallOverHttpIsFollowedByItsClientsTrace) {
  Start();
  const HttpAnswer answer =
      Ask("POST", "/v1/completions",
          json({{"prompt", kText}, {"max_tokens", 3}}).dump(), "user",
          {{"traceparent", kSent}, {"x-request-id", "mine"}});
  ASSERT_EQ(answer.status, 200);
  const auto returned = ParseTraceparent(answer.header("traceparent"));
  ASSERT_TRUE(returned.has_value());
  EXPECT_EQ(returned->trace_id, kTrace);
  const json line = Line(kTrace);
  EXPECT_EQ(line["method"], kGenerate);
  EXPECT_EQ(line["request_id"], "mine");
  EXPECT_EQ(line["tenant"], "alice");
  EXPECT_THAT(line["peer"].get<std::string>(), HasSubstr("http:127.0.0.1:"));
  const std::vector<json> spans = Spans(kTrace, 4);
  ASSERT_THAT(spans, SizeIs(4));
  EXPECT_EQ(spans[0]["spanId"], returned->span_id);
  EXPECT_EQ(spans[0]["parentSpanId"], "00f067aa0ba902b7");
}

TEST_F(Records, TheCallsOfOneRequestAreSpansOfTheirOwnBelowTheFirst) {
  Start();
  const HttpAnswer answer = Ask(
      "POST", "/v1/completions",
      json({{"prompt", {"a", "b", "c"}}, {"max_tokens", 1}}).dump(), "user");
  ASSERT_EQ(answer.status, 200);
  const auto returned = *ParseTraceparent(answer.header("traceparent"));
  EXPECT_THAT(Lines(returned.trace_id, 3), SizeIs(3));
  std::set<std::string> ids;
  for (const json& span : Spans(returned.trace_id, 12)) {
    EXPECT_TRUE(ids.insert(span["spanId"]).second);
    if (span["kind"] != 2) continue;
    if (span["spanId"] == returned.span_id) {
      EXPECT_FALSE(span.contains("parentSpanId")) << "the client sent none";
    } else {
      EXPECT_EQ(span["parentSpanId"], returned.span_id);
    }
  }
  EXPECT_EQ(ids.size(), 12u);
  EXPECT_EQ(ids.count(returned.span_id), 1u);
}

TEST_F(Records, ASessionIsNamedByAHashThatIsTheSameOnBothTransports) {
  Start();
  const HttpAnswer made =
      Ask("POST", "/v1/sessions", R"({"session_id": "verona"})", "user");
  ASSERT_EQ(made.status, 200) << made.body;
  const RawReply fed =
      Call("txl.v1.SessionService/AppendTokens",
           Proto<v1::AppendTokensRequest>("session_id: 'verona' text: 'ab'")
               .SerializeAsString(),
           "user");
  ASSERT_EQ(Outcome(fed.status), "OK");
  const json first = Line(TraceOf(made.header("traceparent")));
  const json second = Line(TraceOf(fed.traceparent));
  const std::string hash =
      absl::BytesToHexString(Sha256Of("alice/verona")).substr(0, 16);
  EXPECT_EQ(first["session"], hash);
  EXPECT_EQ(second["session"], hash);
  EXPECT_EQ(second["named_session"], true);
  EXPECT_THAT(ReadTextFile(audit_path_), Not(HasSubstr("verona")));
}

TEST_F(Records, ASessionWithoutANameHasTheHashOfTheOneThatItGot) {
  Start();
  const HttpAnswer made = Ask("POST", "/v1/sessions", "{}", "user");
  const std::string id = made.json()["session_id"];
  EXPECT_EQ(Line(TraceOf(made.header("traceparent")))["session"],
            absl::BytesToHexString(Sha256Of("alice/" + id)).substr(0, 16));
}

TEST_F(Records, WhatIsNoTraceparentIsAsNone) {
  Start();
  for (const std::string bad : {"00-nonsense", "", "ff-4bf9"}) {
    const RawReply reply =
        Call("txl.v1.ModelService/GetModel", "", "user", bad);
    EXPECT_NE(TraceOf(reply.traceparent), kTrace);
    const HttpAnswer answer =
        Ask("GET", "/v1/models", "", "user", {{"traceparent", bad}});
    EXPECT_NE(TraceOf(answer.header("traceparent")), kTrace);
  }
  const HttpAnswer two = Ask("GET", "/v1/models", "", "user",
                             {{"traceparent", kSent}, {"traceparent", kSent}});
  EXPECT_NE(TraceOf(two.header("traceparent")), kTrace);
}

struct Refused {
  const char* what;
  std::string traceparent;
  const char* method;  // in the line
  const char* status;
  const char* reason;
  const char* key;
};

TEST_F(Records, EveryRefusalComesBackWithATraceAndHasItsLine) {
  Start();
  const std::string broken = "\xff\xff\xff\xff";
  const auto endpoint = MetricsEndpoint::Start(
      "127.0.0.1:0", ExporterFacts(),
      [this] { return world_->rpc.server->Status(); },
      world_->rpc.server->desk());
  ASSERT_TRUE(endpoint.ok());
  RawClient scrape((*endpoint)->address());
  scrape.Send(RequestBytes("GET", "/metrics"));
  const std::string of_scrape = scrape.ReadAnswer(false).header("traceparent");
  const auto http = [this](const char* method, const char* path,
                           const char* body, const char* key) {
    return Ask(method, path, body, key).header("traceparent");
  };
  const Refused table[] = {
      {"no key", Call(kGenerate, "", "").traceparent, kGenerate,
       "UNAUTHENTICATED", "UNAUTHENTICATED", ""},
      {"a wrong key", Call(kGenerate, "", "wrong").traceparent, kGenerate,
       "UNAUTHENTICATED", "UNAUTHENTICATED", ""},
      {"a role that may not", Call(kGenerate, "", "scorer").traceparent,
       kGenerate, "PERMISSION_DENIED", "PERMISSION_DENIED", "judge"},
      {"a method that is not there, without a key",
       Call("no.Such/Method", "", "").traceparent, "unknown", "UNAUTHENTICATED",
       "UNAUTHENTICATED", ""},
      {"bytes that are no message", Call(kGenerate, broken, "user").traceparent,
       kGenerate, "INVALID_ARGUMENT", "MALFORMED_MESSAGE", "laptop"},
      {"a field that is wrong",
       Call(kGenerate, GenerateBytes("text: 'a' sampling { top_p: 7 }"), "user")
           .traceparent,
       kGenerate, "INVALID_ARGUMENT", "FIELD_INVALID", "laptop"},
      {"a session that is not there",
       Call(kGenerate, GenerateBytes("session_id: 'none' text: 'a'"), "user")
           .traceparent,
       kGenerate, "NOT_FOUND", "SESSION_UNKNOWN", "laptop"},
      {"HTTP, no key", http("POST", "/v1/completions", "{}", ""),
       "/v1/completions", "UNAUTHENTICATED", "UNAUTHENTICATED", ""},
      {"HTTP, a wrong key", http("GET", "/v1/sessions/verona", "", "wrong"),
       "/v1/sessions", "UNAUTHENTICATED", "UNAUTHENTICATED", ""},
      {"HTTP, a role that may not",
       http("POST", "/v1/completions", "{}", "scorer"), "/v1/completions",
       "PERMISSION_DENIED", "PERMISSION_DENIED", "judge"},
      {"HTTP, no path", http("GET", "/verona", "", "user"), "unknown",
       "NOT_FOUND", "NOT_FOUND", "laptop"},
      {"HTTP, another method", http("DELETE", "/v1/models", "", "user"),
       "/v1/models", "UNIMPLEMENTED", "METHOD_NOT_ALLOWED", "laptop"},
      {"HTTP, a body that is none",
       http("POST", "/v1/completions", "Verona beach", "user"),
       "/v1/completions", "INVALID_ARGUMENT", "MALFORMED_MESSAGE", "laptop"},
      {"HTTP, a field that is wrong",
       http("POST", "/v1/completions", R"({"prompt": "a", "top_p": 7})",
            "user"),
       kGenerate, "INVALID_ARGUMENT", "FIELD_INVALID", "laptop"},
      {"HTTP, a page of a stranger",
       Ask("GET", "/v1/models", "", "user", {{"Origin", "http://evil"}})
           .header("traceparent"),
       "unknown", "PERMISSION_DENIED", "PERMISSION_DENIED", ""},
      {"metrics, no key", of_scrape, "/metrics", "UNAUTHENTICATED",
       "UNAUTHENTICATED", ""},
  };
  for (const Refused& refused : table) {
    SCOPED_TRACE(refused.what);
    const json line = Line(TraceOf(refused.traceparent));
    EXPECT_EQ(line["method"], refused.method);
    EXPECT_EQ(line["status"], refused.status);
    EXPECT_EQ(line["reason"], refused.reason);
    EXPECT_EQ(line["key"], refused.key);
    EXPECT_EQ(line["tenant"], *refused.key == 0 ? "" : "alice");
  }
  for (const std::string& path : {audit_path_, spans_path_}) {
    EXPECT_THAT(ReadTextFile(path),
                AllOf(Not(HasSubstr("verona")), Not(HasSubstr("Verona")),
                      Not(HasSubstr("wrong"))));
  }
}

TEST_F(Records, WhatIsSaidOfACallHoldsNothingOfItsTexts) {
  Start(/*with_keys=*/false);
  world_->rpc.MakeSession("verona");
  const Stream stream = world_->rpc.Generate(
      absl::StrCat("session_id: 'verona' text: '", kText,
                   "' stop { max_tokens: 20 stop_texts: 'Montague' }"));
  ASSERT_TRUE(stream.status.ok());
  const std::string trace = TraceOf(stream.traceparent);
  EXPECT_EQ(Line(trace)["tenant"], "default");
  EXPECT_THAT(Spans(trace, 4), SizeIs(4));
  for (const std::string& path : {audit_path_, spans_path_}) {
    EXPECT_THAT(ReadTextFile(path),
                AllOf(Not(HasSubstr("erona")), Not(HasSubstr("Montague"))));
  }
  EXPECT_THAT(world_->rpc.log.lines(),
              Each(AllOf(Not(HasSubstr("erona")), Not(HasSubstr("Montague")))));
}

TEST_F(Records, TheRateIsForTracesThatTheirClientsDoNotSample) {
  rate_ = 0;
  Start();
  const HttpAnswer unsampled = Ask("GET", "/v1/models", "", "user");
  EXPECT_THAT(unsampled.header("traceparent"), testing::EndsWith("-00"));
  const HttpAnswer sampled =
      Ask("GET", "/v1/models", "", "user", {{"traceparent", kSent}});
  EXPECT_THAT(sampled.header("traceparent"), testing::EndsWith("-01"));
  EXPECT_THAT(Spans(kTrace, 1), SizeIs(1));
  EXPECT_THAT(Spans(TraceOf(unsampled.header("traceparent")), 0), IsEmpty());
}

TEST_F(Records, AFullDiskCostsLinesAndNoCall) {
  audit_ = *LineFile::Open({"audit-log", "/dev/full"});
  HttpWorldOptions options;
  options.rpc.audit = audit_.get();
  world_ = std::make_unique<HttpWorld>(std::move(options));
  for (int i = 0; i < 20; ++i) {
    EXPECT_TRUE(
        world_->rpc.Generate("text: 'a' stop { max_tokens: 2 }").status.ok());
    EXPECT_EQ(world_->Get("/v1/models").status, 200);
  }
  EXPECT_TRUE(Eventually([&] { return audit_->lost() >= 40; }));
  EXPECT_TRUE(world_->rpc.Logged(R"("event":"lines_lost")"));
  const std::string metrics = world_->Get("/metrics").body;
  EXPECT_THAT(metrics, HasSubstr("txl_audit_lines_lost_total 4"));
  EXPECT_THAT(metrics, HasSubstr("txl_trace_lines_lost_total 0"));
}

}  // namespace
}  // namespace txl
