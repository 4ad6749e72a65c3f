#pragma once

// A busy server for tests of what is exported: every value is its own, every
// family has a sample, and all laws hold.

#include <string>
#include <vector>

#include "server/exporter/status_families.h"
#include "tests/server/exporter/scrape.h"

namespace txl::testing {

ExporterFacts FakeFacts();
ServerStatus FakeStatus();
ProcessStatus FakeProcess();

// As the endpoint would write them.
std::string TextOf(const std::vector<prometheus::MetricFamily>& families);
// Of these three; fails the test when the text has mistakes.
Scrape ScrapeOf(const ServerStatus& status);

}  // namespace txl::testing
