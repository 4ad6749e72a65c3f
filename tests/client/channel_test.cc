#include "client/channel.h"

#include <gtest/gtest.h>

namespace txl {
namespace {

TEST(Channel, TakesHostAndPortAndUnixSockets) {
  for (const char* address : {"127.0.0.1:50051", "localhost:1", "[::1]:65535",
                              "unix:/run/txl.sock", "unix:relative.sock"}) {
    EXPECT_TRUE(ValidateAddress(address).ok()) << address;
  }
}

TEST(Channel, RefusesWhatIsNoAddressAndNamesIt) {
  for (const char* address : {"", "localhost", ":50051", "host:", "host:0",
                              "host:65536", "host:port", "unix:"}) {
    const absl::Status status = ValidateAddress(address);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << address;
    EXPECT_NE(status.message().find(address), std::string::npos);
  }
}

TEST(Channel, RefusesRootsWithoutTls) {
  const auto channel = OpenChannel({.ca_file = "ca.pem"});
  EXPECT_EQ(channel.status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(Channel, NamesARootFileThatCannotBeRead) {
  const auto channel = OpenChannel({.tls = true, .ca_file = "/no/such.pem"});
  EXPECT_EQ(channel.status().code(), absl::StatusCode::kNotFound);
  EXPECT_NE(channel.status().message().find("/no/such.pem"), std::string::npos);
}

}  // namespace
}  // namespace txl
