// HTTP over TLS: who gets in, what connections cost, how they end, and new
// certificates under them.

#include <gmock/gmock.h>
#include <openssl/ssl.h>

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "server/http/http_server.h"
#include "tests/server/http/raw_client.h"
#include "tests/server/rpc/rpc_world.h"
#include "tests/server/tls/test_authority.h"

namespace txl {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// A client that trusts one authority, wants a server of one name and may show a
// certificate.
class TlsClient {
 public:
  TlsClient(const std::string& address, const std::string& trusted,
            const std::optional<TestCertificate>& own,
            const std::string& name = "127.0.0.1")
      : context_(asio::ssl::context::tls_client) {
    context_.add_certificate_authority(asio::buffer(trusted));
    context_.set_verify_mode(asio::ssl::verify_peer);
    context_.set_verify_callback(asio::ssl::host_name_verification(name));
    if (own.has_value()) {
      context_.use_certificate_chain(asio::buffer(own->certificate));
      context_.use_private_key(asio::buffer(own->key), asio::ssl::context::pem);
    }
    stream_.emplace(io_, context_);
    int port = 0;
    EXPECT_TRUE(
        absl::SimpleAtoi(address.substr(address.rfind(':') + 1), &port));
    stream_->next_layer().connect(
        {asio::ip::address_v4::loopback(), static_cast<uint16_t>(port)});
    stream_->handshake(asio::ssl::stream_base::client, error_);
  }

  // The answers to `requests` of such bytes; what came, where it ends sooner.
  std::string Ask(const std::string& bytes, int requests = 1) {
    std::string all;
    if (!error_) asio::write(*stream_, asio::buffer(bytes), error_);
    while (!error_ && requests-- > 0) {
      const size_t size = asio::read_until(
          *stream_, asio::dynamic_buffer(rest_), "ok\n", error_);
      all += rest_.substr(0, size);
      rest_.erase(0, size);
    }
    return all;
  }
  // What ended it; waits for it.
  error_code End() {
    char byte;
    while (!error_) stream_->read_some(asio::buffer(&byte, 1), error_);
    return error_;
  }
  // All that comes until the end.
  std::string Rest() {
    error_code end;
    asio::read(*stream_, asio::dynamic_buffer(rest_), end);
    return rest_;
  }
  tcp::socket& socket() { return stream_->next_layer(); }
  // Serial number of the server's certificate.
  long serial() {
    const X509* shown = SSL_get0_peer_certificate(stream_->native_handle());
    return ASN1_INTEGER_get(X509_get0_serialNumber(shown));
  }

 private:
  asio::io_context io_;
  asio::ssl::context context_;
  std::optional<asio::ssl::stream<tcp::socket>> stream_;
  std::string rest_;
  error_code error_;
};

const std::string kGet = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
const std::string kGetAndClose =
    "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

class HttpTlsTest : public ::testing::Test {
 protected:
  void Start(HttpOptions options = {}) {
    auto watch = CertificateWatch::Start(files_.files(), absl::Hours(1));
    ASSERT_TRUE(watch.ok()) << watch.status();
    watch_ = *std::move(watch);
    options.listen = "127.0.0.1:0";
    options.certificates = watch_.get();
    HttpHandlers handlers;
    handlers.let_in = [](HttpRequest*, const std::vector<std::string>&) {
      return absl::OkStatus();
    };
    handlers.hold_body = [](int64_t) { return ByteHold(); };
    handlers.handle = [this](const std::shared_ptr<Exchange>& exchange) {
      if (exchange->request().path == "/never") {
        exchange->OnLeave([this] { ++left_; });
        held_ = exchange;
        return;
      }
      const auto& peer = exchange->request().certificate;
      HttpReply reply;
      reply.body = absl::StrCat(peer.has_value() ? peer->common_name : "nobody",
                                " ok\n");
      exchange->Reply(std::move(reply));
    };
    auto server = HttpServer::Start(std::move(options), std::move(handlers));
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  ~HttpTlsTest() override {
    held_.reset();
    server_->Shutdown(absl::ZeroDuration());
  }

  TlsClient Connect() { return Connect(tenant_); }
  TlsClient Connect(const std::optional<TestCertificate>& own) {
    return {server_->address(), authority_.certificate(), own};
  }

  const TestAuthority authority_{"Test CA"};
  const TestCertificate tenant_ = authority_.Issue({"tenant-a", ""});
  TestFiles files_{authority_.IssueServer(), authority_.certificate()};
  std::unique_ptr<CertificateWatch> watch_;
  std::atomic<int> left_{0};
  std::shared_ptr<Exchange> held_;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpTlsTest, HandlersLearnWhoAsks) {
  Start();
  TlsClient client = Connect();
  // More than once on a connection, and one behind the other.
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(client.Ask(kGet),
                AllOf(StartsWith("HTTP/1.1 200"), HasSubstr("tenant-a ok")));
  }
  const std::string three = client.Ask(kGet + kGet + kGet, 3);
  EXPECT_EQ(
      std::vector<std::string>(absl::StrSplit(three, "tenant-a ok")).size(),
      4u);
}

TEST_F(HttpTlsTest, NobodyElseIsAnswered) {
  Start();
  const TestAuthority other("Other CA");
  EXPECT_EQ(Connect(std::nullopt).Ask(kGet), "");
  EXPECT_EQ(Connect(other.Issue({"tenant-a", ""})).Ask(kGet), "");
  EXPECT_EQ(
      Connect(authority_.Issue({"tenant-a", "", absl::Seconds(-5)})).Ask(kGet),
      "");
  RawClient plain(server_->address());
  plain.Send(kGet);
  EXPECT_FALSE(absl::StrContains(plain.ReceiveAll(), "HTTP/1.1"));
}

TEST_F(HttpTlsTest, NobodyIsAnsweredWhoseCertificateIsRevoked) {
  files_.WriteRevoked(authority_.Revoke({}));
  Start();
  EXPECT_THAT(Connect().Ask(kGet), HasSubstr("tenant-a"));
  files_.WriteRevoked(authority_.Revoke({tenant_}));
  EXPECT_TRUE(watch_->Look().ok());
  EXPECT_EQ(Connect().Ask(kGet), "");
  EXPECT_THAT(Connect(authority_.Issue({"tenant-b", ""})).Ask(kGet),
              HasSubstr("tenant-b"));
}

TEST_F(HttpTlsTest, AClientRefusesAServerOfAnotherName) {
  Start();
  const auto ask = [this](const std::string& name) {
    return TlsClient(server_->address(), authority_.certificate(), tenant_,
                     name)
        .Ask(kGet);
  };
  EXPECT_EQ(ask("txl.example"), "");
  EXPECT_THAT(ask("127.0.0.1"), HasSubstr("tenant-a"));
}

TEST_F(HttpTlsTest, AHandshakeHasATimeAndAPlace) {
  HttpOptions options;
  options.connections = 1;
  options.header_timeout = absl::Milliseconds(200);
  Start(options);
  RawClient silent(server_->address());
  ASSERT_TRUE(Eventually([&] { return server_->Counts()().open == 1; }));
  EXPECT_EQ(Connect().Ask(kGet), "");  // no place
  bool ended = false;
  silent.ReceiveAll(&ended);
  EXPECT_TRUE(ended);
  EXPECT_TRUE(Eventually([&] { return server_->Counts()().open == 0; }));
  EXPECT_THAT(Connect().Ask(kGet), HasSubstr("tenant-a"));
}

TEST_F(HttpTlsTest, TheEndOfAnAnswerCannotBeForged) {
  Start();
  TlsClient client = Connect();
  EXPECT_THAT(client.Ask(kGetAndClose), HasSubstr("tenant-a"));
  // Not stream_truncated, which is what cutting the connection looks like.
  EXPECT_EQ(client.End(), asio::error::eof);
}

// It says nothing to the end of its connection, and does not close it.
TEST_F(HttpTlsTest, AClientThatStaysBehindItsAnswerIsCutOff) {
  Start();
  TlsClient client = Connect();
  EXPECT_THAT(client.Ask(kGetAndClose), HasSubstr("tenant-a"));
  EXPECT_TRUE(Eventually([&] { return server_->Counts()().open == 0; }));
}

TEST_F(HttpTlsTest, AClientThatLeavesIsNoticed) {
  Start();
  {
    TlsClient client = Connect();
    client.Ask("GET /never HTTP/1.1\r\nHost: localhost\r\n\r\n", 0);
    ASSERT_TRUE(Eventually([&] { return server_->Counts()().open == 1; }));
    EXPECT_EQ(left_, 0);
    error_code ignored;
    client.socket().close(ignored);
  }
  EXPECT_TRUE(Eventually([&] { return left_ == 1; }));
}

TEST_F(HttpTlsTest, ARefusedBodyStillGetsItsAnswer) {
  HttpOptions options;
  options.body_bytes = 1000;
  Start(options);
  TlsClient client = Connect();
  const std::string body(200'000, ' ');
  client.Ask(absl::StrCat("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
                          "application/json\r\nContent-Length: ",
                          body.size(), "\r\n\r\n", body),
             0);
  EXPECT_THAT(client.Rest(), HasSubstr("413"));
}

TEST_F(HttpTlsTest, NewConnectionsHaveTheNewCertificate) {
  Start();
  TlsClient old = Connect();
  EXPECT_THAT(old.Ask(kGet), HasSubstr("tenant-a"));
  files_.Write(authority_.IssueServer());
  EXPECT_TRUE(watch_->Look().ok());
  TlsClient renewed = Connect();
  EXPECT_THAT(renewed.Ask(kGet), HasSubstr("tenant-a"));
  EXPECT_NE(renewed.serial(), old.serial());
  EXPECT_THAT(old.Ask(kGet), HasSubstr("tenant-a"));
}

}  // namespace
}  // namespace txl
