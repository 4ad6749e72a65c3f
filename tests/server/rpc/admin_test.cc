// Administration: who reaches it, and what it does with the server.

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <map>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "server/access/keys_file.h"
#include "server/api/methods.h"
#include "server/base/digest.h"
#include "tests/server/rpc/admin_world.h"

namespace txl {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(AdminMethods, HaveARuleForAdministratorsAlone) {
  ASSERT_THAT(EveryAdminMethod(), SizeIs(9));
  for (const std::string& path : EveryAdminMethod()) {
    const std::string name(absl::StripPrefix(path, "/"));
    const ApiMethod* const method = FindAdminMethod(name);
    ASSERT_NE(method, nullptr) << name;
    EXPECT_TRUE(method->roles.Has(Role::kAdmin)) << name;
    for (const Role role : {Role::kUser, Role::kScorer, Role::kMetrics}) {
      EXPECT_FALSE(method->roles.Has(role)) << name;
    }
    EXPECT_EQ(FindMethod(name), nullptr) << "public: " << name;
  }
}

TEST(AdminMethods, AreNotOnThePublicListener) {
  AdminWorld world;
  for (const std::string& method : EveryAdminMethod()) {
    EXPECT_EQ(CallRaw(world.rpc.channel, method, "").status.error_code(),
              grpc::StatusCode::UNIMPLEMENTED)
        << method;
  }
}

TEST(AdminMethods, AreAllThatTheirListenerHas) {
  AdminWorld world;
  for (const char* method :
       {"/txl.v1.ModelService/GetModel", "/txl.v1.GenerationService/Generate",
        "/txl.v1.SessionService/ListSessions",
        "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"}) {
    EXPECT_EQ(CallRaw(world.channel, method, "").status.error_code(),
              grpc::StatusCode::UNIMPLEMENTED)
        << method;
  }
  EXPECT_TRUE(
      CallRaw(world.channel, "/grpc.health.v1.Health/Check", "").status.ok());
}

TEST(AdminMethods, RefuseBytesThatDoNotParse) {
  AdminWorld world;
  for (const std::string& method : EveryAdminMethod()) {
    EXPECT_EQ(Outcome(CallRaw(world.channel, method, "\xff\xff").status),
              "INVALID_ARGUMENT MALFORMED_MESSAGE")
        << method;
  }
  EXPECT_EQ(world.drains, 0);
}

TEST(AdminMethods, AnswerWhateverTheServerDoes) {
  RpcWorldOptions options;
  options.ready = false;
  AdminWorld world(options);
  v1::GetQuotasResponse quotas;
  EXPECT_EQ(world.Call(&Admin::GetQuotas, "", &quotas), "OK");
  world.rpc.lifecycle.SetDraining();
  EXPECT_EQ(world.Call(&Admin::GetQuotas, "", &quotas), "OK");
}

TEST(AdminSocket, IsItsOwnersAlone) {
  const mode_t before = umask(0);
  AdminWorld world;
  umask(before);
  struct stat file = {};
  const std::string path(absl::StripPrefix(world.server->address(), "unix:"));
  ASSERT_EQ(stat(path.c_str(), &file), 0);
  EXPECT_TRUE(S_ISSOCK(file.st_mode));
  EXPECT_EQ(file.st_mode & 07777, 0600u);
}

class AdminKeys : public ::testing::Test {
 protected:
  AdminKeys() {
    std::vector<KeyEntry> keys;
    for (const Role role : kAllRoles) {
      KeyEntry entry;
      entry.caller = {"alice", RoleName(role), role};
      entry.digest = Sha256Of(RoleName(role));
      keys.push_back(entry);
    }
    EXPECT_TRUE(WriteKeysFile(path_, keys).ok());
    ring_ = *KeyRing::Open(path_, Clock::Real());
    options_.keys = ring_.get();
  }
  std::string Call(AdminWorld& world, const std::string& method,
                   const std::string& key) {
    RpcWorld::Metadata metadata;
    if (!key.empty()) metadata = {{"authorization", "Bearer " + key}};
    return Outcome(
        CallRaw(world.channel, method, "\xff\xff", false, nullptr, metadata)
            .status);
  }

  const std::string path_ =
      absl::StrCat(::testing::TempDir(), "/admin_keys-", getpid());
  std::unique_ptr<KeyRing> ring_;
  RpcWorldOptions options_;
};

// The message parses nowhere: who is let in is told of it.
TEST_F(AdminKeys, OnAPortEveryMethodWantsAnAdministratorsKey) {
  AdminWorld world(options_, "127.0.0.1:0");
  const std::map<std::string, std::string> expected = {
      {"", "UNAUTHENTICATED UNAUTHENTICATED"},
      {"wrong", "UNAUTHENTICATED UNAUTHENTICATED"},
      {"user", "PERMISSION_DENIED PERMISSION_DENIED"},
      {"scorer", "PERMISSION_DENIED PERMISSION_DENIED"},
      {"metrics", "PERMISSION_DENIED PERMISSION_DENIED"},
      {"admin", "INVALID_ARGUMENT MALFORMED_MESSAGE"}};
  for (const std::string& method : EveryAdminMethod()) {
    for (const auto& [key, outcome] : expected) {
      EXPECT_EQ(Call(world, method, key), outcome) << method << " " << key;
    }
  }
  EXPECT_EQ(Call(world, "/no.Such/Method", ""),
            "UNAUTHENTICATED UNAUTHENTICATED");
}

TEST_F(AdminKeys, OnASocketNobodyIsAskedForOne) {
  AdminWorld world(options_);
  EXPECT_EQ(Call(world, EveryAdminMethod().front(), ""),
            "INVALID_ARGUMENT MALFORMED_MESSAGE");
}

TEST(DrainTenant, RefusesNewTurnsAndLetsRunningOnesEnd) {
  AdminWorld world;
  world.rpc.runner.Hold();
  Stream running;
  std::thread turn([&] {
    running = world.rpc.Generate("text: 'a' stop { max_tokens: 3 }");
  });
  EXPECT_TRUE(Eventually([&] { return !world.rpc.scheduler->Idle(); }));
  v1::DrainTenantResponse drain;
  EXPECT_EQ(world.Call(&Admin::DrainTenant, "tenant: 'default'", &drain), "OK");
  EXPECT_THAT(drain.draining_tenants(), ElementsAre("default"));
  EXPECT_FALSE(drain.has_turns()) << "nobody counts them by tenant";
  const std::string refused = "UNAVAILABLE TENANT_DRAINING";
  EXPECT_EQ(
      Outcome(world.rpc.Generate("text: 'a' stop { max_tokens: 3 }").status),
      refused);
  const std::string score =
      Proto<v1::ScoreRequest>("text: 'a'").SerializeAsString();
  EXPECT_EQ(Outcome(CallRaw(world.rpc.channel,
                            "/txl.v1.GenerationService/Score", score)
                        .status),
            refused);
  // Everything else goes on.
  world.rpc.MakeSession("s");
  world.rpc.runner.Release();
  turn.join();
  EXPECT_TRUE(running.status.ok());
  EXPECT_EQ(running.ids().size(), 3u);
  EXPECT_EQ(
      world.Call(&Admin::DrainTenant, "tenant: 'default' undo: true", &drain),
      "OK");
  EXPECT_THAT(drain.draining_tenants(), IsEmpty());
  EXPECT_TRUE(
      world.rpc.Generate("text: 'a' stop { max_tokens: 3 }").status.ok());
}

TEST(DrainTenant, ConcernsNoOtherTenant) {
  AdminWorld world;
  v1::DrainTenantResponse drain;
  EXPECT_EQ(world.Call(&Admin::DrainTenant, "tenant: 'alice'", &drain), "OK");
  EXPECT_TRUE(
      world.rpc.Generate("text: 'a' stop { max_tokens: 1 }").status.ok());
  for (const char* wrong : {"", "undo: true", "tenant: 'a b'"}) {
    EXPECT_EQ(world.Call(&Admin::DrainTenant, wrong, &drain),
              "INVALID_ARGUMENT FIELD_INVALID tenant");
  }
}

TEST(DrainServer, AsksTheServerToEnd) {
  AdminWorld world;
  v1::DrainServerResponse drain;
  EXPECT_EQ(world.Call(&Admin::DrainServer, "", &drain), "OK");
  EXPECT_EQ(world.drains, 1);
  world.may_drain = false;
  EXPECT_EQ(world.Call(&Admin::DrainServer, "", &drain),
            "UNAVAILABLE NOT_READY");
}

TEST(GetQuotas, AreThoseOfAllTenantsAndWhatIsTaken) {
  TenantLimits limits;
  limits.weight = 2;
  limits.turns = 4;
  limits.sessions = 9;
  limits.tokens_in_per_minute = 1;
  limits.count_cached_tokens = true;
  limits.longest_turn = absl::Milliseconds(90500);
  RpcWorldOptions options;
  options.tenants = {{"alice", limits}};
  AdminWorld world(options);
  const absl::Duration now = world.context.clock->Monotonic();
  ASSERT_TRUE(world.rpc.tenants->Find("alice", now)->StartTurn(1, now).ok());
  ASSERT_TRUE(
      world.rpc.store->Create(SessionName("alice", "s"), std::nullopt).ok());
  world.rpc.lifecycle.SetTenantDraining("bob", true);
  v1::GetQuotasResponse quotas;
  ASSERT_EQ(world.Call(&Admin::GetQuotas, "", &quotas), "OK");
  ASSERT_THAT(quotas.tenants(), SizeIs(2));
  const v1::TenantQuotas& alice = quotas.tenants(0);
  EXPECT_EQ(alice.tenant(), "alice");
  EXPECT_FALSE(alice.draining());
  EXPECT_EQ(alice.weight(), 2);
  EXPECT_EQ(alice.turns().limit(), 4);
  EXPECT_EQ(alice.turns().used(), 1);
  EXPECT_EQ(alice.sessions().limit(), 9);
  EXPECT_EQ(alice.sessions().used(), 1);
  EXPECT_FALSE(alice.bytes().has_limit());
  EXPECT_EQ(alice.bytes().used(), 2048) << "an empty session";
  EXPECT_EQ(alice.tokens_in_per_minute().limit(), 1);
  EXPECT_EQ(alice.tokens_in_per_minute().used(), 1);
  EXPECT_TRUE(alice.count_cached_tokens());
  EXPECT_FALSE(alice.calls_per_second().has_limit());
  EXPECT_FALSE(alice.calls_per_second().has_used());
  EXPECT_EQ(alice.longest_turn().seconds(), 90);
  EXPECT_EQ(alice.longest_turn().nanos(), 500'000'000);
  const v1::TenantQuotas& bob = quotas.tenants(1);
  EXPECT_EQ(bob.tenant(), "bob");
  EXPECT_TRUE(bob.draining());
  EXPECT_EQ(bob.weight(), 1);
  EXPECT_FALSE(bob.count_cached_tokens());
  EXPECT_FALSE(bob.has_longest_turn());
  v1::DrainTenantResponse drain;
  EXPECT_EQ(world.Call(&Admin::DrainTenant, "tenant: 'alice'", &drain), "OK");
  EXPECT_EQ(drain.turns(), 1);
}

TEST(Reload, SaysWhatWasReadAndWhatWasWrong) {
  AdminWorld world;
  v1::ReloadResponse reload;
  EXPECT_EQ(world.Call(&Admin::Reload, "", &reload), "OK");
  EXPECT_THAT(reload.files(), IsEmpty());
  world.files = {{"keys", "/k", absl::OkStatus()},
                 {"tenants", "/t", absl::InvalidArgumentError("/t: line 1")}};
  EXPECT_EQ(world.Call(&Admin::Reload, "", &reload), "OK");
  ASSERT_THAT(reload.files(), SizeIs(2));
  EXPECT_EQ(reload.files(0).setting(), "keys");
  EXPECT_EQ(reload.files(0).path(), "/k");
  EXPECT_EQ(reload.files(0).error(), "");
  EXPECT_EQ(reload.files(1).setting(), "tenants");
  EXPECT_EQ(reload.files(1).error(), "/t: line 1");
}

TEST(LogLevelOfAServer, IsSetAndTheOneBeforeTold) {
  AdminWorld world;
  SetLogLevel(LogSeverity::kInfo);
  v1::SetLogLevelResponse set;
  EXPECT_EQ(world.Call(&Admin::SetLogLevel, "level: 'Debug'", &set), "OK");
  EXPECT_EQ(set.level_before(), "info");
  EXPECT_EQ(LogLevel(), LogSeverity::kDebug);
  for (const char* wrong : {"", "level: 'verbose'"}) {
    EXPECT_EQ(world.Call(&Admin::SetLogLevel, wrong, &set),
              "INVALID_ARGUMENT FIELD_INVALID level");
  }
  EXPECT_EQ(LogLevel(), LogSeverity::kDebug);
}

}  // namespace
}  // namespace txl
