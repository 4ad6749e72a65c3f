// Every refusal, over gRPC and HTTP, names the call to its client and has its
// line, which tells nothing of what was asked.

#include <string>
#include <vector>

#include "server/http/metrics_endpoint.h"
#include "tests/server/http/record_world.h"

namespace txl {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

struct Refused {
  const char* what;
  std::string traceparent;
  const char* method;  // in the line
  const char* status;
  const char* reason;
  const char* key;
};

class RefusalRecords : public RecordWorld {
 protected:
  void Check(const std::vector<Refused>& table) {
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
                  AllOf(Not(HasSubstr("erona")), Not(HasSubstr("wrong"))));
    }
  }
};

TEST_F(RefusalRecords, OverGrpcComeBackWithATraceAndHaveTheirLines) {
  Start();
  const auto call = [this](const std::string& bytes, const char* key,
                           const char* method = kGenerate) {
    return Call(method, bytes, key).traceparent;
  };
  Check({{"no key", call("", ""), kGenerate, "UNAUTHENTICATED",
          "UNAUTHENTICATED", ""},
         {"a wrong key", call("", "wrong"), kGenerate, "UNAUTHENTICATED",
          "UNAUTHENTICATED", ""},
         {"a role that may not", call("", "scorer"), kGenerate,
          "PERMISSION_DENIED", "PERMISSION_DENIED", "judge"},
         {"a method that is not there, without a key",
          call("", "", "no.Such/Verona"), "unknown", "UNAUTHENTICATED",
          "UNAUTHENTICATED", ""},
         {"bytes that are not a message", call("\xff\xff\xff\xff", "user"),
          kGenerate, "INVALID_ARGUMENT", "MALFORMED_MESSAGE", "laptop"},
         {"a field that is wrong",
          call(GenerateBytes("text: 'Verona' sampling { top_p: 7 }"), "user"),
          kGenerate, "INVALID_ARGUMENT", "FIELD_INVALID", "laptop"},
         {"an id that is none",
          call(GenerateBytes("text: 'a' request_id: 'in Verona'"), "user"),
          kGenerate, "INVALID_ARGUMENT", "FIELD_INVALID", "laptop"},
         {"a session that is not there",
          call(GenerateBytes("session_id: 'verona' text: 'a'"), "user"),
          kGenerate, "NOT_FOUND", "SESSION_UNKNOWN", "laptop"}});
}

TEST_F(RefusalRecords, OverHttpComeBackWithATraceAndHaveTheirLines) {
  Start();
  const auto ask = [this](const char* method, const char* path,
                          const char* body, const char* key,
                          const HttpFields& fields = {}) {
    return Ask(method, path, body, key, fields).header("traceparent");
  };
  Check(
      {{"no key", ask("POST", "/v1/completions", "{}", ""), "/v1/completions",
        "UNAUTHENTICATED", "UNAUTHENTICATED", ""},
       {"a wrong key", ask("GET", "/v1/sessions/verona", "", "wrong"),
        "/v1/sessions", "UNAUTHENTICATED", "UNAUTHENTICATED", ""},
       {"a role that may not", ask("POST", "/v1/completions", "{}", "scorer"),
        "/v1/completions", "PERMISSION_DENIED", "PERMISSION_DENIED", "judge"},
       {"no path", ask("GET", "/verona", "", "user"), "unknown", "NOT_FOUND",
        "NOT_FOUND", "laptop"},
       {"another method", ask("DELETE", "/v1/models", "", "user"), "/v1/models",
        "UNIMPLEMENTED", "METHOD_NOT_ALLOWED", "laptop"},
       {"a body that is none", ask("POST", "/v1/completions", "Verona", "user"),
        "/v1/completions", "INVALID_ARGUMENT", "MALFORMED_MESSAGE", "laptop"},
       {"a field that is wrong",
        ask("POST", "/v1/completions", R"({"prompt": "Verona", "top_p": 7})",
            "user"),
        kGenerate, "INVALID_ARGUMENT", "FIELD_INVALID", "laptop"},
       {"a stranger's page",
        ask("GET", "/v1/models", "", "user", {{"Origin", "http://verona"}}),
        "unknown", "PERMISSION_DENIED", "PERMISSION_DENIED", ""},
       {"no HTTP", ask("VERONA?", "/v1/models", "", ""), "unknown",
        "INVALID_ARGUMENT", "MALFORMED_MESSAGE", ""}});
}

TEST_F(RefusalRecords, OfTheMetricsEndpointHaveTheirLines) {
  Start();
  const auto endpoint = MetricsEndpoint::Start(
      "127.0.0.1:0", ExporterFacts(),
      [this] { return world_->rpc.server->Status(); },
      world_->rpc.server->desk());
  ASSERT_TRUE(endpoint.ok()) << endpoint.status();
  RawClient scrape((*endpoint)->address());
  scrape.Send(RequestBytes("GET", "/metrics"));
  Check({{"no key", scrape.ReadAnswer(false).header("traceparent"), "/metrics",
          "UNAUTHENTICATED", "UNAUTHENTICATED", ""}});
}

}  // namespace
}  // namespace txl
