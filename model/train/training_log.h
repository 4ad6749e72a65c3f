#pragma once

// What a run reports, as files beside its model.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "model/train/trainer.h"

namespace txl {

// A report's losses in nats per token; absent: not measured.
struct LossPoint {
  int64_t step = 0;
  std::optional<double> loss, held_out;
};

// Both losses over the steps as an SVG picture.
std::string LossChart(absl::Span<const LossPoint> points);

// DIRECTORY/log.jsonl, one JSON object a report, and DIRECTORY/losses.svg.
// Not thread-safe.
class TrainingLog {
 public:
  // `resume`: goes on behind the reports that the file holds. Nothing is
  // written before the first report.
  TrainingLog(const std::string& directory, bool resume);

  // A resumed run repeats steps that come after its checkpoint; their old
  // reports are dropped. Errors: PermissionDenied naming the file.
  absl::Status Add(const TrainProgress& progress);

 private:
  // Lines of the file of steps before `step`.
  std::string LinesBefore(int64_t step);

  const std::string log_path_, chart_path_;
  const bool resume_;
  bool begun_ = false;
  std::vector<LossPoint> points_;
};

}  // namespace txl
