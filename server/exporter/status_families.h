#pragma once

// A server's status as Prometheus sees it. docs/metrics.md says what each
// metric means.

#include <prometheus/metric_family.h>

#include <cstdint>
#include <string>
#include <vector>

#include "server/metrics/process_status.h"
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

}  // namespace txl
