// A step that ends after any of its layers leaves no trace: the rows that it
// wrote lie beyond the committed position and are written again.

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "model/cpu/attention_form.h"
#include "model/cpu/native_arena.h"
#include "model/cpu/native_layers.h"
#include "model/cpu/native_softmax.h"
#include "model/cpu/native_weights.h"
#include "model/cpu/thread_pool.h"
#include "tests/model/torch/golden_case.h"

namespace txl {
namespace {

constexpr int64_t kRows = 8;  // of a step

// The layers of a model on one slot; more of them can be had that stop early.
class Layers {
 public:
  Layers(const GoldenCase& golden, AttentionForm form)
      : config_(golden.config),
        weights_(PackWeights(config_, golden.weights, Formats(form))),
        pool_(2),
        arena_(Ring(), Shape(form), 1),
        softmax_(config_, weights_, pool_) {
    for (int64_t count = 1; count <= config_.n_layer; ++count) {
      configs_.push_back(std::make_unique<ModelConfig>(config_));
      configs_.back()->n_layer = count;
      first_layers_.push_back(std::make_unique<NativeLayers>(
          *configs_.back(), weights_, arena_, kRows, 2));
    }
    if (arena_.ring().zero_start)
      first_layers_.back()->WriteStartRows(0, pool_);
  }

  int64_t count() const { return config_.n_layer; }

  // Feeds `ids` at `position` through the first `layers` layers; the rows that
  // come out, [ids, d].
  std::vector<float> Run(const std::vector<int32_t>& ids, int64_t position,
                         int64_t layers) {
    NativeLayers& run = *first_layers_[layers - 1];
    softmax_.Embed(ids, {}, run.hidden(), run.stride());
    const NativeRun all = {0, position, 0, static_cast<int64_t>(ids.size())};
    run.Run({&all, 1}, pool_);
    std::vector<float> out;
    for (int64_t r = 0; r < all.rows; ++r) {
      const float* row = run.hidden() + r * run.stride();
      out.insert(out.end(), row, row + config_.d_model);
    }
    return out;
  }

 private:
  static NativeFormats Formats(AttentionForm form) {
    NativeFormats formats;
    formats.form = form;
    return formats;
  }
  RingGeometry Ring() const {
    RingGeometry ring;
    ring.mem_len = config_.mem_len;
    ring.spare = kRows;
    ring.window = config_.serving_window();
    ring.zero_start = config_.mem_init == MemoryInit::kZeros;
    return NativeRing(ring);
  }
  NativeShape Shape(AttentionForm form) const {
    NativeShape shape;
    shape.layers = config_.n_layer;
    shape.heads = config_.n_head;
    shape.head_width = config_.d_head;
    shape.model_width = config_.d_model;
    shape.form = form;
    return shape;
  }

  const ModelConfig config_;
  const NativeWeights weights_;
  ThreadPool pool_;
  NativeArena arena_;
  NativeSoftmax softmax_;
  std::vector<std::unique_ptr<ModelConfig>> configs_;
  std::vector<std::unique_ptr<NativeLayers>> first_layers_;
};

class NativeFailedStepTest : public testing::TestWithParam<AttentionForm> {};

// kimi-char sees W = M + 1 keys: the oldest row that it needs is the last one
// before the spare rows.
TEST_P(NativeFailedStepTest, AtAnyLayerChangesNoBitOfWhatFollows) {
  for (const char* name : {"kimi-char", "hf-adaptive", "kimi-prelnorm"}) {
    const GoldenCase golden = LoadGoldenCase(name, at::kFloat);
    Layers plain(golden, GetParam());
    Layers failing(golden, GetParam());
    for (int64_t t = 0; t + kRows <= static_cast<int64_t>(golden.tokens.size());
         t += 3) {
      const std::vector<int32_t> ids(golden.tokens.begin() + t,
                                     golden.tokens.begin() + t + 3);
      // Other tokens, as many as the spare rows hold, through some layers.
      std::vector<int32_t> lost(kRows);
      std::iota(lost.begin(), lost.end(), static_cast<int32_t>(t % 40));
      failing.Run(lost, t, 1 + t % failing.count());
      EXPECT_EQ(failing.Run(ids, t, failing.count()),
                plain.Run(ids, t, plain.count()))
          << name << " at " << t;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Forms, NativeFailedStepTest,
                         testing::Values(AttentionForm::kProjected,
                                         AttentionForm::kAbsorbed),
                         [](const testing::TestParamInfo<AttentionForm>& info) {
                           return std::string(FormName(info.param));
                         });

}  // namespace
}  // namespace txl
