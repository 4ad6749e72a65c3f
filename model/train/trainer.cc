#include "model/train/trainer.h"

#include <ATen/autocast_mode.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "model/base/status_macros.h"
#include "model/checkpoint/canonical_tensors.h"
#include "model/reference/network.h"
#include "model/train/evaluation.h"
#include "model/train/run_folder.h"
#include "model/train/training_state.h"

namespace txl {
namespace {

double Now() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Products in bfloat16 on this thread while it lives.
class Bfloat16Products {
 public:
  explicit Bfloat16Products(bool on) : on_(on) {
    if (!on_) return;
    at::autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
    at::autocast::set_autocast_enabled(at::kCPU, true);
    at::autocast::increment_nesting();
  }
  ~Bfloat16Products() {
    if (!on_) return;
    if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
    at::autocast::set_autocast_enabled(at::kCPU, false);
  }
  Bfloat16Products(const Bfloat16Products&) = delete;
  Bfloat16Products& operator=(const Bfloat16Products&) = delete;

 private:
  bool on_;
};

// FNV-1a over the ids: tells one text from another in a checkpoint.
uint64_t TextHash(const std::vector<int64_t>& ids) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (int64_t id : ids) {
    hash = (hash ^ static_cast<uint64_t>(id)) * 0x100000001b3u;
  }
  return hash;
}

// All that makes two runs give other weights.
std::string RunIdentity(const ModelConfig& config, const Corpus& corpus,
                        const TrainOptions& o) {
  return absl::StrCat(
      ModelConfigToJson(config), " text=", TextHash(corpus.train), "/",
      TextHash(corpus.held_out), " held_out=", corpus.held_out_share,
      " streams=", o.shape.streams, " segment=", o.shape.segment,
      " memory=", o.memory, " steps=", o.schedule.total_steps,
      " warmup=", o.schedule.warmup_steps, " lr=", o.schedule.peak, "*",
      o.schedule.final_share, " beta=", o.adam.beta1, ",", o.adam.beta2,
      " eps=", o.adam.epsilon, " decay=", o.adam.weight_decay,
      " clip=", o.adam.clip_norm, " dropout=", o.dropout, ",",
      o.attention_dropout, " init=", o.init_stddev, " seed=", o.seed,
      " bf16=", o.bfloat16,
      o.start ? absl::StrCat(" from=", o.start->name) : "");
}

absl::Status CheckOptions(const TrainOptions& o) {
  const auto share = [](double p) { return p >= 0 && p < 1; };
  if (!share(o.dropout) || !share(o.attention_dropout)) {
    return absl::InvalidArgumentError("dropout must be in [0, 1)");
  }
  if (o.schedule.total_steps < 1 || o.schedule.warmup_steps < 0 ||
      !(o.schedule.peak > 0)) {
    return absl::InvalidArgumentError(
        "steps and learning rate must be positive, warmup not negative");
  }
  if (o.memory < 0 || o.log_every < 1 || o.evaluate_every < 1 ||
      o.checkpoint_every < 1) {
    return absl::InvalidArgumentError(
        "memory must be >= 0; log_every, evaluate_every and checkpoint_every "
        ">= 1");
  }
  if (!(o.adam.clip_norm > 0)) {
    return absl::InvalidArgumentError("clip_norm must be positive");
  }
  return absl::OkStatus();
}

absl::Status CheckIds(absl::Span<const int64_t> ids, int64_t vocab_size) {
  for (const int64_t id : ids) {
    if (id >= 0 && id < vocab_size) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "id ", id, " of the text is outside the vocabulary of ", vocab_size));
  }
  return absl::OkStatus();
}

// The model while it trains: short memory and, where it is new, every key in
// sight.
ModelConfig TrainingConfig(ModelConfig config, const TrainOptions& options) {
  config.mem_len = options.memory;
  if (!options.start) config.window.reset();
  return config;
}

class TrainingRun {
 public:
  TrainingRun(const ModelConfig& config, const Corpus& corpus,
              const TrainOptions& options, const TrainCallbacks& callbacks)
      : corpus_(corpus),
        options_(options),
        callbacks_(callbacks),
        identity_(RunIdentity(config, corpus, options)),
        weights_(options.start ? options.start->weights
                               : RandomWeights(config, options.init_stddev,
                                               options.seed, {})),
        parameters_(MakeTrainable(config, weights_)),
        network_(TrainingConfig(config, options), weights_),
        served_(config, weights_),
        adam_(parameters_, options.adam),
        streams_(corpus.train, options.shape, options.seed,
                 config.beat_positions) {
    state_.parameters = parameters_;
    state_.adam = &adam_;
    state_.memory = network_.InitialMemory(options.shape.streams);
  }

  absl::StatusOr<TrainResult> Run();

 private:
  std::string CheckpointPath() const {
    return absl::StrCat(options_.checkpoint_dir, "/", kCheckpointFile);
  }
  bool Stopping() const { return callbacks_.stop && *callbacks_.stop; }
  absl::Status Checkpoint();
  // One step: the segment's mean loss in nats per token.
  absl::StatusOr<double> Step();
  absl::Status AfterStep();
  // Held-out loss of the model as it is served; hands the weights out when
  // they are the best so far. Absent: a stop came first, and it was not the
  // last step's.
  absl::StatusOr<std::optional<double>> MeasureHeldOut();
  bool HasHeldOut() const { return corpus_.held_out.size() > 1; }
  // What a run begins with: a checkpoint, or the weights of a start.
  absl::Status Begin();
  // Hands out the last weights of a run without a best.
  absl::Status HandOutLast();
  void Report(std::optional<double> held_out);
  TrainResult Result(bool stopped) const;

  const Corpus& corpus_;
  const TrainOptions& options_;
  const TrainCallbacks& callbacks_;
  std::string identity_;
  Weights weights_;
  std::vector<std::pair<std::string, at::Tensor>> parameters_;
  ReferenceNetwork network_;
  ReferenceNetwork served_;
  Adam adam_;
  TrainingStreams streams_;
  TrainingState state_;

  // Sums since the last report.
  double loss_sum_ = 0, step_seconds_ = 0;
  int64_t loss_steps_ = 0;
  double gradient_norm_ = 0, learning_rate_ = 0;
};

absl::Status TrainingRun::Checkpoint() {
  if (options_.checkpoint_dir.empty()) return absl::OkStatus();
  return SaveTrainingState(state_, identity_, CheckpointPath());
}

absl::StatusOr<double> TrainingRun::Step() {
  const int64_t step = state_.progress.step;
  const SegmentBatch batch = streams_.At(step);
  if (batch.first) {
    state_.memory = network_.InitialMemory(options_.shape.streams);
  }
  DropoutStream dropout(options_.seed, static_cast<uint64_t>(step));
  const ForwardOptions forward{options_.dropout, options_.attention_dropout,
                               &dropout, batch.ticks};
  adam_.ZeroGrad();
  at::Tensor loss;
  {
    const Bfloat16Products products(options_.bfloat16);
    const at::Tensor hidden =
        network_.Forward(batch.inputs, state_.memory, forward);
    loss =
        network_
            .Nll(hidden.flatten(0, 1).to(at::kFloat), batch.targets.flatten())
            .to(at::kFloat)
            .mean();
  }
  loss.backward();
  learning_rate_ = LearningRateAt(options_.schedule, step);
  gradient_norm_ = adam_.Step(learning_rate_);
  const double value = loss.item<double>();
  if (!std::isfinite(value)) {
    return absl::InternalError(
        absl::StrCat("the loss is not finite at step ", step,
                     ": a lower learning rate or a longer warm-up may help"));
  }
  return value;
}

absl::StatusOr<std::optional<double>> TrainingRun::MeasureHeldOut() {
  const Bfloat16Products products(options_.bfloat16);
  TrainingProgressState& progress = state_.progress;
  const bool last = progress.step == options_.schedule.total_steps;
  const auto observer = [&](const Evaluation&, double) {
    return last || !Stopping();
  };
  const double nats = Evaluate(served_, corpus_.held_out,
                               {options_.evaluation_shape, StreamCut::kWhole,
                                observer, nullptr})
                          .nats;
  if (!last && Stopping()) return std::nullopt;
  if (progress.best_held_out == 0 || nats < progress.best_held_out) {
    progress.best_held_out = nats;
    progress.best_step = progress.step;
    if (callbacks_.best) {
      TXL_RETURN_IF_ERROR(callbacks_.best(weights_, nats));
    }
  }
  return std::optional<double>(nats);
}

absl::Status TrainingRun::HandOutLast() {
  if (state_.progress.best_held_out != 0 || !callbacks_.best) {
    return absl::OkStatus();
  }
  return callbacks_.best(weights_, 0);
}

void TrainingRun::Report(std::optional<double> held_out) {
  if (callbacks_.progress) {
    TrainProgress report;
    report.step = state_.progress.step;
    report.total_steps = options_.schedule.total_steps;
    report.seconds = state_.progress.seconds;
    report.held_out = held_out;
    if (loss_steps_ > 0) {
      const double per_step = step_seconds_ / static_cast<double>(loss_steps_);
      report.loss = loss_sum_ / static_cast<double>(loss_steps_);
      report.learning_rate = learning_rate_;
      report.gradient_norm = gradient_norm_;
      report.tokens_per_second =
          static_cast<double>(options_.shape.streams * options_.shape.segment) /
          per_step;
      report.seconds_left =
          static_cast<double>(report.total_steps - report.step) * per_step;
    }
    callbacks_.progress(report);
  }
  loss_sum_ = step_seconds_ = 0;
  loss_steps_ = 0;
}

absl::Status TrainingRun::AfterStep() {
  const int64_t step = state_.progress.step;
  const bool last = step == options_.schedule.total_steps;
  const bool evaluate = step % options_.evaluate_every == 0 || last;
  if (evaluate && HasHeldOut()) {
    TXL_ASSIGN_OR_RETURN(const auto held_out, MeasureHeldOut());
    Report(held_out);
  } else if (step % options_.log_every == 0 || last) {
    Report(std::nullopt);
  }
  if (last) TXL_RETURN_IF_ERROR(HandOutLast());
  if (last || step % options_.checkpoint_every == 0) return Checkpoint();
  return absl::OkStatus();
}

TrainResult TrainingRun::Result(bool stopped) const {
  const TrainingProgressState& progress = state_.progress;
  return {stopped,
          progress.step,
          progress.best_held_out,
          progress.best_step,
          progress.seconds,
          weights_};
}

absl::Status TrainingRun::Begin() {
  if (options_.resume) {
    return LoadTrainingState(CheckpointPath(), identity_, state_);
  }
  if (!options_.start) return absl::OkStatus();
  if (!HasHeldOut()) return HandOutLast();
  TXL_ASSIGN_OR_RETURN(const auto held_out, MeasureHeldOut());
  if (held_out) Report(held_out);
  return absl::OkStatus();
}

absl::StatusOr<TrainResult> TrainingRun::Run() {
  TXL_RETURN_IF_ERROR(Begin());
  while (state_.progress.step < options_.schedule.total_steps) {
    if (Stopping()) {
      TXL_RETURN_IF_ERROR(HandOutLast());
      TXL_RETURN_IF_ERROR(Checkpoint());
      return Result(true);
    }
    const double begin = Now();
    TXL_ASSIGN_OR_RETURN(const double loss, Step());
    ++state_.progress.step;
    const double seconds = Now() - begin;
    state_.progress.seconds += seconds;
    step_seconds_ += seconds;
    loss_sum_ += loss;
    ++loss_steps_;
    TXL_RETURN_IF_ERROR(AfterStep());
  }
  return Result(false);
}

}  // namespace

absl::Status CheckTraining(const ModelConfig& config, const Corpus& corpus,
                           const TrainOptions& options) {
  TXL_RETURN_IF_ERROR(CheckOptions(options));
  TXL_RETURN_IF_ERROR(CheckIds(corpus.train, config.vocab_size));
  TXL_RETURN_IF_ERROR(CheckIds(corpus.held_out, config.vocab_size));
  return CheckStreams(static_cast<int64_t>(corpus.train.size()), options.shape);
}

int64_t TrainingBytes(const ModelConfig& config, const TrainOptions& options) {
  double parameters = 0;
  for (const auto& [name, tensor] : CanonicalTensors(config)) {
    if (tensor.presence != Presence::kRequired) continue;
    double count = 1;
    for (const int64_t size : tensor.shape) {
      count *= static_cast<double>(size < 0 ? config.mem_len + 1 : size);
    }
    parameters += count;
  }
  const auto of = [](int64_t n) { return static_cast<double>(n); };
  const double rows = of(options.shape.streams) * of(options.shape.segment);
  const double keys = of(options.memory) + of(options.shape.segment);
  // Scores and probabilities; keys and values; the feed-forward part.
  const double layer = 2 * rows * of(config.n_head) * keys +
                       2 * of(options.shape.streams) * keys *
                           of(config.n_head) * of(config.d_head) +
                       2 * rows * of(config.d_inner);
  const double logits = rows * of(config.bin_size(0));
  // Weights, gradients and two moments.
  const double bytes =
      4 * (4 * parameters + of(config.n_layer) * layer + 2 * logits);
  constexpr double kMost = 0x1p62;
  return static_cast<int64_t>(std::min(bytes, kMost));
}

absl::StatusOr<TrainResult> Train(const ModelConfig& config,
                                  const Corpus& corpus,
                                  const TrainOptions& options,
                                  const TrainCallbacks& callbacks) {
  TXL_RETURN_IF_ERROR(CheckTraining(config, corpus, options));
  return TrainingRun(config, corpus, options, callbacks).Run();
}

}  // namespace txl
