// The released TensorFlow models at their full size: names and shapes without
// numbers. The parameter counts are those that the shapes of the code give.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "tests/model/convert/family/golden_weights.h"

namespace txl {
namespace {

// Zeros that take no memory.
class Zeros : public ByteSource {
 public:
  explicit Zeros(uint64_t size) : size_(size) {}
  uint64_t size() const override { return size_; }
  const std::string& name() const override { return name_; }
  absl::Status Read(uint64_t, absl::Span<uint8_t> out) const override {
    std::fill(out.begin(), out.end(), 0);
    return absl::OkStatus();
  }

 private:
  const uint64_t size_;
  const std::string name_ = "zeros";
};

class Shapes {
 public:
  void Add(const std::string& name, std::vector<int64_t> shape) {
    uint64_t bytes = 4;
    for (const int64_t size : shape) bytes *= size;
    checkpoint_.tensors["transformer/" + name] = *RowMajor(
        DType::kF32, std::move(shape), std::make_shared<Zeros>(bytes));
  }
  const NativeCheckpoint& checkpoint() const { return checkpoint_; }

 private:
  NativeCheckpoint checkpoint_;
};

struct Trunk {
  int64_t layers, d, heads, d_head, inner;
  bool untie_r;
};

void AddTrunk(const Trunk& t, Shapes& out) {
  const int64_t width = t.heads * t.d_head;
  for (int64_t l = 0; l < t.layers; ++l) {
    const std::string layer = absl::StrCat("layer_", l, "/");
    out.Add(layer + "rel_attn/qkv/kernel", {t.d, 3 * width});
    out.Add(layer + "rel_attn/r/kernel", {t.d, width});
    out.Add(layer + "rel_attn/o/kernel", {width, t.d});
    out.Add(layer + "ff/layer_1/kernel", {t.d, t.inner});
    out.Add(layer + "ff/layer_1/bias", {t.inner});
    out.Add(layer + "ff/layer_2/kernel", {t.inner, t.d});
    out.Add(layer + "ff/layer_2/bias", {t.d});
    for (const char* scope : {"rel_attn", "ff"}) {
      out.Add(layer + scope + "/LayerNorm/gamma", {t.d});
      out.Add(layer + scope + "/LayerNorm/beta", {t.d});
    }
  }
  std::vector<int64_t> bias = {t.heads, t.d_head};
  if (t.untie_r) bias.insert(bias.begin(), t.layers);
  out.Add("r_w_bias", bias);
  out.Add("r_r_bias", bias);
}

// div_val 4; bins whose output has its own projection are in `untied`.
void AddBins(const std::vector<int64_t>& ends, int64_t d, bool project_first,
             const std::set<size_t>& untied, Shapes& out) {
  int64_t begin = 0, width = d;
  for (size_t b = 0; b < ends.size(); ++b) {
    const std::string bin = absl::StrCat("cutoff_", b, "/");
    const bool projected = b > 0 || project_first;
    out.Add("adaptive_embed/" + bin + "lookup_table", {ends[b] - begin, width});
    if (projected) out.Add("adaptive_embed/" + bin + "proj_W", {width, d});
    out.Add("adaptive_softmax/" + bin + "b", {ends[b] - begin});
    if (untied.contains(b)) {
      out.Add("adaptive_softmax/" + bin + "proj", {width, d});
    }
    begin = ends[b];
    width /= 4;
  }
  const int64_t clusters = static_cast<int64_t>(ends.size()) - 1;
  out.Add("adaptive_softmax/cutoff_0/cluster_W", {clusters, d});
  out.Add("adaptive_softmax/cutoff_0/cluster_b", {clusters});
}

// Numbers of the file that the plan uses, each once.
int64_t DistinctNumbers(const ConversionPlan& plan) {
  std::set<std::tuple<const void*, int64_t, std::vector<int64_t>>> views;
  int64_t numbers = 0;
  for (const auto& [name, tensor] : plan.tensors) {
    for (const StoredTensor& piece : tensor.pieces) {
      const bool is_new =
          views.insert({piece.storage.get(), piece.offset, piece.shape}).second;
      if (is_new) numbers += piece.numel();
    }
  }
  return numbers;
}

TEST(ReleasedTensorFlowTest, WikiText103) {
  Shapes shapes;
  AddTrunk({18, 1024, 16, 64, 4096, true}, shapes);
  AddBins({20000, 40000, 200000, 267735}, 1024, true, {0}, shapes);
  const auto plan = PlanOf("tensorflow", shapes.checkpoint());
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(DistinctNumbers(*plan), 285205322);
  EXPECT_THAT(plan->config.cutoffs, testing::ElementsAre(20000, 40000, 200000));
  EXPECT_EQ(plan->config.div_val, 4);
  EXPECT_THAT(plan->config.tie_projs,
              testing::ElementsAre(false, true, true, true));
  EXPECT_EQ(plan->config.mem_len, 1600);
  EXPECT_EQ(plan->config.clamp_len, 1000);
  EXPECT_EQ(plan->config.window, 1601);
}

TEST(ReleasedTensorFlowTest, OneBillionWords) {
  Shapes shapes;
  AddTrunk({24, 1280, 16, 80, 8192, true}, shapes);
  AddBins({60000, 100000, 640000, 793471}, 1280, false, {1, 2, 3}, shapes);
  const auto plan = PlanOf("tensorflow", shapes.checkpoint());
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(DistinctNumbers(*plan), 838078062);
  EXPECT_EQ(plan->config.emb_proj_bin0, false);
  EXPECT_THAT(plan->config.tie_projs,
              testing::ElementsAre(false, false, false, false));
  EXPECT_EQ(plan->config.mem_len, 128);
  EXPECT_EQ(plan->config.clamp_len, std::nullopt);
  EXPECT_EQ(plan->config.window, 129);
}

// One table, u and v for all layers, no clusters.
ConversionPlan PlanOfCharacters(int64_t vocabulary) {
  Shapes shapes;
  AddTrunk({24, 1024, 8, 128, 3072, false}, shapes);
  shapes.Add("adaptive_embed/lookup_table", {vocabulary, 1024});
  shapes.Add("adaptive_softmax/bias", {vocabulary});
  auto plan = PlanOf("tensorflow", shapes.checkpoint());
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan.ok() ? *std::move(plan) : ConversionPlan{};
}

TEST(ReleasedTensorFlowTest, Enwik8AndText8) {
  const ConversionPlan enwik8 = PlanOfCharacters(204);
  EXPECT_EQ(DistinctNumbers(enwik8), 277231820);
  const ConversionPlan text8 = PlanOfCharacters(27);
  EXPECT_EQ(DistinctNumbers(text8), 277050395);
  for (const ConversionPlan* plan : {&enwik8, &text8}) {
    EXPECT_EQ(plan->config.mem_len, 3800);
    EXPECT_EQ(plan->config.clamp_len, 1000);
    EXPECT_EQ(plan->config.window, 3801);
    EXPECT_THAT(plan->config.cutoffs, testing::IsEmpty());
  }
}

}  // namespace
}  // namespace txl
