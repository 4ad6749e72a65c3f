#pragma once

// Trains a Transformer-XL on one text, from nothing or on from a model:
// segments with carried memory over parallel streams, as the paper does, with
// held-out loss as it goes.

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "model/checkpoint/weights.h"
#include "model/config/model_config.h"
#include "model/train/adam.h"
#include "model/train/streams.h"

namespace txl {

// A model to train on from. Its window and initial memory then hold in
// training too.
struct TrainingStart {
  Weights weights;   // float32 on the CPU; training changes them
  std::string name;  // tells one start from another in a checkpoint
};

struct TrainOptions {
  StreamShape shape;             // streams and segment of a step
  int64_t memory = 128;          // rows kept per layer while training
  StreamShape evaluation_shape;  // of the held-out loss
  LearningRateSchedule schedule;
  AdamOptions adam;
  double dropout = 0.1;
  double attention_dropout = 0.0;
  double init_stddev = 0.02;
  std::optional<TrainingStart> start;  // absent: fresh weights
  uint64_t seed = 1;
  // Products in bfloat16, weights and sums in float32: several times faster
  // where the processor multiplies bfloat16.
  bool bfloat16 = false;
  int64_t log_every = 50;          // steps between reports, >= 1
  int64_t evaluate_every = 250;    // steps, >= 1
  int64_t checkpoint_every = 250;  // steps, >= 1
  // Folder of checkpoint.safetensors; empty: none is written.
  std::string checkpoint_dir;
  bool resume = false;  // from checkpoint_dir
};

struct TrainProgress {
  int64_t step = 0;  // finished steps
  int64_t total_steps = 0;
  // Mean nats per token since the last report; absent before the first step.
  std::optional<double> loss;
  double learning_rate = 0;
  double gradient_norm = 0;
  std::optional<double> held_out;  // nats per token, when it was measured now
  double tokens_per_second = 0;    // since the last report
  double seconds = 0;              // of training, over all resumed runs
  double seconds_left = 0;
};

struct TrainCallbacks {
  // After every report interval and evaluation, also of a start; may be empty.
  std::function<void(const TrainProgress&)> progress;
  // Called with the weights of the lowest held-out loss so far. Those of a
  // start come first. Without held-out text, or when the run stops before it
  // was measured: the weights of the last step, with 0.
  std::function<absl::Status(const Weights&, double held_out)> best;
  // Set (from a signal handler, say) to stop at the next step border.
  const std::atomic<bool>* stop = nullptr;
};

struct TrainResult {
  bool stopped = false;  // by `stop`: the checkpoint holds the state
  int64_t steps = 0;
  double held_out = 0;  // best, nats per token; 0: none was measured
  int64_t best_step = 0;
  double seconds = 0;  // of training, over all resumed runs
  Weights weights;     // of the last step
};

// Whether Train can begin. Errors: InvalidArgument (options, ids outside the
// vocabulary, text too short).
absl::Status CheckTraining(const ModelConfig& config, const Corpus& corpus,
                           const TrainOptions& options);

// Bytes that Train needs at least: weights, gradients, moments, and what a step
// keeps for its gradients.
int64_t TrainingBytes(const ModelConfig& config, const TrainOptions& options);

// `config` is the model as it will be served; training uses its own memory and,
// without a start, no window. Errors: those of CheckTraining, InvalidArgument
// (checkpoint of another run), Internal (a loss that is not finite).
absl::StatusOr<TrainResult> Train(const ModelConfig& config,
                                  const Corpus& corpus,
                                  const TrainOptions& options,
                                  const TrainCallbacks& callbacks);

}  // namespace txl
