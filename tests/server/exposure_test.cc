#include "server/exposure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace txl {
namespace {

using ::testing::HasSubstr;

std::string Refusal(const Exposure& exposure) {
  const absl::Status status = CheckExposure(exposure);
  if (status.ok()) return "";
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return std::string(status.message());
}

TEST(OfThisMachine, AreLoopbackAndUnixSockets) {
  for (const char* own : {"127.0.0.1:50051", "127.8.9.10:0", "localhost:1",
                          "[::1]:50051", "unix:/run/txl.sock"}) {
    EXPECT_TRUE(IsOfThisMachine(own)) << own;
  }
}

TEST(OfThisMachine, IsNothingElse) {
  for (const char* other :
       {"0.0.0.0:50051", "[::]:50051", "10.0.0.1:50051", "128.0.0.1:1",
        "txl.example:1", "127.evil.example:1", "localhost.example:1", "*:1",
        "[::ffff:10.0.0.1]:1"}) {
    EXPECT_FALSE(IsOfThisMachine(other)) << other;
  }
}

TEST(BeyondLoopback, AListenerNeedsTlsOrAWordForNone) {
  const TlsFiles tls = {"c.pem", "k.pem", ""};
  EXPECT_THAT(Refusal({"0.0.0.0:1", "", {}, false}),
              HasSubstr("--listen 0.0.0.0:1: is beyond loopback"));
  EXPECT_THAT(Refusal({"127.0.0.1:1", "[::]:2", {}, false}),
              HasSubstr("--http-listen [::]:2: is beyond loopback"));
  EXPECT_EQ(Refusal({"0.0.0.0:1", "[::]:2", tls, false}), "");
  EXPECT_EQ(Refusal({"0.0.0.0:1", "[::]:2", {}, true}), "");
  EXPECT_EQ(Refusal({"unix:/s", "127.0.0.1:2", {}, false}), "");
}

TEST(BeyondLoopback, NothingLetsAdministrationListen) {
  const TlsFiles tls = {"c.pem", "k.pem", ""};
  EXPECT_THAT(Refusal({"127.0.0.1:1", "", tls, true, "0.0.0.0:3"}),
              HasSubstr("--admin-listen 0.0.0.0:3: is beyond loopback"));
  for (const char* own : {"", "unix:/s", "127.0.0.1:3", "[::1]:3"}) {
    EXPECT_EQ(Refusal({"127.0.0.1:1", "", {}, false, own}), "") << own;
  }
}

TEST(FilesOfTls, ComeTogether) {
  EXPECT_THAT(Refusal({"127.0.0.1:1", "", {"c.pem", "", ""}, false}),
              HasSubstr("--tls-cert: needs --tls-key"));
  EXPECT_THAT(Refusal({"127.0.0.1:1", "", {"", "k.pem", ""}, true}),
              HasSubstr("--tls-key: needs --tls-cert"));
  EXPECT_THAT(Refusal({"unix:/s", "", {"", "", "ca.pem"}, true}),
              HasSubstr("--tls-client-ca: needs --tls-cert and --tls-key"));
  EXPECT_THAT(
      Refusal({"127.0.0.1:1", "", {"c.pem", "k.pem", "", "r.crl"}, false}),
      HasSubstr("--tls-crl: needs --tls-client-ca"));
  EXPECT_EQ(Refusal({"127.0.0.1:1", "", {"c.pem", "k.pem", "ca.pem"}, false}),
            "");
}

}  // namespace
}  // namespace txl
