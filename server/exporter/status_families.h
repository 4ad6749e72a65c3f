#pragma once

// A server's status as Prometheus sees it. docs/metrics.md says what each
// metric means.

#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "server/metrics/metrics.h"
#include "server/metrics/server_status.h"

namespace txl {

// What stays the same while the server runs: txl_build_info, txl_model_info and
// the bytes of a session on the device.
struct ExporterFacts {
  std::string version;
  std::string model;
  std::string fingerprint;
  std::string device;
  std::string kernel;
  std::string form;
  std::string weight_dtype;
  std::string memory_dtype;
  int64_t bytes_per_slot = 0;
};

// Pure. Every family is there at any time, those with labels possibly without
// a sample. The laws of conservation (tests/server/metrics) hold among the
// values as they do in the snapshot.
std::vector<prometheus::MetricFamily> StatusFamilies(
    const ExporterFacts& facts, const ServerStatus& status,
    const ProcessStatus& process);

// Metric families of prometheus-cpp, put together by kind. Names, labels and
// help texts are plain: no backslash, no quote, no line end.

// Label names and values in the order in which they are written.
using MetricLabels = std::vector<std::pair<std::string, std::string>>;

// One family and its samples; valid until the list grows.
class FamilyRef {
 public:
  explicit FamilyRef(prometheus::MetricFamily* family) : family_(family) {}
  // Adds a value of a counter or gauge.
  FamilyRef Sample(double value, const MetricLabels& labels = {});
  // Adds a histogram.
  FamilyRef Sample(const Histogram& histogram, const MetricLabels& labels = {});

 private:
  prometheus::MetricFamily* family_;
};

class FamilyList {
 public:
  // A family without samples yet: only its HELP and TYPE lines are shown.
  FamilyRef Counter(const std::string& name, const std::string& help);
  FamilyRef Gauge(const std::string& name, const std::string& help);
  FamilyRef Histograms(const std::string& name, const std::string& help);

  std::vector<prometheus::MetricFamily> Take() { return std::move(families_); }

 private:
  FamilyRef Add(prometheus::MetricType type, const std::string& name,
                const std::string& help);
  std::vector<prometheus::MetricFamily> families_;
};

// All metrics of the server as one collectable, so that a scrape is one
// snapshot: what holds in every answer of GetServerStatus holds in every
// scrape.

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
