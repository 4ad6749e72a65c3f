#include "client/channel.h"

#include <gmock/gmock.h>
#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "tests/client/fake_service.h"
#include "tests/server/tls/test_authority.h"
#include "txl/v1/generation_service.grpc.pb.h"

namespace txl {
namespace {

TEST(Channel, TakesHostAndPortAndUnixSockets) {
  for (const char* address :
       {"127.0.0.1:50051", "localhost:1", "[::1]:65535", "unix:/run/txl.sock",
        "unix:relative.sock", "unix:///run/txl.sock"}) {
    EXPECT_TRUE(ValidateAddress(address).ok()) << address;
  }
}

TEST(Channel, RefusesWhatIsNoAddressAndNamesIt) {
  for (const char* address :
       {"", "localhost", ":50051", "host:", "host:0", "host:65536", "host:port",
        "unix:", "unix://", "unix://run/txl.sock", "http://host:80",
        "::1:50051", "[::1]", "host:+80", "host: 80", " host:80",
        "host/a:80"}) {
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

TEST(Channel, SaysWhatALikelyAddressLacks) {
  EXPECT_NE(ValidateAddress("http://a:1").message().find("no http://"),
            std::string::npos);
  EXPECT_NE(ValidateAddress("::1:1").message().find("has brackets"),
            std::string::npos);
  EXPECT_NE(ValidateAddress("unix://a/b").message().find("right behind unix:"),
            std::string::npos);
}

TEST(Channel, NamesAFileThatIsNoPem) {
  const std::string path = ::testing::TempDir() + "/channel-no.pem";
  std::ofstream(path) << "not a certificate";
  EXPECT_EQ(OpenChannel({.tls = true, .ca_file = path}).status().message(),
            path + ": holds no CERTIFICATE in PEM");
  const std::string certificate = ::testing::TempDir() + "/channel-crt.pem";
  std::ofstream(certificate) << "-----BEGIN CERTIFICATE-----\n";
  EXPECT_EQ(OpenChannel({.tls = true,
                         .certificate_file = certificate,
                         .tls_key_file = certificate})
                .status()
                .message(),
            certificate + ": holds no PRIVATE KEY in PEM");
  std::ofstream(path) << "-----BEGIN ENCRYPTED PRIVATE KEY-----\n";
  EXPECT_EQ(
      OpenChannel(
          {.tls = true, .certificate_file = certificate, .tls_key_file = path})
          .status()
          .message(),
      path + ": has a passphrase, which cannot be given");
}

TEST(Channel, RefusesACertificateWithoutItsKeyOrWithoutTls) {
  for (const ChannelOptions& options :
       {ChannelOptions{.tls = true, .certificate_file = "c.pem"},
        ChannelOptions{.tls = true, .tls_key_file = "k.pem"},
        ChannelOptions{.certificate_file = "c.pem", .tls_key_file = "k.pem"}}) {
    EXPECT_EQ(OpenChannel(options).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
}

TEST(Channel, NamesACertificateFileThatCannotBeRead) {
  const auto channel = OpenChannel({.tls = true,
                                    .certificate_file = "/no/such.crt",
                                    .tls_key_file = "/no/such.key"});
  EXPECT_EQ(channel.status().code(), absl::StatusCode::kNotFound);
  EXPECT_NE(channel.status().message().find("/no/such.crt"), std::string::npos);
}

TEST(Channel, NamesAKeyFileThatHoldsNoKey) {
  const std::string path = ::testing::TempDir() + "/no_key";
  for (const char* text :
       {"", " \n", "\xEF\xBB\xBF\n", "two words", "line\nline"}) {
    std::ofstream(path) << text;
    const auto channel = OpenChannel({.key_file = path});
    EXPECT_EQ(channel.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(channel.status().message(), path + ": holds no key");
  }
  EXPECT_EQ(OpenChannel({.key_file = "/no/such.key"}).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(OpenChannel({.key_file = "/etc"}).status().message(),
            "/etc: is a directory");
}

TEST(Channel, RefusesAKeyThatIsAnotherCertificatesAndWhatCannotBeUsed) {
  const TestAuthority authority("channel");
  const TestCertificate pairs[] = {authority.Issue({"alice", ""}),
                                   authority.Issue({"other", ""})};
  const std::string folder = ::testing::TempDir();
  ChannelOptions options;
  options.tls = true;
  options.ca_file = folder + "/channel-ca.crt";
  options.certificate_file = folder + "/channel-alice.crt";
  options.tls_key_file = folder + "/channel-alice.key";
  std::ofstream(options.ca_file) << authority.certificate();
  std::ofstream(options.certificate_file) << pairs[0].certificate;
  std::ofstream(options.tls_key_file) << pairs[0].key;
  EXPECT_TRUE(OpenChannel(options).ok());
  std::ofstream(options.tls_key_file) << pairs[1].key;
  EXPECT_EQ(
      OpenChannel(options).status().message(),
      options.tls_key_file + ": is not the key of " + options.certificate_file);
  for (const std::string& file :
       {options.tls_key_file, options.certificate_file, options.ca_file}) {
    const std::string what =
        file == options.tls_key_file ? "PRIVATE KEY" : "CERTIFICATE";
    std::ofstream(file) << "-----BEGIN " << what << "-----\n!\n-----END "
                        << what << "-----\n";
    EXPECT_THAT(std::string(OpenChannel(options).status().message()),
                ::testing::StartsWith(file + ": holds no usable "));
  }
}

TEST(AChannelWithAKeyFile, SendsTheKeyWithEveryCall) {
  const std::string path = ::testing::TempDir() + "/channel_key";
  std::ofstream(path) << "a-key_1\n";
  testing::FakeServer server;
  std::vector<std::string> sent;
  server->on_generate = [&](grpc::ServerContext* context,
                            const v1::GenerateRequest&,
                            testing::FakeService::Writer*) {
    const auto [begin, end] =
        context->client_metadata().equal_range("authorization");
    for (auto it = begin; it != end; ++it) {
      sent.emplace_back(it->second.data(), it->second.size());
    }
    return grpc::Status::OK;
  };
  ChannelOptions options = {.address = server.address()};
  for (const std::string& key_file : {path, std::string()}) {
    options.key_file = key_file;
    const auto channel = OpenChannel(options);
    ASSERT_TRUE(channel.ok()) << channel.status();
    const auto stub = v1::GenerationService::NewStub(*channel);
    for (int i = 0; i < 2; ++i) {
      grpc::ClientContext context;
      v1::GenerateResponse response;
      const auto stream = stub->Generate(&context, v1::GenerateRequest());
      while (stream->Read(&response)) {
      }
      EXPECT_TRUE(stream->Finish().ok());
    }
  }
  EXPECT_EQ(sent,
            (std::vector<std::string>{"Bearer a-key_1", "Bearer a-key_1"}));
}

TEST(AChannelWithASmallWindow, KeepsAServerWaitingThatIsNotRead) {
  constexpr int64_t kEvents = 5000;
  testing::FakeServer server;
  std::atomic<int64_t> written{0};
  server->on_generate = [&](grpc::ServerContext*, const v1::GenerateRequest&,
                            testing::FakeService::Writer* writer) {
    for (int64_t i = 0; i < kEvents; ++i) {
      if (!writer->Write(testing::TokenEvent(static_cast<int32_t>(i), 'a'))) {
        break;
      }
      ++written;
    }
    return grpc::Status::OK;
  };
  ChannelOptions options;
  options.address = server.address();
  options.own_connection = true;
  options.lean = true;
  options.window_bytes = 1024;
  const auto channel = OpenChannel(options);
  ASSERT_TRUE(channel.ok()) << channel.status();
  const auto stub = v1::GenerationService::NewStub(*channel);
  grpc::ClientContext context;
  const auto reader = stub->Generate(&context, v1::GenerateRequest());
  v1::GenerateResponse response;
  ASSERT_TRUE(reader->Read(&response));
  // Time enough to write everything, if it could.
  absl::SleepFor(absl::Milliseconds(300));
  EXPECT_LT(written, kEvents / 2);
  int64_t read = 1;
  while (reader->Read(&response)) ++read;
  EXPECT_EQ(read, kEvents);
  EXPECT_TRUE(reader->Finish().ok());
}

}  // namespace
}  // namespace txl
