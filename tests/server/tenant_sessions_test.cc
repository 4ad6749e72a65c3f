// A whole server with --tenants and --data-dir: what a tenant keeps is known
// after every restart.

#include <grpcpp/create_channel.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "model/text/byte_vocabulary.h"
#include "server/server.h"
#include "tests/fakes/fake_step_runner.h"
#include "tests/server/exporter/scrape.h"
#include "txl/v1/session_service.grpc.pb.h"

namespace txl {
namespace {

using txl::testing::ScrapeMetrics;

class TenantSessionsTest : public ::testing::Test {
 protected:
  TenantSessionsTest() {
    std::string folder = ::testing::TempDir() + "/tenantsXXXXXX";
    folder_ = mkdtemp(folder.data());
    flags_.listen = flags_.metrics_listen = "127.0.0.1:0";
    flags_.hang_limit = absl::ZeroDuration();
    flags_.store.data_dir = folder_ + "/store";
  }
  ~TenantSessionsTest() override {
    server_.reset();
    std::filesystem::remove_all(folder_);
  }

  void Allow(const std::string& quotas) {
    flags_.tenants = folder_ + "/tenants.toml";
    std::ofstream(flags_.tenants) << "[tenant.default]\n" << quotas << "\n";
    if (server_ != nullptr) server_->Reload();
  }
  void Start(const std::string& fingerprint = "f00d") {
    server_.reset();
    ModelDirectory model;
    model.name = "fake";
    model.fingerprint = fingerprint;
    model.config.vocab_size = ByteVocabulary::kSize;
    model.vocabulary = std::make_unique<ByteVocabulary>();
    FakeStepRunnerOptions options = {.vocab_size = ByteVocabulary::kSize};
    auto server = Server::StartWith(flags_, std::move(model),
                                    std::make_unique<FakeStepRunner>(options));
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    sessions_ = v1::SessionService::NewStub(grpc::CreateChannel(
        server_->address(), grpc::InsecureChannelCredentials()));
  }

  grpc::Status Create(const std::string& id) {
    grpc::ClientContext client;
    v1::CreateSessionRequest request;
    request.set_session_id(id);
    v1::CreateSessionResponse response;
    return sessions_->CreateSession(&client, request, &response);
  }
  grpc::Status Delete(const std::string& id) {
    grpc::ClientContext client;
    v1::DeleteSessionRequest request;
    request.set_session_id(id);
    v1::DeleteSessionResponse response;
    return sessions_->DeleteSession(&client, request, &response);
  }
  grpc::Status Append(const std::string& id, const std::string& text) {
    grpc::ClientContext client;
    v1::AppendTokensRequest request;
    request.set_session_id(id);
    request.set_text(text);
    v1::AppendTokensResponse response;
    return sessions_->AppendTokens(&client, request, &response);
  }
  double Metric(const std::string& name) {
    return ScrapeMetrics(server_->metrics_address())
        .At(name + "{tenant=\"default\"}");
  }
  // Bytes of sessions of fewer than 17 tokens: one has none, one more than one.
  double EmptyAndLong() const {
    return 2048 + 2048 + 16 * 4 + 32 + 16 +
           static_cast<double>(server_->engine().bytes_per_slot);
  }

  std::string folder_;
  ServerFlags flags_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<v1::SessionService::Stub> sessions_;
};

TEST_F(TenantSessionsTest, StoredSessionsCountBeforeAnybodyAsksForThem) {
  Allow("sessions = 2");
  Start();
  ASSERT_TRUE(Create("empty").ok());
  ASSERT_TRUE(Create("long").ok());
  ASSERT_TRUE(Append("long", "0123456789").ok());
  EXPECT_EQ(Metric("txl_tenant_session_bytes"), EmptyAndLong());
  Start();
  EXPECT_EQ(Metric("txl_tenant_sessions"), 2);
  EXPECT_EQ(Metric("txl_tenant_session_bytes"), EmptyAndLong());
  const grpc::Status refused = Create("more");
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(refused.error_message(),
            "over the tenant's quota sessions = 2: its sessions hold 2, and 1 "
            "more were asked for");
  EXPECT_EQ(Metric("txl_tenant_refused_total"), 1);
  ASSERT_TRUE(Delete("empty").ok());
  EXPECT_TRUE(Create("more").ok());
}

TEST_F(TenantSessionsTest, AStoreOfAServerWithoutTenantsIsTheDefaultTenants) {
  Start();
  for (const char* id : {"a", "b", "c"}) ASSERT_TRUE(Create(id).ok());
  Allow("sessions = 2");
  Start();
  EXPECT_EQ(Metric("txl_tenant_sessions"), 3);
  EXPECT_FALSE(Create("d").ok());
  Allow("sessions = 4");
  EXPECT_TRUE(Create("d").ok());
  Allow("bytes = \"8KiB\"");
  EXPECT_EQ(Append("a", "more").error_code(),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(Metric("txl_tenant_session_bytes"), 4 * 2048);
}

// Nobody can go on with them, but they take their place until they are deleted.
TEST_F(TenantSessionsTest, SessionsOfAnotherModelCountUntilTheyAreDeleted) {
  Allow("sessions = 1");
  Start();
  ASSERT_TRUE(Create("a").ok());
  Start("another");
  EXPECT_FALSE(Create("b").ok());
  EXPECT_EQ(Append("a", "x").error_code(),
            grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_TRUE(Delete("a").ok());
  EXPECT_EQ(Metric("txl_tenant_sessions"), 0);
  EXPECT_EQ(Metric("txl_tenant_session_bytes"), 0);
  EXPECT_TRUE(Create("b").ok());
}

}  // namespace
}  // namespace txl
