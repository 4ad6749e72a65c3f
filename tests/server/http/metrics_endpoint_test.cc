#include "server/http/metrics_endpoint.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "tests/server/exporter/scrape.h"

namespace txl {
namespace {

using ::testing::HasSubstr;
using testing::HttpGet;
using testing::ScrapeMetrics;
using ::testing::StartsWith;

std::unique_ptr<MetricsEndpoint> Start(StatusSource source = [] {
  return ServerStatus();
}) {
  auto endpoint =
      MetricsEndpoint::Start("127.0.0.1:0", ExporterFacts(), std::move(source));
  EXPECT_TRUE(endpoint.ok()) << endpoint.status();
  return *std::move(endpoint);
}

// A connection that says nothing.
class SilentConnection {
 public:
  explicit SilentConnection(const std::string& address)
      : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in to = {};
    to.sin_family = AF_INET;
    int port = 0;
    EXPECT_TRUE(absl::SimpleAtoi(address.substr(address.find(':') + 1), &port));
    to.sin_port = htons(static_cast<uint16_t>(port));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof(to)), 0);
  }
  ~SilentConnection() { close(fd_); }

 private:
  const int fd_;
};

TEST(MetricsEndpointTest, IsHealthyWhileTheServerTakesNewWork) {
  std::atomic<ServerPhase> phase{ServerPhase::kStarting};
  const auto endpoint = Start([&] {
    ServerStatus status;
    status.phase = phase;
    return status;
  });
  EXPECT_EQ(HttpGet(endpoint->address(), "/health").code, 503);
  phase = ServerPhase::kReady;
  EXPECT_EQ(HttpGet(endpoint->address(), "/health").code, 200);
  phase = ServerPhase::kDraining;
  EXPECT_EQ(HttpGet(endpoint->address(), "/health").code, 503);
}

TEST(MetricsEndpointTest, ServesTheStatusOfTheMoment) {
  std::atomic<int64_t> steps{3};
  const auto endpoint = Start([&] {
    ServerStatus status;
    status.snapshot.steps = steps;
    return status;
  });
  EXPECT_THAT(endpoint->address(), StartsWith("127.0.0.1:"));
  EXPECT_NE(endpoint->address(), "127.0.0.1:0");
  EXPECT_EQ(ScrapeMetrics(endpoint->address()).At("txl_steps_total"), 3);
  steps = 5;
  EXPECT_EQ(ScrapeMetrics(endpoint->address()).At("txl_steps_total"), 5);
}

TEST(MetricsEndpointTest, ServesNothingElse) {
  const auto endpoint = Start();
  for (const char* path : {"/", "/metric", "/etc/passwd",
                           "/../../../../etc/passwd", "/%2e%2e/etc/passwd"}) {
    EXPECT_EQ(HttpGet(endpoint->address(), path).code / 100, 4) << path;
  }
}

TEST(MetricsEndpointTest, AnAddressInUseIsAnErrorThatNamesIt) {
  const auto endpoint = Start();
  const auto second = MetricsEndpoint::Start(
      endpoint->address(), ExporterFacts(), [] { return ServerStatus(); });
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(second.status().message(), HasSubstr(endpoint->address()));
}

TEST(MetricsEndpointTest, AWrongAddressIsAnError) {
  const auto endpoint = MetricsEndpoint::Start("nowhere", ExporterFacts(),
                                               [] { return ServerStatus(); });
  EXPECT_EQ(endpoint.status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(MetricsEndpointTest, IsGoneWhenItIsDestroyed) {
  auto endpoint = Start();
  const std::string address = endpoint->address();
  endpoint.reset();
  EXPECT_EQ(HttpGet(address, "/metrics").code, 0);
  // And its port is free again.
  EXPECT_TRUE(MetricsEndpoint::Start(address, ExporterFacts(), [] {
                return ServerStatus();
              }).ok());
}

TEST(MetricsEndpointTest, EndsAlsoWithAClientThatSaysNothing) {
  auto endpoint = Start();
  const SilentConnection silent(endpoint->address());
  ScrapeMetrics(endpoint->address());  // the silent one is taken by now
  endpoint.reset();
}

TEST(MetricsEndpointTest, OneSilentClientDoesNotKeepScrapesOut) {
  const auto endpoint = Start();
  const SilentConnection silent(endpoint->address());
  for (int i = 0; i < 5; ++i) ScrapeMetrics(endpoint->address());
}

TEST(MetricsEndpointTest, ManyScrapesAtOnceAreAllAnswered) {
  const auto endpoint = Start();
  std::vector<std::thread> scrapers;
  for (int i = 0; i < 8; ++i) {
    scrapers.emplace_back([&] {
      for (int j = 0; j < 10; ++j) {
        EXPECT_EQ(HttpGet(endpoint->address(), "/metrics").code, 200);
      }
    });
  }
  for (std::thread& scraper : scrapers) scraper.join();
}

}  // namespace
}  // namespace txl
