#pragma once

// Drives a step that samples on its device, and its oracle: the plain CUDA step
// with the CPU's sampler.

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "model/cuda/step/cuda_sampling_step.h"
#include "model/sampling/sampler.h"
#include "tests/model/cuda/step/cuda_driver.h"
#include "tests/model/sampling/some_kinds.h"

namespace txl {

// Rows, and parameters whose tokens are known.
inline StepRow Row(int32_t slot, int64_t position, int32_t token,
                   RowKind kind) {
  StepRow row;
  row.slot = slot;
  row.position = position;
  row.token_id = token;
  row.kind = kind;
  return row;
}
inline StepRow Score(int32_t slot, int64_t position, int32_t token,
                     int32_t target) {
  StepRow row = Row(slot, position, token, RowKind::kScore);
  row.score_target = target;
  return row;
}
inline StepRow Sample(int32_t slot, int64_t position, int32_t token) {
  return Row(slot, position, token, RowKind::kDecode);
}
inline SamplingParams Greedy() {
  SamplingParams params;
  params.temperature = 0;
  return params;
}
// All that is sampled is this.
inline SamplingParams Always(int32_t token) {
  SamplingParams params = Greedy();
  params.logit_bias[token] = 100;
  return params;
}

// `model`: a GoldenCase or a RandomCase, with SomeTable of its vocabulary. All
// slots are cleared.
template <typename Case>
std::unique_ptr<SamplingStep> MakeSamplingStep(
    const Case& model, CudaStepOptions options,
    CudaSamplingOptions sampling = {}) {
  options.fingerprint = "the model";
  sampling.kinds = SomeTable(model.config.vocab_size);
  auto step =
      CreateCudaSamplingStep(model.config, model.weights, options, sampling);
  if (!step.ok()) throw std::runtime_error(step.status().ToString());
  for (int32_t slot = 0; slot < options.slots; ++slot) (*step)->Clear(slot);
  return *std::move(step);
}

// How a slot samples from now on.
struct SlotSampling {
  int32_t slot = 0;
  SamplingParams params;
  std::vector<int32_t> recent_ids, banned_ids;
  int64_t min_position = 0;

  SampleContext context() const {
    return {recent_ids, banned_ids, min_position};
  }
};

// A step, and what is called before it.
struct ScriptedStep {
  std::vector<SlotSampling> configured;
  std::vector<StepRow> rows;
};
using Script = std::vector<ScriptedStep>;

// Sessions that each feed prompts, score and sample by turns, each configured
// at random, again at times; sampled tokens are fed as kLastSampled. At
// most `max_rows` rows in a step.
Script RandomScript(const RandomCase& model, int32_t sessions, int steps,
                    int64_t max_rows, uint32_t seed);

// `in_flight`: steps that are queued before the first of them is collected.
std::vector<SampledRows> RunScript(SamplingStep& step, const Script& script,
                                   int in_flight);

// The same on the host. Rows that sample after a failed one are UnknownInput.
std::vector<std::vector<RowResult>> RunScriptOnHost(ModelStep& step,
                                                    const Script& script);

// Same statuses, tokens and ids of the best words; log-probabilities within the
// tolerance.
void ExpectSameRows(const std::vector<RowResult>& found,
                    const std::vector<RowResult>& expected, double tolerance,
                    const std::string& where);

// Bit by bit, but for the seconds.
bool SameSampledRows(const std::vector<SampledRows>& a,
                     const std::vector<SampledRows>& b);

// Rows of tokens [begin, end) of `ids` in `slot` that score the token behind
// each.
std::vector<StepRow> ScoringRows(int32_t slot, const std::vector<int32_t>& ids,
                                 int64_t begin, int64_t end);

// One step, alone.
SampledRows RunRows(SamplingStep& step, const std::vector<StepRow>& rows);

}  // namespace txl
