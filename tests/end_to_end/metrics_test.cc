// The metrics endpoint of the real server, scraped with plain HTTP.

#include <gtest/gtest.h>

#include "tests/end_to_end/server_process.h"
#include "tests/end_to_end/turns.h"
#include "tests/server/exporter/scrape.h"

namespace txl::testing {
namespace {

const std::vector<uint32_t> kPrompt = {1, 2, 3};

TEST(MetricsEndToEnd, AScrapeIsWhatGetServerStatusSays) {
  ServerProcess server(ShippedModel(),
                       {"--slots", "4", "--metrics-listen", "127.0.0.1:0"});
  const std::string address = server.ReadMetricsAddress();
  ASSERT_NE(address, "");
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(RunTurn(server.client(), Greedy("", kPrompt, 7)).status.ok());
  }
  const v1::GetServerStatusResponse status = server.Status();
  const Scrape scrape = ScrapeMetrics(address);
  EXPECT_EQ(scrape.At("txl_requests_started_total"), status.turns_started());
  EXPECT_EQ(scrape.At("txl_tokens_total{kind=\"generated\"}"),
            status.tokens_delivered());
  EXPECT_EQ(scrape.At("txl_steps_total"), status.steps());
  EXPECT_GE(status.tokens_delivered(), 21);
}

}  // namespace
}  // namespace txl::testing
