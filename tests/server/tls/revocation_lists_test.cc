// Which lists are used, and whom they name.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

#include "absl/time/clock.h"
#include "server/tls/tls_credentials.h"
#include "tests/server/tls/test_authority.h"

namespace txl {
namespace {

using ::testing::HasSubstr;

class RevocationListsTest : public testing::Test {
 protected:
  // With `text` for clients of two authorities.
  absl::StatusOr<RevocationLists> Use(const std::string& text) const {
    const std::shared_ptr<SSL_CTX> context(SSL_CTX_new(TLS_server_method()),
                                           &SSL_CTX_free);
    for (const TestAuthority* one : {&authority_, &other_}) {
      const std::string& pem = one->certificate();
      BIO* bio = BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()));
      X509* root = PEM_read_bio_X509(bio, nullptr, nullptr, nullptr);
      X509_STORE_add_cert(SSL_CTX_get_cert_store(context.get()), root);
      X509_free(root);
      BIO_free(bio);
    }
    return RevocationLists::Use(text, context.get());
  }
  std::string Wrong(const std::string& text) const {
    return std::string(Use(text).status().message());
  }

  const TestAuthority authority_{"Test CA"};
  const TestAuthority other_{"Other CA"};
  const TestCertificate bad_ = authority_.Issue({"bad", ""});
  const TestCertificate good_ = authority_.Issue({"good", ""});
  const TestCertificate guest_ = other_.Issue({"guest", ""});
};

TEST_F(RevocationListsTest, NameWhomTheirAuthorityHasRevoked) {
  const auto lists =
      Use(authority_.Revoke({bad_}) + other_.Revoke({guest_, good_}));
  ASSERT_TRUE(lists.ok()) << lists.status();
  EXPECT_TRUE(lists->RevokeAnyOf(bad_.certificate));
  EXPECT_TRUE(lists->RevokeAnyOf(guest_.certificate));
  // Its number stands in the list of an authority that did not issue it.
  EXPECT_FALSE(lists->RevokeAnyOf(good_.certificate));
}

TEST_F(RevocationListsTest, NameAnyOfAChain) {
  const auto lists = Use(authority_.Revoke({bad_}));
  ASSERT_TRUE(lists.ok()) << lists.status();
  EXPECT_TRUE(lists->RevokeAnyOf(good_.certificate + bad_.certificate));
  EXPECT_FALSE(lists->RevokeAnyOf(good_.certificate + guest_.certificate));
}

TEST_F(RevocationListsTest, LetNothingPassThatIsNoCertificate) {
  const auto lists = Use(authority_.Revoke({}));
  ASSERT_TRUE(lists.ok()) << lists.status();
  for (const std::string& text :
       {std::string(), std::string("nonsense"),
        good_.certificate + bad_.certificate.substr(0, 100)}) {
    EXPECT_TRUE(lists->RevokeAnyOf(text)) << text;
  }
}

TEST_F(RevocationListsTest, EndWithTheFirstOfThem) {
  const auto lists = Use(authority_.Revoke({}, {.ends_in = absl::Hours(5)}) +
                         other_.Revoke({}, {.ends_in = absl::Hours(3)}));
  ASSERT_TRUE(lists.ok()) << lists.status();
  const absl::Duration left = lists->end() - absl::Now();
  EXPECT_GT(left, absl::Hours(2));
  EXPECT_LE(left, absl::Hours(3));
  const auto endless =
      Use(authority_.Revoke({}, {.ends_in = absl::InfiniteDuration()}));
  ASSERT_TRUE(endless.ok()) << endless.status();
  EXPECT_EQ(endless->end(), absl::InfiniteFuture());
}

TEST_F(RevocationListsTest, AreRefusedWithTheReason) {
  const std::string list = authority_.Revoke({bad_});
  for (const std::string& no_list :
       {std::string(), std::string("nonsense"), good_.certificate,
        list + list.substr(0, 120) + "\n-----END X509 CRL-----\n"}) {
    EXPECT_THAT(Wrong(no_list), HasSubstr("not a PEM list")) << no_list;
  }
  // The name alone is not enough.
  EXPECT_THAT(Wrong(TestAuthority("Test CA").Revoke({})),
              HasSubstr("no authority of"));
  EXPECT_THAT(Wrong(authority_.Revoke({}, {.begins_in = absl::Minutes(9)})),
              HasSubstr("begins later"));
  EXPECT_THAT(Wrong(authority_.Revoke({}, {.part = true})),
              HasSubstr("of a part"));
  EXPECT_THAT(Wrong(list + authority_.Revoke({})), HasSubstr("two lists"));
}

}  // namespace
}  // namespace txl
