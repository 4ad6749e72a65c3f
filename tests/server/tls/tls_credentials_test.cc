// Files that a server can be started with, and how it names what is wrong.

#include "server/tls/tls_credentials.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tests/server/tls/test_authority.h"

namespace txl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string Wrong(const TlsFiles& files) {
  return std::string(LoadTlsCredentials(files).status().message());
}

class TlsCredentialsTest : public testing::Test {
 protected:
  const TestAuthority authority_{"Test CA"};
  TestFiles files_{authority_.IssueServer(), authority_.certificate()};
};

TEST_F(TlsCredentialsTest, HoldTheFilesAndWhenTheCertificateIsValid) {
  const auto loaded = LoadTlsCredentials(files_.files());
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ((*loaded)->texts.client_ca, authority_.certificate());
  EXPECT_NE((*loaded)->context, nullptr);
  const absl::Duration left = (*loaded)->not_after - absl::Now();
  EXPECT_GT(left, absl::Minutes(58));
  EXPECT_LE(left, absl::Hours(1));
  EXPECT_LE((*loaded)->not_before, absl::Now());
  EXPECT_GT((*loaded)->not_before, absl::Now() - absl::Hours(48));
}

TEST_F(TlsCredentialsTest, NameAFileThatIsMissing) {
  TlsFiles files = files_.files();
  files.certificate = "/no/such.crt";
  EXPECT_THAT(Wrong(files), HasSubstr("--tls-cert /no/such.crt: "));
  files = files_.files();
  files.key = "/no/such.key";
  EXPECT_THAT(Wrong(files), HasSubstr("--tls-key /no/such.key: "));
  files = files_.files();
  files.client_ca = "/no/ca.crt";
  EXPECT_THAT(Wrong(files), HasSubstr("--tls-client-ca /no/ca.crt: "));
  files = files_.files();
  files.revoked = "/no/clients.crl";
  EXPECT_THAT(Wrong(files), HasSubstr("--tls-crl /no/clients.crl: "));
}

TEST_F(TlsCredentialsTest, NameAFileThatIsNoFile) {
  TlsFiles files = files_.files();
  files.certificate = testing::TempDir();
  EXPECT_THAT(Wrong(files), HasSubstr("--tls-cert"));
}

TEST_F(TlsCredentialsTest, NameAFileThatIsNoPem) {
  for (const char* bad :
       {"", "nonsense",
        "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"}) {
    TestFiles files(authority_.IssueServer(), authority_.certificate());
    files.WriteCertificate(bad);
    EXPECT_THAT(
        Wrong(files.files()),
        AllOf(HasSubstr(absl::StrCat("--tls-cert ", files.files().certificate)),
              HasSubstr("not a PEM certificate")));
  }
  files_.WriteKey("nonsense");
  EXPECT_THAT(Wrong(files_.files()),
              AllOf(HasSubstr("--tls-key"), HasSubstr("not a PEM key")));
}

TEST_F(TlsCredentialsTest, RefuseAChainThatIsDamagedBehindItsBegin) {
  const TestCertificate server = authority_.IssueServer();
  files_.Write(server);
  files_.WriteCertificate(server.certificate +
                          "-----BEGIN CERTIFICATE-----\nAAAA\n"
                          "-----END CERTIFICATE-----\n");
  EXPECT_THAT(Wrong(files_.files()), HasSubstr("--tls-cert"));
}

TEST_F(TlsCredentialsTest, RefuseAnotherCertificatesKey) {
  files_.WriteKey(authority_.IssueServer().key);
  EXPECT_THAT(Wrong(files_.files()),
              AllOf(HasSubstr("--tls-key"), HasSubstr("is not the key of"),
                    HasSubstr(files_.files().certificate)));
}

TEST_F(TlsCredentialsTest, RefuseACertificateThatHasExpired) {
  files_.Write(authority_.Issue({"server", "IP:127.0.0.1", absl::Seconds(-5)}));
  EXPECT_THAT(Wrong(files_.files()),
              AllOf(HasSubstr("--tls-cert"), HasSubstr("has expired at 20")));
}

TEST_F(TlsCredentialsTest, RefuseAListThatHasExpiredOrCannotBeUsed) {
  files_.WriteRevoked(authority_.Revoke({}, {.ends_in = -absl::Seconds(5)}));
  EXPECT_THAT(Wrong(files_.files()),
              AllOf(HasSubstr("--tls-crl"), HasSubstr("has expired at 20")));
  files_.WriteRevoked(TestAuthority("Test CA").Revoke({}));
  EXPECT_THAT(
      Wrong(files_.files()),
      AllOf(HasSubstr(absl::StrCat("--tls-crl ", files_.files().revoked)),
            HasSubstr("no authority of --tls-client-ca")));
  files_.WriteRevoked(authority_.Revoke({}));
  EXPECT_EQ(Wrong(files_.files()), "");
}

TEST_F(TlsCredentialsTest, RefuseAKeyThatEverybodyMayRead) {
  const std::string& key = files_.files().key;
  for (const mode_t mode : {0644, 0604, 0602}) {
    chmod(key.c_str(), mode);
    const auto loaded = LoadTlsCredentials(files_.files());
    EXPECT_EQ(loaded.status().code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(loaded.status().message()), HasSubstr(key));
  }
  // A group's is how Kubernetes hands out a Secret.
  chmod(key.c_str(), 0640);
  EXPECT_TRUE(LoadTlsCredentials(files_.files()).ok());
}

}  // namespace
}  // namespace txl
