#pragma once

// Mean negative log-likelihood of a text by the server's step: streams are its
// slots, segments go in as prompts do, of a cluster's words those are computed
// that hold a target.

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "model/checkpoint/weights.h"
#include "model/cpu/native_weights.h"
#include "model/step/model_step.h"
#include "model/train/evaluation.h"

namespace txl {

// Tokens of each stream that one step takes: as many as a segment has, fewer
// where all streams together would be more rows than a step should hold; >= 1.
int64_t RowsPerStream(const StreamShape& shape);

// Evaluate with one slot per stream. Every token sees the window that it sees
// when it is served, so that the cuts change nothing but how often the observer
// is called; a model without a window of its own, or with one that is wider
// than its memory, sees less than in Evaluate.
// REQUIRES: the step has options.shape.streams slots and takes as many rows of
// each as rows_per_stream says; ids are in its vocabulary.
Evaluation EvaluateStep(ModelStep& step, absl::Span<const int64_t> ids,
                        const EvaluationOptions& options,
                        int64_t rows_per_stream);

struct ServingStepOptions {
  StreamShape shape;
  NativeFormats formats;  // native step only
  int threads = 1;        // native step only; LibTorch has its own
};

// The step that serves weights of this dtype and device: native for float32 on
// the CPU, else LibTorch's. Errors: InvalidArgument.
absl::StatusOr<std::unique_ptr<ModelStep>> CreateServingStep(
    const ModelConfig& config, Weights weights,
    const ServingStepOptions& options);

}  // namespace txl
