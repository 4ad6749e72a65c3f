#include "server/exporter/family_list.h"

namespace txl {
namespace {

prometheus::ClientMetric WithLabels(const MetricLabels& labels) {
  prometheus::ClientMetric metric;
  metric.label.reserve(labels.size());
  for (const auto& [name, value] : labels) {
    metric.label.push_back({name, value});
  }
  return metric;
}

}  // namespace

FamilyRef FamilyRef::Sample(double value, const MetricLabels& labels) {
  prometheus::ClientMetric metric = WithLabels(labels);
  if (family_->type == prometheus::MetricType::Counter) {
    metric.counter.value = value;
  } else {
    metric.gauge.value = value;
  }
  family_->metric.push_back(std::move(metric));
  return *this;
}

FamilyRef FamilyRef::Sample(const Histogram& histogram,
                            const MetricLabels& labels) {
  prometheus::ClientMetric metric = WithLabels(labels);
  metric.histogram.sample_count = static_cast<uint64_t>(histogram.count());
  metric.histogram.sample_sum = histogram.sum();
  for (size_t i = 0; i < histogram.bounds().size(); ++i) {
    prometheus::ClientMetric::Bucket bucket;
    bucket.upper_bound = histogram.bounds()[i];
    bucket.cumulative_count = static_cast<uint64_t>(histogram.AtMost(i));
    metric.histogram.bucket.push_back(bucket);
  }
  family_->metric.push_back(std::move(metric));
  return *this;
}

FamilyRef FamilyList::Counter(const std::string& name,
                              const std::string& help) {
  return Add(prometheus::MetricType::Counter, name, help);
}

FamilyRef FamilyList::Gauge(const std::string& name, const std::string& help) {
  return Add(prometheus::MetricType::Gauge, name, help);
}

FamilyRef FamilyList::Histograms(const std::string& name,
                                 const std::string& help) {
  return Add(prometheus::MetricType::Histogram, name, help);
}

FamilyRef FamilyList::Add(prometheus::MetricType type, const std::string& name,
                          const std::string& help) {
  prometheus::MetricFamily family;
  family.name = name;
  family.help = help;
  family.type = type;
  families_.push_back(std::move(family));
  return FamilyRef(&families_.back());
}

}  // namespace txl
