#pragma once

// Metric families of prometheus-cpp, put together by kind. Names, labels and
// help texts are plain: no backslash, no quote, no line end.

#include <prometheus/metric_family.h>

#include <string>
#include <utility>
#include <vector>

#include "server/metrics/histogram.h"

namespace txl {

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

}  // namespace txl
