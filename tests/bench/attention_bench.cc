#include "tests/bench/attention_bench.h"

#include <benchmark/benchmark.h>

#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "model/base/number_format.h"
#include "model/checkpoint/weights.h"
#include "model/cpu/attention_form.h"
#include "model/cpu/native_arena.h"
#include "model/cpu/native_attention.h"
#include "model/cpu/native_weights.h"
#include "model/cpu/thread_pool.h"
#include "tests/bench/kernel_counters.h"
#include "tests/bench/step_costs.h"

namespace txl {
namespace {

// One layer of the WikiText-103-large shape; what attention does not look at
// is small.
ModelConfig OneLayer(int64_t mem_len) {
  ModelConfig config;
  config.vocab_size = 64;
  config.n_layer = 1;
  config.n_head = 16;
  config.d_head = 64;
  config.d_model = 1024;
  config.d_embed = 1024;
  config.d_inner = 64;
  config.clamp_len = 1000;
  config.mem_len = mem_len;
  return config;
}

struct AttentionCase {
  StepWork work;
  int64_t mem_len = 0;
};

// Memories of enough layers that no cache holds them; the weights of one.
class AttentionBench {
 public:
  AttentionBench(const AttentionCase& what, int threads)
      : config_(OneLayer(what.mem_len)),
        costs_(DecodeCosts(config_, what.work)),
        pool_(threads),
        weights_(PackWeights(config_, RandomWeights(config_, 0.02, 1, {}),
                             Formats(what))),
        arena_(Ring(), Shape(what), what.work.sessions),
        attention_(arena_, weights_.distances, threads) {
    const int64_t width = config_.n_head * config_.d_head;
    queries_ = AlignedBuffer<float>(what.work.sessions * width);
    out_ = AlignedBuffer<float>(what.work.sessions * width);
    for (int64_t slot = 0; slot < what.work.sessions; ++slot) {
      runs_.push_back({static_cast<int32_t>(slot), config_.mem_len, slot, 1});
    }
    FillRings();
  }

  void Step() {
    const int64_t width = config_.n_head * config_.d_head;
    attention_.Run(weights_.layers[0], layer_++ % arena_.shape().layers, runs_,
                   {queries_.data(), width, out_.data(), width}, pool_);
  }

  // Memories and the table of positional keys.
  PhaseCost Work() const {
    return {costs_.attention.bytes + costs_.distances.bytes,
            costs_.attention.flops + costs_.distances.flops};
  }

 private:
  static NativeFormats Formats(const AttentionCase& what) {
    NativeFormats formats = what.work.formats;
    formats.form = what.work.form;
    return formats;
  }

  RingGeometry Ring() const {
    RingGeometry ring;
    ring.mem_len = config_.mem_len;
    ring.spare = 8;
    ring.window = config_.serving_window();
    return NativeRing(ring);
  }

  NativeShape Shape(const AttentionCase& what) const {
    NativeShape shape;
    shape.layers =
        1 + static_cast<int64_t>(kStreamedBytes / costs_.attention.bytes);
    shape.heads = config_.n_head;
    shape.head_width = config_.d_head;
    shape.model_width = config_.d_model;
    shape.memory = what.work.formats.memory;
    shape.derived = what.work.formats.derived;
    shape.form = what.work.form;
    return shape;
  }

  void FillRings() {
    std::minstd_rand random(1);
    std::uniform_real_distribution<float> number(-1, 1);
    // All heads together are as wide as the model.
    std::vector<float> row(config_.d_model);
    for (float& x : row) x = number(random);
    for (int64_t i = 0; i < queries_.size(); ++i) queries_[i] = number(random);
    const NativeShape& shape = arena_.shape();
    for (int64_t slot = 0; slot < arena_.slots(); ++slot) {
      for (int64_t layer = 0; layer < shape.layers; ++layer) {
        for (int64_t t = 0; t <= config_.mem_len; ++t) {
          const int32_t s = static_cast<int32_t>(slot);
          NarrowRow(row.data(), config_.d_model, shape.memory,
                    arena_.Row(s, layer, t));
          if (shape.form == AttentionForm::kAbsorbed) continue;
          arena_.WriteDerived(s, layer, t, row.data(), row.data());
        }
      }
    }
  }

  const ModelConfig config_;
  const StepCosts costs_;
  ThreadPool pool_;
  const NativeWeights weights_;
  NativeArena arena_;
  NativeAttention attention_;
  std::vector<NativeRun> runs_;
  AlignedBuffer<float> queries_, out_;
  int64_t layer_ = 0;
};

struct FormInFormat {
  const char* name;
  AttentionForm form;
  NumberFormat format;  // of what is read
};

void BenchAttention(benchmark::State& state, const FormInFormat& form,
                    const MachinePeaks& peaks) {
  AttentionCase what;
  what.mem_len = state.range(0);
  what.work.sessions = state.range(1);
  what.work.form = form.form;
  what.work.formats.memory =
      form.form == AttentionForm::kAbsorbed ? form.format : NumberFormat::kF32;
  what.work.formats.derived = form.format;
  AttentionBench bench(what, peaks.threads);
  RunCounted(state, bench.Work(), peaks, [&] { bench.Step(); });
}

}  // namespace

void RegisterAttention(const MachinePeaks& peaks) {
  const FormInFormat forms[] = {
      {"projected/f32", AttentionForm::kProjected, NumberFormat::kF32},
      {"projected/f16", AttentionForm::kProjected, NumberFormat::kF16},
      {"absorbed/f32", AttentionForm::kAbsorbed, NumberFormat::kF32},
      {"absorbed/f16", AttentionForm::kAbsorbed, NumberFormat::kF16}};
  for (const FormInFormat& form : forms) {
    benchmark::RegisterBenchmark(absl::StrCat("Attention/", form.name).c_str(),
                                 [form, &peaks](benchmark::State& state) {
                                   BenchAttention(state, form, peaks);
                                 })
        ->ArgNames({"memory", "sessions"})
        ->ArgsProduct({{256, 800, 1600, 3800}, {1, 8}})
        ->UseRealTime();
  }
}

}  // namespace txl
