// Who may do what: every method over gRPC and every path over HTTP with every
// kind of key, from a table that is written out here once more.

#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <unistd.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/access/key_ring.h"
#include "server/api/methods.h"
#include "server/base/digest.h"
#include "server/http/endpoints.h"
#include "server/http/metrics_endpoint.h"
#include "server/rpc/grpc_server.h"
#include "tests/server/http/http_world.h"

namespace txl {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kReflection[] =
    "grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo";

// Who may, as users are promised: u(ser), s(corer), m(etrics), a(dmin).
const std::map<std::string, std::string>& PromisedMethods() {
  static const auto& promised = *new std::map<std::string, std::string>{
      {"txl.v1.GenerationService/Generate", "ua"},
      {"txl.v1.GenerationService/Score", "usa"},
      {"txl.v1.GenerationService/ScoreAlternatives", "usa"},
      {"txl.v1.SessionService/CreateSession", "ua"},
      {"txl.v1.SessionService/GetSession", "ua"},
      {"txl.v1.SessionService/ListSessions", "ua"},
      {"txl.v1.SessionService/DeleteSession", "ua"},
      {"txl.v1.SessionService/AppendTokens", "ua"},
      {"txl.v1.SessionService/ForkSession", "ua"},
      {"txl.v1.SessionService/RewindSession", "ua"},
      {"txl.v1.SessionService/ExportSession", "ua"},
      {"txl.v1.SessionService/ImportSession", "ua"},
      {"txl.v1.ModelService/GetModel", "usa"},
      {"txl.v1.ModelService/GetServerStatus", "uma"},
      {"txl.v1.ModelService/Tokenize", "usa"},
      {"txl.v1.ModelService/Detokenize", "usa"},
      {kReflection, "usma"}};
  return promised;
}

struct Path {
  const char* method;
  const char* path;
  const char* roles;  // "": open to everybody
};

constexpr Path kPaths[] = {{"POST", "/v1/completions", "ua"},
                           {"POST", "/v1/chat/completions", "ua"},
                           {"GET", "/v1/models", "usa"},
                           {"GET", "/v1/status", "uma"},
                           {"POST", "/v1/score", "usa"},
                           {"POST", "/tokenize", "usa"},
                           {"POST", "/detokenize", "usa"},
                           {"GET", "/tokenizer_info", "usa"},
                           {"GET", "/metrics", "uma"},
                           {"GET", "/v1/sessions", "ua"},
                           {"POST", "/v1/sessions", "ua"},
                           {"GET", "/v1/sessions/s", "ua"},
                           {"DELETE", "/v1/sessions/s", "ua"},
                           {"POST", "/v1/sessions/s/append", "ua"},
                           {"POST", "/v1/sessions/s/fork", "ua"},
                           {"POST", "/v1/sessions/s/rewind", "ua"},
                           {"GET", "/", ""},
                           {"GET", "/ui/main.js", ""},
                           {"GET", "/health", ""}};

bool IsPost(const Path& path) { return std::string(path.method) == "POST"; }

// The methods of the API, from the descriptors: a new one needs a line above.
std::vector<std::string> EveryMethod() {
  std::vector<std::string> methods;
  for (const char* name : {"txl.v1.GenerationService", "txl.v1.SessionService",
                           "txl.v1.ModelService"}) {
    const auto* service =
        google::protobuf::DescriptorPool::generated_pool()->FindServiceByName(
            name);
    for (int i = 0; i < service->method_count(); ++i) {
      methods.push_back(std::string(name) + "/" + service->method(i)->name());
    }
  }
  methods.emplace_back(kReflection);
  return methods;
}

// What stands behind "authorization", and whose role it is.
struct Sent {
  const char* what;
  std::string authorization;  // empty: no such field
  char role = 0;              // 0: it is nobody's
};

class Access : public ::testing::Test {
 protected:
  Access() {
    std::vector<KeyEntry> keys = {Entry("user", "alice", Role::kUser),
                                  Entry("scorer", "alice", Role::kScorer),
                                  Entry("metrics", "alice", Role::kMetrics),
                                  Entry("admin", "alice", Role::kAdmin),
                                  Entry("other", "bob", Role::kUser),
                                  Entry("expired", "alice", Role::kAdmin),
                                  Entry("revoked", "alice", Role::kAdmin)};
    keys[5].expires = absl::UnixEpoch();
    EXPECT_TRUE(WriteKeysFile(path_, keys).ok());
    ring_ = *KeyRing::Open(path_, Clock::Real());
    keys.pop_back();
    EXPECT_TRUE(WriteKeysFile(path_, keys).ok());
    ring_->Refresh();
    HttpWorldOptions options;
    options.rpc.keys = ring_.get();
    world_ = std::make_unique<HttpWorld>(std::move(options));
  }

  static KeyEntry Entry(const std::string& key, const std::string& tenant,
                        Role role) {
    return KeyEntry{.caller = {tenant, key, role}, .digest = Sha256Of(key)};
  }
  static std::vector<Sent> EveryKey() {
    return {{"no key", ""},
            {"malformed", "user"},
            {"another scheme", "Basic user"},
            {"wrong", "Bearer usr"},
            {"expired", "Bearer expired"},
            {"revoked", "Bearer revoked"},
            {"user", "Bearer user", 'u'},
            {"other tenant", "Bearer other", 'u'},
            {"scorer", "Bearer scorer", 's'},
            {"metrics", "Bearer metrics", 'm'},
            {"admin", "Bearer admin", 'a'}};
  }
  RawReply Call(const std::string& method, const std::string& bytes,
                const std::string& authorization) {
    RpcWorld::Metadata metadata;
    if (!authorization.empty()) metadata = {{"authorization", authorization}};
    return CallRaw(world_->rpc.channel, "/" + method, bytes, false, nullptr,
                   metadata);
  }
  HttpAnswer Ask(const std::string& method, const std::string& path,
                 const std::string& body, const std::string& authorization) {
    HttpFields fields;
    if (!authorization.empty()) fields = {{"Authorization", authorization}};
    return world_->Send(method, path, body, fields);
  }
  HttpAnswer Make(const std::string& id, const std::string& authorization) {
    return Ask("POST", "/v1/sessions", R"({"session_id": ")" + id + R"("})",
               authorization);
  }

  const std::string path_ =
      absl::StrCat(::testing::TempDir(), "/access_keys_", getpid());
  std::unique_ptr<KeyRing> ring_;
  std::unique_ptr<HttpWorld> world_;
};

TEST_F(Access, EveryMethodHasARule) {
  std::set<std::string> promised;
  for (const auto& [name, roles] : PromisedMethods()) promised.insert(name);
  const std::vector<std::string> every = EveryMethod();
  EXPECT_EQ(std::set<std::string>(every.begin(), every.end()), promised);
  for (const std::string& name : every) {
    const ApiMethod* const method =
        name == kReflection ? &ReflectionMethod() : FindMethod(name);
    ASSERT_NE(method, nullptr) << name;
    EXPECT_FALSE(method->roles.empty()) << name;
  }
}

// The message parses nowhere: who is refused was not read, who is let in is
// told of it.
TEST_F(Access, OfEveryMethodWithEveryKey) {
  for (const std::string& method : EveryMethod()) {
    for (const Sent& sent : EveryKey()) {
      std::string expected = "PERMISSION_DENIED PERMISSION_DENIED";
      if (sent.role == 0) {
        expected = "UNAUTHENTICATED UNAUTHENTICATED";
      } else if (absl::StrContains(PromisedMethods().at(method), sent.role)) {
        expected = "INVALID_ARGUMENT MALFORMED_MESSAGE";
      }
      const RawReply reply =
          Call(method, "\xff\xff\xff\xff", sent.authorization);
      EXPECT_EQ(Outcome(reply.status), expected) << method << " " << sent.what;
      if (sent.role == 0) {
        EXPECT_EQ(reply.status.error_message(),
                  "a valid key is needed: authorization: Bearer KEY");
      }
    }
  }
}

TEST_F(Access, OfEveryPathWithEveryKey) {
  for (const Path& path : kPaths) {
    for (const Sent& sent : EveryKey()) {
      SCOPED_TRACE(std::string(path.method) + " " + path.path + " " +
                   sent.what);
      const std::string roles = path.roles;
      const HttpAnswer answer = Ask(
          path.method, path.path, IsPost(path) ? "{" : "", sent.authorization);
      if (!roles.empty() && sent.role == 0) {
        EXPECT_EQ(answer.outcome(), "401 UNAUTHENTICATED");
        EXPECT_EQ(answer.header("www-authenticate"), "Bearer");
        EXPECT_EQ(answer.json()["error"]["message"],
                  "a valid key is needed: authorization: Bearer KEY");
      } else if (!roles.empty() && !absl::StrContains(roles, sent.role)) {
        EXPECT_EQ(answer.outcome(), "403 PERMISSION_DENIED");
      } else {
        // Not "200": the body is broken, and there is no session "s".
        EXPECT_NE(answer.status, 401);
        EXPECT_NE(answer.status, 403);
        EXPECT_NE(answer.status, 0);
      }
    }
  }
}

TEST_F(Access, WhoIsRefusedIsNotTakenOn) {
  for (const std::string& method : EveryMethod()) Call(method, "", "");
  for (const Path& path : kPaths) {
    if (*path.roles != 0) Ask(path.method, path.path, "{}", "");
  }
  const Snapshot counted = world_->rpc.metrics.Get();
  for (const auto& [call, count] : counted.calls) {
    EXPECT_EQ(call.code, absl::StatusCode::kUnauthenticated) << call.method;
  }
  EXPECT_EQ(world_->rpc.server->calls().open, 0);
  EXPECT_EQ(world_->rpc.store->counts().created, 0);
}

TEST_F(Access, WhatHasNoRuleIsNotThere) {
  EXPECT_TRUE(RuleOf("/nothing").roles.empty());
  EXPECT_FALSE(RuleOf("/nothing").open);
  EXPECT_EQ(Ask("GET", "/nothing", "", "").outcome(), "401 UNAUTHENTICATED");
  EXPECT_EQ(Ask("GET", "/nothing", "", "Bearer admin").status, 404);
  EXPECT_EQ(Outcome(Call("no.Such/Method", "", "").status),
            "UNAUTHENTICATED UNAUTHENTICATED");
  EXPECT_EQ(Call("no.Such/Method", "", "Bearer admin").status.error_code(),
            grpc::StatusCode::UNIMPLEMENTED);
}

// It has a listener of its own: nobody's key reaches it here.
TEST_F(Access, AdministrationIsNotThere) {
  for (const char* name :
       {"ListTenantSessions", "MoveOutSession", "EndSession", "DrainTenant",
        "DrainServer", "GetQuotas", "Reload", "SetLogLevel", "Dump"}) {
    const std::string method = std::string("txl.v1.AdminService/") + name;
    EXPECT_EQ(Call(method, "", "Bearer admin").status.error_code(),
              grpc::StatusCode::UNIMPLEMENTED)
        << method;
    EXPECT_EQ(Ask("POST", "/" + method, "{}", "Bearer admin").status, 404)
        << method;
  }
  EXPECT_EQ(Ask("GET", "/v1/admin", "", "Bearer admin").status, 404);
}

TEST_F(Access, HealthNeedsNoKey) {
  EXPECT_TRUE(Call("grpc.health.v1.Health/Check", "", "").status.ok());
}

TEST_F(Access, ReflectionAnswersWhoHasAKey) {
  // ServerReflectionRequest { string list_services = 7; }
  const RawReply reply =
      Call(kReflection, std::string("\x3a\x00", 2), "Bearer metrics");
  ASSERT_TRUE(reply.status.ok()) << reply.status.error_message();
  ASSERT_EQ(reply.messages.size(), 1u);
  EXPECT_THAT(reply.messages[0], HasSubstr("txl.v1.SessionService"));
}

TEST_F(Access, TwoKeysAreNone) {
  const HttpAnswer answer = world_->Send(
      "GET", "/v1/models", "",
      {{"Authorization", "Bearer user"}, {"authorization", "Bearer user"}});
  EXPECT_EQ(answer.outcome(), "401 UNAUTHENTICATED");
}

TEST_F(Access, AScorerHasNoSessions) {
  const auto score = Proto<v1::ScoreRequest>("text: 'a'");
  EXPECT_EQ(Outcome(Call("txl.v1.GenerationService/Score",
                         score.SerializeAsString(), "Bearer scorer")
                        .status),
            "OK");
  const auto named = Proto<v1::ScoreRequest>("session_id: 's' text: 'a'");
  EXPECT_EQ(Outcome(Call("txl.v1.GenerationService/Score",
                         named.SerializeAsString(), "Bearer scorer")
                        .status),
            "PERMISSION_DENIED PERMISSION_DENIED");
  EXPECT_EQ(Ask("POST", "/v1/score", R"({"text": "a", "session_id": "s"})",
                "Bearer scorer")
                .outcome(),
            "403 PERMISSION_DENIED");
}

TEST_F(Access, TheEndpointOfMetricsAsksForAKeyTooButNotForHealth) {
  const auto endpoint = MetricsEndpoint::Start(
      "127.0.0.1:0", ExporterFacts(),
      [this] { return world_->rpc.server->Status(); },
      world_->rpc.server->desk());
  ASSERT_TRUE(endpoint.ok()) << endpoint.status();
  const auto status = [&](const char* path, const HttpFields& fields) {
    RawClient client((*endpoint)->address());
    client.Send(RequestBytes("GET", path, "", fields));
    return client.ReadAnswer(false).status;
  };
  EXPECT_EQ(status("/metrics", {}), 401);
  EXPECT_EQ(status("/metrics", {{"Authorization", "Bearer scorer"}}), 403);
  EXPECT_EQ(status("/metrics", {{"Authorization", "Bearer metrics"}}), 200);
  EXPECT_EQ(status("/other", {}), 401);
  EXPECT_EQ(status("/health", {}), 200);
  EXPECT_EQ(status("/health", {{"Authorization", "Bearer unknown"}}), 200);
}

TEST_F(Access, EveryCallsLineSaysWhoseItIs) {
  ASSERT_EQ(Ask("GET", "/v1/models", "", "Bearer user").status, 200);
  EXPECT_TRUE(world_->rpc.Logged(R"("tenant":"alice","key":"user")"));
  for (const std::string& line : world_->rpc.log.lines()) {
    EXPECT_THAT(line, Not(HasSubstr("Bearer")));
  }
}

// Every method that names a session, asked by a tenant for another's and for
// one that never was.
TEST_F(Access, AnothersSessionIsAsUnknownToMethodsAsOneThatNeverWas) {
  ASSERT_EQ(Make("hers", "Bearer user").status, 200);
  const std::string text =
      "\x12\x01"
      "a";
  const std::map<std::string, std::string> requests = {
      {"GenerationService/Generate", text},
      {"GenerationService/Score", text},
      {"SessionService/GetSession", ""},
      {"SessionService/DeleteSession", ""},
      {"SessionService/AppendTokens", text},
      {"SessionService/ForkSession", ""},
      {"SessionService/RewindSession", std::string("\x10\x00", 2)},
      {"SessionService/ExportSession", ""}};
  const auto ask = [&](const std::string& method, const std::string& rest,
                       const std::string& id) {
    // Field 1 of all of them.
    return Call("txl.v1." + method, "\x0a\x04" + id + rest, "Bearer other")
        .status;
  };
  for (const auto& [method, rest] : requests) {
    const grpc::Status hers = ask(method, rest, "hers");
    const grpc::Status none = ask(method, rest, "none");
    EXPECT_EQ(Outcome(hers), "NOT_FOUND SESSION_UNKNOWN") << method;
    EXPECT_EQ(Outcome(none), Outcome(hers)) << method;
    EXPECT_EQ(none.error_message(), hers.error_message()) << method;
    EXPECT_EQ(none.error_details(), hers.error_details()) << method;
  }
  EXPECT_EQ(Ask("GET", "/v1/sessions/hers", "", "Bearer user").status, 200);
}

TEST_F(Access, AnothersSessionIsAsUnknownToPathsAsOneThatNeverWas) {
  ASSERT_EQ(Make("hers", "Bearer user").status, 200);
  const std::string before = "/v1/sessions/";
  for (const Path& path : kPaths) {
    const std::string asked = path.path;
    if (!absl::StartsWith(asked, before + "s")) continue;
    const auto answer = [&](const std::string& id) {
      const std::string body = absl::StrContains(asked, "append")
                                   ? R"({"text": "a"})"
                                   : R"({"position": 0})";
      return Ask(path.method, before + id + asked.substr(before.size() + 1),
                 IsPost(path) ? body : "", "Bearer other");
    };
    EXPECT_EQ(answer("hers").outcome(), "404 SESSION_UNKNOWN") << asked;
    EXPECT_EQ(answer("none").body, answer("hers").body) << asked;
  }
  EXPECT_EQ(Ask("GET", "/v1/sessions/hers", "", "Bearer user").status, 200);
}

TEST_F(Access, TenantsHaveTheSameIdsAndTheirOwnLists) {
  for (const char* key : {"Bearer user", "Bearer other"}) {
    EXPECT_EQ(Make("s", key).status, 200);
    EXPECT_EQ(Make("s", key).outcome(), "409 SESSION_EXISTS");
  }
  ASSERT_EQ(Make("hers", "Bearer user").status, 200);
  const auto listed = [&](const char* key) {
    return Ask("GET", "/v1/sessions", "", key).json()["data"].size();
  };
  EXPECT_EQ(listed("Bearer user"), 2u);
  EXPECT_EQ(listed("Bearer other"), 1u);
}

}  // namespace
}  // namespace txl
