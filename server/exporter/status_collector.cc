#include "server/exporter/status_collector.h"

#include <prometheus/text_serializer.h>

#include <utility>

namespace txl {

StatusCollector::StatusCollector(ExporterFacts facts, StatusSource source)
    : facts_(std::move(facts)), source_(std::move(source)) {}

std::vector<prometheus::MetricFamily> StatusCollector::Collect() const {
  return StatusFamilies(facts_, source_(), ReadProcessStatus());
}

std::string MetricsText(const StatusCollector& collector) {
  return prometheus::TextSerializer().Serialize(collector.Collect());
}

}  // namespace txl
