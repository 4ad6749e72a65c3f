#pragma once

// Books steps, rows and tokens so that the laws of metrics.h hold in every
// snapshot. A row is booked when its fate is known: kept with its turn's
// commit, or discarded.

#include <cstdint>
#include <string>

#include "server/engine/step_runner.h"
#include "server/metrics/metrics.h"

namespace txl {

struct RowCounts {
  int64_t decode = 0;
  int64_t prefill = 0;
  int64_t score = 0;
  int64_t rebuild = 0;

  void Add(RowKind kind);
  int64_t total() const { return decode + prefill + score + rebuild; }
};

// What stood in a step.
struct StepShape {
  bool decode = false;             // a row that samples
  bool stream_and_prompt = false;  // running streams beside prompts
};

class StepLedger {
 public:
  explicit StepLedger(Metrics* metrics) : metrics_(metrics) {}

  void Step(const StepShape& shape, double device_seconds);
  // Rows that their turn keeps, with the token that they gave its stream.
  void Kept(const RowCounts& rows, bool token_delivered);
  // Rows that nobody keeps, and how many tokens they had sampled.
  void Discarded(const RowCounts& rows, int64_t tokens_sampled);
  // A turn's end, by the name of its canonical code.
  void TurnFinished(const std::string& code_name);

 private:
  Metrics* const metrics_;
};

}  // namespace txl
