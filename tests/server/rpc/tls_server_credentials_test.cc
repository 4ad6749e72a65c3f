// gRPC over TLS: who gets in, whom a call comes from, and new certificates
// under calls that run.

#include "server/rpc/tls_server_credentials.h"

#include <gmock/gmock.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/health_check_service_interface.h>
#include <openssl/ssl.h>

#include "grpc/health/v1/health.grpc.pb.h"
#include "server/rpc/call_context.h"
#include "tests/server/rpc/rpc_world.h"
#include "tests/server/tls/test_authority.h"

namespace txl {
namespace {

using ::testing::ElementsAre;

// Keeps who called last.
class WhoCalls final : public v1::ModelService::Service {
 public:
  grpc::Status GetModel(grpc::ServerContext* context,
                        const v1::GetModelRequest*,
                        v1::GetModelResponse*) override {
    peer = PeerCertificateOf(*context);
    return grpc::Status::OK;
  }

  std::optional<PeerCertificate> peer;
};

class GrpcTlsTest : public testing::Test {
 protected:
  void Start(bool mutual = true, const std::string& revoked = "") {
    files_ = std::make_unique<TestFiles>(
        authority_.IssueServer(), mutual ? authority_.certificate() : "");
    if (!revoked.empty()) files_->WriteRevoked(revoked);
    auto watch = CertificateWatch::Start(files_->files(), absl::Hours(1));
    ASSERT_TRUE(watch.ok()) << watch.status();
    watch_ = *std::move(watch);
    grpc::ServerBuilder builder;
    credentials_ = std::make_unique<TlsServerCredentials>(watch_.get());
    builder.AddListeningPort("127.0.0.1:0", credentials_->Make(), &port_);
    builder.RegisterService(&service_);
    grpc::EnableDefaultHealthCheckService(true);
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
  }

  // Of a connection of its own; no certificate: an empty one.
  grpc::Status Call(const TestCertificate& own,
                    const std::string& host = "127.0.0.1") {
    return CallOn(Connect(own, host));
  }
  std::shared_ptr<grpc::Channel> Connect(
      const TestCertificate& own, const std::string& host = "127.0.0.1") {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetSslTargetNameOverride(host);
    return grpc::CreateCustomChannel(
        absl::StrCat("127.0.0.1:", port_),
        grpc::SslCredentials(
            {authority_.certificate(), own.key, own.certificate}),
        arguments);
  }
  static grpc::Status CallOn(const std::shared_ptr<grpc::Channel>& channel) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() +
                         std::chrono::seconds(10));
    v1::GetModelResponse response;
    return v1::ModelService::NewStub(channel)->GetModel(&context, {},
                                                        &response);
  }

  const TestAuthority authority_{"Test CA"};
  const TestCertificate tenant_ =
      authority_.Issue({"tenant-a", "URI:spiffe://txl/a,URI:urn:b"});
  std::unique_ptr<TestFiles> files_;
  std::unique_ptr<CertificateWatch> watch_;
  std::unique_ptr<TlsServerCredentials> credentials_;
  WhoCalls service_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

TEST_F(GrpcTlsTest, ACallHasItsClientsNames) {
  Start();
  ASSERT_TRUE(Call(tenant_).ok());
  ASSERT_TRUE(service_.peer.has_value());
  EXPECT_EQ(service_.peer->common_name, "tenant-a");
  EXPECT_THAT(service_.peer->uris, ElementsAre("spiffe://txl/a", "urn:b"));
}

TEST_F(GrpcTlsTest, NobodyElseGetsIn) {
  Start();
  const TestAuthority other("Other CA");
  const grpc::StatusCode refused = grpc::StatusCode::UNAVAILABLE;
  EXPECT_EQ(Call({}).error_code(), refused);
  EXPECT_EQ(Call(other.Issue({"tenant-a", ""})).error_code(), refused);
  EXPECT_EQ(
      Call(authority_.Issue({"tenant-a", "", absl::Seconds(-5)})).error_code(),
      refused);
  EXPECT_EQ(CallOn(grpc::CreateChannel(absl::StrCat("127.0.0.1:", port_),
                                       grpc::InsecureChannelCredentials()))
                .error_code(),
            refused);
}

// Whether a client of exactly this version of TLS gets through its handshake.
bool Agrees(int port, int version) {
  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(
      SSL_CTX_new(TLS_client_method()), &SSL_CTX_free);
  SSL_CTX_set_security_level(context.get(), 0);  // for TLS 1.1
  SSL_CTX_set_min_proto_version(context.get(), version);
  SSL_CTX_set_max_proto_version(context.get(), version);
  const std::unique_ptr<SSL, decltype(&SSL_free)> client(SSL_new(context.get()),
                                                         &SSL_free);
  const unsigned char http2[] = {2, 'h', '2'};
  SSL_set_alpn_protos(client.get(), http2, sizeof(http2));
  BIO* socket = BIO_new_connect(absl::StrCat("127.0.0.1:", port).c_str());
  SSL_set_bio(client.get(), socket, socket);
  return SSL_connect(client.get()) == 1;
}

TEST_F(GrpcTlsTest, TakesTls12AndLater) {
  Start(/*mutual=*/false);
  EXPECT_FALSE(Agrees(port_, TLS1_1_VERSION));
  EXPECT_TRUE(Agrees(port_, TLS1_2_VERSION));
  EXPECT_TRUE(Agrees(port_, TLS1_3_VERSION));
}

TEST_F(GrpcTlsTest, AClientRefusesAServerOfAnotherName) {
  Start();
  EXPECT_EQ(Call(tenant_, "txl.example").error_code(),
            grpc::StatusCode::UNAVAILABLE);
}

TEST_F(GrpcTlsTest, WithoutAnAuthorityNobodyIsAskedOrNamed) {
  Start(/*mutual=*/false);
  ASSERT_TRUE(Call({}).ok());
  EXPECT_EQ(service_.peer, std::nullopt);
  ASSERT_TRUE(Call(tenant_).ok());
  EXPECT_EQ(service_.peer, std::nullopt);
}

TEST_F(GrpcTlsTest, NewConnectionsHaveTheNewCertificate) {
  Start();
  ASSERT_TRUE(Call(tenant_).ok());
  // For another name, so that a client tells them apart.
  files_->Write(authority_.Issue({"server", "DNS:new.example"}));
  EXPECT_TRUE(Call(tenant_).ok());  // nobody has looked yet
  EXPECT_TRUE(watch_->Look().ok());
  EXPECT_FALSE(Call(tenant_).ok());
  EXPECT_TRUE(Call(tenant_, "new.example").ok());
}

TEST_F(GrpcTlsTest, NobodyIsServedWhoseCertificateIsRevoked) {
  const TestCertificate bad = authority_.Issue({"tenant-b", ""});
  Start(/*mutual=*/true, authority_.Revoke({bad}));
  service_.peer.reset();
  const grpc::Status refused = Call(bad);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(refused.error_message(), "the client's certificate is revoked");
  EXPECT_EQ(service_.peer, std::nullopt);  // nothing of it was entered
  EXPECT_TRUE(Call(tenant_).ok());
}

TEST_F(GrpcTlsTest, ARevocationReachesConnectionsThatAreOpen) {
  Start(/*mutual=*/true, authority_.Revoke({}));
  const auto channel = Connect(tenant_);
  EXPECT_TRUE(CallOn(channel).ok());
  const auto health = [&] {
    grpc::ClientContext context;
    grpc::health::v1::HealthCheckResponse response;
    return grpc::health::v1::Health::NewStub(channel)
        ->Check(&context, {}, &response)
        .error_code();
  };
  EXPECT_EQ(health(), grpc::StatusCode::OK);
  files_->WriteRevoked(authority_.Revoke({tenant_}));
  EXPECT_TRUE(watch_->Look().ok());
  EXPECT_EQ(CallOn(channel).error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(health(), grpc::StatusCode::UNAUTHENTICATED);
  // Of one that was revoked for a while only.
  files_->WriteRevoked(authority_.Revoke({}));
  EXPECT_TRUE(watch_->Look().ok());
  EXPECT_TRUE(CallOn(channel).ok());
}

TEST(AGrpcServerWithCertificates, TakesTlsThroughItsGate) {
  const TestAuthority authority("Test CA");
  const TestFiles files(authority.IssueServer(), authority.certificate());
  const auto watch = CertificateWatch::Start(files.files(), absl::Hours(1));
  ASSERT_TRUE(watch.ok()) << watch.status();
  RpcWorld world;
  auto server = GrpcServer::Start("127.0.0.1:0", &world.context, watch->get());
  ASSERT_TRUE(server.ok()) << server.status();
  const TestCertificate own = authority.Issue({"tenant-a", ""});
  const auto outcome = [&](const std::shared_ptr<grpc::ChannelCredentials>& c) {
    grpc::ClientContext context;
    v1::GetModelResponse response;
    return v1::ModelService::NewStub(
               grpc::CreateChannel((*server)->address(), c))
        ->GetModel(&context, {}, &response)
        .error_code();
  };
  EXPECT_EQ(outcome(grpc::SslCredentials(
                {authority.certificate(), own.key, own.certificate})),
            grpc::StatusCode::OK);
  EXPECT_EQ(outcome(grpc::InsecureChannelCredentials()),
            grpc::StatusCode::UNAVAILABLE);
  (*server)->Shutdown(absl::ZeroDuration());
}

}  // namespace
}  // namespace txl
