// Every call can be followed, over gRPC and HTTP: its traceparent comes back,
// whatever becomes of it, and stands in its line and its span.

#include <set>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "tests/server/http/record_world.h"

namespace txl {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr char kTrace[] = "4bf92f3577b34da6a3ce929d0e0e4736";
constexpr char kSent[] =
    "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
// What nobody may find in any line.
constexpr char kText[] = "Verona beach";

using Records = RecordWorld;

TEST_F(Records, ACallOverGrpcIsFollowedByItsClientsTrace) {
  Start();
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
  EXPECT_THAT(unsampled.header("traceparent"), ::testing::EndsWith("-00"));
  const HttpAnswer sampled =
      Ask("GET", "/v1/models", "", "user", {{"traceparent", kSent}});
  EXPECT_THAT(sampled.header("traceparent"), ::testing::EndsWith("-01"));
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
