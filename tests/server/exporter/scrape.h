#pragma once

// A scrape of a metrics endpoint, as Prometheus does it: own HTTP and own
// reading of the text format, so that nothing here is the library's that is
// tested.

#include <map>
#include <string>
#include <vector>

namespace txl::testing {

struct HttpAnswer {
  int code = 0;  // 0: no connection or no answer
  std::string content_type;
  std::string body;
};

// GET http://ADDRESS/PATH with a connection of its own. `address`: an IPv4
// address, a colon and a port.
HttpAnswer HttpGet(const std::string& address, const std::string& path);

struct Scrape {
  std::map<std::string, std::string> types;  // family -> "counter", ...
  std::map<std::string, std::string> helps;
  // As written: "txl_rows_total{kind=\"decode\"}".
  std::map<std::string, double> samples;
  // Lines that the format does not know, samples that come twice, have no
  // family or stand apart from it.
  std::vector<std::string> mistakes;

  // Fails the test when there is no such sample.
  double At(const std::string& sample) const;
  // Of every sample of the family, whatever its labels.
  double Sum(const std::string& name) const;
};

Scrape ParseScrape(const std::string& text);
// Both, fails the test unless the answer is 200 with a text without mistakes.
Scrape ScrapeMetrics(const std::string& address);

// Fails the test where one of the equations of docs/metrics.md does not hold.
void ExpectConserved(const Scrape& scrape);

}  // namespace txl::testing
