#pragma once

// All metrics of the server as one collectable, so that a scrape is one
// snapshot: what holds in every answer of GetServerStatus holds in every
// scrape.

#include <prometheus/collectable.h>

#include <functional>
#include <string>
#include <vector>

#include "server/exporter/status_families.h"

namespace txl {

using StatusSource = std::function<ServerStatus()>;

// Thread-safe as `source` is.
class StatusCollector final : public prometheus::Collectable {
 public:
  StatusCollector(ExporterFacts facts, StatusSource source);
  // Calls the source once.
  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  const ExporterFacts facts_;
  const StatusSource source_;
};

// Prometheus's text format of what the collector has now.
std::string MetricsText(const StatusCollector& collector);
inline constexpr char kMetricsContentType[] =
    "text/plain; version=0.0.4; charset=utf-8";

}  // namespace txl
