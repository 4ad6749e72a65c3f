#include "server/tls/certificate_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "server/base/log.h"
#include "tests/server/tls/test_authority.h"

namespace txl {
namespace {

using ::testing::HasSubstr;

class CertificateWatchTest : public testing::Test {
 protected:
  // Looks only when it is told to.
  CertificateWatchTest() {
    auto started = CertificateWatch::Start(files_.files(), absl::Hours(1));
    EXPECT_TRUE(started.ok()) << started.status();
    watch_ = *std::move(started);
  }

  int Warnings() const {
    int count = 0;
    for (const std::string& line : log_.lines()) {
      count += absl::StrContains(line, "certificate_kept") ? 1 : 0;
    }
    return count;
  }

  LogCapture log_;
  const TestAuthority authority_{"Test CA"};
  const TestCertificate first_ = authority_.IssueServer();
  const TestCertificate second_ = authority_.IssueServer();
  TestFiles files_{first_};
  std::unique_ptr<CertificateWatch> watch_;
};

TEST_F(CertificateWatchTest, GivesTheSameWhileTheFilesAreTheSame) {
  const auto before = watch_->Current();
  files_.Write(first_);  // newer, but no other
  watch_->Look().IgnoreError();
  EXPECT_EQ(watch_->Current(), before);
}

TEST_F(CertificateWatchTest, TakesANewPair) {
  const auto before = watch_->Current();
  files_.Write(second_);
  watch_->Look().IgnoreError();
  EXPECT_EQ(watch_->Current()->texts.key, second_.key);
  // Who has the old one may go on with it.
  EXPECT_EQ(before->texts.key, first_.key);
}

TEST_F(CertificateWatchTest, KeepsTheOldWhileTheNewIsHalfThere) {
  files_.WriteCertificate(second_.certificate);
  watch_->Look().IgnoreError();
  EXPECT_EQ(watch_->Current()->texts.certificate, first_.certificate);
  files_.WriteKey(second_.key);
  watch_->Look().IgnoreError();
  EXPECT_EQ(watch_->Current()->texts.certificate, second_.certificate);
}

TEST_F(CertificateWatchTest, SaysWhetherWhatItSeesIsInForce) {
  EXPECT_TRUE(watch_->Look().ok());
  files_.WriteKey("nonsense");
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(watch_->Look().message(), HasSubstr("--tls-key"));
  }
  files_.Write(second_);
  EXPECT_TRUE(watch_->Look().ok());
}

TEST_F(CertificateWatchTest, WarnsOnceOfEachThingThatIsWrong) {
  files_.WriteKey("nonsense");
  for (int i = 0; i < 3; ++i) watch_->Look().IgnoreError();
  EXPECT_EQ(Warnings(), 1);
  EXPECT_THAT(log_.lines().back(), HasSubstr("--tls-key"));
  EXPECT_EQ(watch_->Current()->texts.key, first_.key);
  files_.WriteCertificate("nonsense");
  watch_->Look().IgnoreError();
  EXPECT_EQ(Warnings(), 2);
  files_.Write(first_);
  watch_->Look().IgnoreError();
  files_.WriteCertificate("nonsense");
  watch_->Look().IgnoreError();
  EXPECT_EQ(Warnings(), 3);
}

TEST_F(CertificateWatchTest, DoesNotStartWithFilesThatAreWrong) {
  files_.WriteKey(second_.key);
  EXPECT_THAT(
      std::string(CertificateWatch::Start(files_.files()).status().message()),
      HasSubstr("is not the key of"));
}

TEST_F(CertificateWatchTest, TakesANewListOfRevocationsAndKeepsTheOldElse) {
  TestFiles files(first_, authority_.certificate());
  files.WriteRevoked(authority_.Revoke({}));
  const auto watch = CertificateWatch::Start(files.files(), absl::Hours(1));
  ASSERT_TRUE(watch.ok()) << watch.status();
  EXPECT_TRUE((*watch)->has_revocations());
  const auto revoked = [&] {
    return (*watch)->Current()->revoked.RevokeAnyOf(second_.certificate);
  };
  EXPECT_FALSE(revoked());
  files.WriteRevoked(authority_.Revoke({second_}));
  EXPECT_TRUE((*watch)->Look().ok());
  EXPECT_TRUE(revoked());
  for (const std::string& bad :
       {std::string("nonsense"),
        authority_.Revoke({}, {.ends_in = -absl::Seconds(5)})}) {
    files.WriteRevoked(bad);
    EXPECT_THAT((*watch)->Look().message(), HasSubstr("--tls-crl"));
    EXPECT_TRUE(revoked());
  }
  EXPECT_EQ(Warnings(), 2);
}

TEST_F(CertificateWatchTest, WarnsOfWhatHasRunOutAndGoesOnWithIt) {
  TestFiles files(authority_.Issue({"server", "", absl::Hours(1.5)}),
                  authority_.certificate());
  files.WriteRevoked(authority_.Revoke({second_}));
  const auto watch = CertificateWatch::Start(files.files(), absl::Hours(1));
  ASSERT_TRUE(watch.ok()) << watch.status();
  const absl::Time now = absl::Now();
  EXPECT_TRUE((*watch)->Look(now + absl::Minutes(59)).ok());
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT((*watch)->Look(now + absl::Minutes(61)).message(),
                HasSubstr("--tls-crl"));
  }
  EXPECT_EQ(Warnings(), 1);
  EXPECT_THAT((*watch)->Look(now + absl::Minutes(91)).message(),
              HasSubstr("--tls-cert"));
  EXPECT_TRUE((*watch)->Current()->revoked.RevokeAnyOf(second_.certificate));
}

TEST_F(CertificateWatchTest, VerifiesClientsWhereTheirAuthorityIsGiven) {
  EXPECT_FALSE(watch_->verifies_clients());
  TestFiles mutual(first_, authority_.certificate());
  const auto watch = CertificateWatch::Start(mutual.files());
  ASSERT_TRUE(watch.ok()) << watch.status();
  EXPECT_TRUE((*watch)->verifies_clients());
}

}  // namespace
}  // namespace txl
