// What a server's context agrees to, in memory: both ends in one thread.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

#include "server/tls/certificate_watch.h"
#include "server/tls/peer_certificate.h"
#include "tests/server/tls/test_authority.h"

namespace txl {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Ssl = std::unique_ptr<SSL, decltype(&SSL_free)>;

struct ClientSide {
  const TestCertificate* certificate = nullptr;  // null: shows none
  int newest = 0;                                // 0: whatever there is
  std::string protocols = "";                    // as ALPN has them
};

Ssl MakeClient(const ClientSide& side) {
  const std::shared_ptr<SSL_CTX> context(SSL_CTX_new(TLS_client_method()),
                                         &SSL_CTX_free);
  SSL_CTX_set_security_level(context.get(), 0);  // for TLS 1.1
  if (side.newest != 0) {
    SSL_CTX_set_max_proto_version(context.get(), side.newest);
  }
  Ssl client(SSL_new(context.get()), &SSL_free);
  if (!side.protocols.empty()) {
    SSL_set_alpn_protos(
        client.get(),
        reinterpret_cast<const unsigned char*>(side.protocols.data()),
        static_cast<unsigned>(side.protocols.size()));
  }
  if (side.certificate == nullptr) return client;
  for (const std::string* pem :
       {&side.certificate->certificate, &side.certificate->key}) {
    BIO* bio = BIO_new_mem_buf(pem->data(), static_cast<int>(pem->size()));
    if (pem == &side.certificate->key) {
      EVP_PKEY* key = PEM_read_bio_PrivateKey(bio, nullptr, nullptr, nullptr);
      EXPECT_EQ(SSL_use_PrivateKey(client.get(), key), 1);
      EVP_PKEY_free(key);
    } else {
      X509* one = PEM_read_bio_X509(bio, nullptr, nullptr, nullptr);
      EXPECT_EQ(SSL_use_certificate(client.get(), one), 1);
      X509_free(one);
    }
    BIO_free(bio);
  }
  return client;
}

class HandshakeTest : public testing::Test {
 protected:
  // The server's end when nothing more moves; null: it refused.
  Ssl Shake(const ClientSide& side, bool mutual = true,
            const std::string& revoked = "") {
    TestFiles files(
        authority_.IssueServer(),
        mutual ? authority_.certificate() + neighbour_.certificate() : "");
    if (!revoked.empty()) files.WriteRevoked(revoked);
    const auto watch = CertificateWatch::Start(files.files(), absl::Hours(1));
    EXPECT_TRUE(watch.ok()) << watch.status();
    Ssl server(SSL_new((*watch)->Current()->context.get()), &SSL_free);
    const Ssl client = MakeClient(side);
    BIO* ends[2];
    BIO_new_bio_pair(&ends[0], 0, &ends[1], 0);
    SSL_set_bio(server.get(), ends[0], ends[0]);
    SSL_set_bio(client.get(), ends[1], ends[1]);
    for (int round = 0; round < 10; ++round) {
      SSL_connect(client.get());
      SSL_accept(server.get());
    }
    if (!SSL_is_init_finished(server.get())) server.reset();
    // Its BIO goes with the client.
    if (server != nullptr) SSL_set_bio(server.get(), nullptr, nullptr);
    return server;
  }

  const TestAuthority authority_{"Test CA"};
  const TestAuthority neighbour_{"Neighbour CA"};
  const TestCertificate tenant_ = authority_.Issue(
      {"tenant-a", "URI:spiffe://txl/tenant/a,DNS:a.example,URI:urn:b"});
};

TEST_F(HandshakeTest, NamesAVerifiedClient) {
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    const Ssl server = Shake({.certificate = &tenant_, .newest = version});
    ASSERT_NE(server, nullptr);
    EXPECT_EQ(SSL_version(server.get()), version);
    const auto peer = PeerCertificateOf(server.get());
    ASSERT_TRUE(peer.has_value());
    EXPECT_EQ(peer->common_name, "tenant-a");
    EXPECT_THAT(peer->uris, ElementsAre("spiffe://txl/tenant/a", "urn:b"));
  }
}

TEST_F(HandshakeTest, OfAClientWithoutNamesToSpeakOf) {
  const TestCertificate nobody = authority_.Issue({"", ""});
  const Ssl server = Shake({.certificate = &nobody});
  ASSERT_NE(server, nullptr);
  const auto peer = PeerCertificateOf(server.get());
  ASSERT_TRUE(peer.has_value());
  EXPECT_EQ(peer->common_name, "");
  EXPECT_THAT(peer->uris, IsEmpty());
}

TEST_F(HandshakeTest, RefusesClientsThatAreNotVerified) {
  const TestAuthority other("Other CA");
  const TestCertificate stranger = other.Issue({"tenant-a", ""});
  const TestCertificate expired =
      authority_.Issue({"tenant-a", "", absl::Seconds(-5)});
  EXPECT_EQ(Shake({}), nullptr);
  EXPECT_EQ(Shake({.certificate = &stranger}), nullptr);
  EXPECT_EQ(Shake({.certificate = &expired}), nullptr);
}

TEST_F(HandshakeTest, RefusesAClientThatItsAuthorityHasRevoked) {
  const TestCertificate other = authority_.Issue({"tenant-b", ""});
  // Of another authority, which has no list.
  const TestCertificate guest = neighbour_.Issue({"tenant-c", ""});
  const std::string list = authority_.Revoke({other});
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    const auto shakes = [&](const TestCertificate& own) {
      const Ssl server =
          Shake({.certificate = &own, .newest = version}, true, list);
      return server != nullptr && PeerCertificateOf(server.get()).has_value();
    };
    EXPECT_FALSE(shakes(other));
    EXPECT_TRUE(shakes(tenant_));
    EXPECT_TRUE(shakes(guest));
  }
}

TEST_F(HandshakeTest, AsksNobodyWithoutAnAuthority) {
  const Ssl server = Shake({.certificate = &tenant_}, /*mutual=*/false);
  ASSERT_NE(server, nullptr);
  EXPECT_EQ(PeerCertificateOf(server.get()), std::nullopt);
}

TEST_F(HandshakeTest, RefusesTls11) {
  EXPECT_EQ(Shake({.certificate = &tenant_, .newest = TLS1_1_VERSION}),
            nullptr);
}

TEST_F(HandshakeTest, AgreesOnHttp11OrOnNothing) {
  EXPECT_NE(Shake({.certificate = &tenant_, .protocols = "\x02h2\x08http/1.1"}),
            nullptr);
  EXPECT_EQ(Shake({.certificate = &tenant_, .protocols = "\x02h2"}), nullptr);
}

TEST_F(HandshakeTest, BeginsWithAHelloThatAServerAnswers) {
  const TestFiles files(authority_.IssueServer());
  const std::shared_ptr<SSL_CTX> any(SSL_CTX_new(TLS_server_method()),
                                     &SSL_CTX_free);
  SSL_CTX_use_certificate_file(any.get(), files.files().certificate.c_str(),
                               SSL_FILETYPE_PEM);
  SSL_CTX_use_PrivateKey_file(any.get(), files.files().key.c_str(),
                              SSL_FILETYPE_PEM);
  const Ssl server(SSL_new(any.get()), &SSL_free);
  BIO* in = BIO_new(BIO_s_mem());
  BIO* out = BIO_new(BIO_s_mem());
  SSL_set_bio(server.get(), in, out);
  const std::string hello = ClientHello();
  BIO_write(in, hello.data(), static_cast<int>(hello.size()));
  const int result = SSL_accept(server.get());
  EXPECT_EQ(SSL_get_error(server.get(), result), SSL_ERROR_WANT_READ);
  char first = 0;
  ASSERT_EQ(BIO_read(out, &first, 1), 1);
  EXPECT_EQ(first, 0x16);  // a record of the handshake
}

}  // namespace
}  // namespace txl
