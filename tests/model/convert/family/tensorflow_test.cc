// kimiyoung's TensorFlow model, dressed from golden weights in every form of
// its embedding and softmax.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/model/convert/container/tensor_bundle_writer.h"
#include "tests/model/convert/family/tensorflow_weights.h"

namespace txl {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

using Variables = std::map<std::string, Values>;

constexpr char kEmbed[] = "transformer/adaptive_embed/";
constexpr char kSoftmax[] = "transformer/adaptive_softmax/";

std::string Cutoff(const char* scope, int64_t bin, const char* name) {
  return absl::StrCat(scope, "cutoff_", bin, "/", name);
}

// Bins of the softmax; `tied`: whose projection is the embedding's.
void AddSoftmaxBins(const GoldenWeights& golden, const std::vector<bool>& tied,
                    Variables& out) {
  for (size_t b = 0; b < tied.size(); ++b) {
    const std::string head = absl::StrCat("head.", b);
    out[Cutoff(kSoftmax, b, "b")] = golden.at(head + ".b");
    if (tied[b] || !golden.tensors.contains(head + ".proj")) continue;
    out[Cutoff(kSoftmax, b, "proj")] =
        TransposedValues(golden.at(head + ".proj"));
  }
  out[Cutoff(kSoftmax, 0, "cluster_W")] = golden.at("head.cluster.w");
  out[Cutoff(kSoftmax, 0, "cluster_b")] = golden.at("head.cluster.b");
}

// A table per bin (div_val 2), as the released WikiText-103 model.
Variables TablePerBin(const GoldenWeights& golden) {
  Variables out = TensorFlowTrunk(golden, true, ContribNorms(golden));
  for (int64_t b = 0; b < 4; ++b) {
    const std::string emb = absl::StrCat("emb.", b);
    out[Cutoff(kEmbed, b, "lookup_table")] = golden.at(emb + ".w");
    if (!golden.tensors.contains(emb + ".proj")) continue;
    out[Cutoff(kEmbed, b, "proj_W")] =
        TransposedValues(golden.at(emb + ".proj"));
  }
  AddSoftmaxBins(golden, golden.config["tie_projs"], out);
  return out;
}

// One table (div_val 1), with clusters.
Variables OneTable(const GoldenWeights& golden) {
  Variables out = TensorFlowTrunk(golden, false, ContribNorms(golden));
  out[absl::StrCat(kEmbed, "lookup_table")] =
      BelowEachOther({golden.at("emb.0.w"), golden.at("emb.1.w"),
                      golden.at("emb.2.w"), golden.at("emb.3.w")});
  out[absl::StrCat(kEmbed, "proj_W")] =
      TransposedValues(golden.at("emb.0.proj"));
  AddSoftmaxBins(golden, golden.config["tie_projs"], out);
  return out;
}

// One table and a softmax without clusters, as the character models.
Variables NoClusters(const GoldenWeights& golden) {
  Variables out = TensorFlowTrunk(golden, false, ContribNorms(golden));
  out[absl::StrCat(kEmbed, "lookup_table")] = golden.at("emb.0.w");
  out[absl::StrCat(kSoftmax, "bias")] = golden.at("head.0.b");
  if (golden.tensors.contains("emb.0.proj")) {
    out[absl::StrCat(kEmbed, "proj_W")] =
        TransposedValues(golden.at("emb.0.proj"));
  }
  return out;
}

void ExpectGolden(const Variables& variables, const GoldenWeights& golden) {
  const NativeCheckpoint checkpoint = TensorFlowCheckpoint(variables);
  const auto plan = PlanOf("tensorflow", checkpoint, golden.config);
  ASSERT_TRUE(plan.ok()) << plan.status();
  ExpectWeights(*plan, golden);
  ExpectConfig(*plan, golden);
}

TEST(TensorFlowTest, ATablePerBinGivesTheGoldenWeightsAndConfig) {
  const GoldenWeights golden = LoadGolden("hf-adaptive");
  ExpectGolden(TablePerBin(golden), golden);
}

TEST(TensorFlowTest, OneTableIsCutWhereTheBiasesEnd) {
  ExpectGolden(OneTable(LoadGolden("kimi-adaptive-div1")),
               LoadGolden("kimi-adaptive-div1"));
}

TEST(TensorFlowTest, ASoftmaxWithoutClustersHasOneBias) {
  GoldenWeights golden = LoadGolden("kimi-char");
  // The spec's word on a projection that there is not.
  golden.config["emb_proj_bin0"] = "absent";
  ExpectGolden(NoClusters(golden), golden);
}

TEST(TensorFlowTest, WithoutClustersAProjectionIsSharedAlways) {
  GoldenWeights golden = LoadGolden("kimi-char-embproj");
  golden.config["tie_projs"] = json::array({true});
  golden.tensors["head.0.proj"] = golden.at("emb.0.proj");
  ExpectGolden(NoClusters(golden), golden);
}

TEST(TensorFlowTest, ABinAsWideAsTheModelMayGoWithoutProjection) {
  GoldenWeights golden = LoadGolden("hf-adaptive");
  golden.config["emb_proj_bin0"] = "absent";
  golden.config["tie_projs"] = {false, false, false, false};
  golden.tensors.erase("emb.0.proj");
  golden.tensors.erase("head.0.proj");
  for (const char* bin : {"1", "2", "3"}) {
    Values& own = golden.tensors[absl::StrCat("head.", bin, ".proj")];
    for (float& value : own.data) value += 1;
  }
  ExpectGolden(TablePerBin(golden), golden);
}

TEST(TensorFlowTest, TheStateOfTheTrainingIsLeftOut) {
  const GoldenWeights golden = LoadGolden("hf-adaptive");
  Variables variables = TablePerBin(golden);
  AddTrainingState(variables);
  ExpectGolden(variables, golden);
}

TEST(TensorFlowTest, ACheckpointInFilesIsTheSame) {
  const GoldenWeights golden = LoadGolden("hf-adaptive");
  Variables variables = TablePerBin(golden);
  AddTrainingState(variables);
  std::map<std::string, BundleTensor> bundle;
  for (const auto& [name, values] : variables) {
    const char* begin = reinterpret_cast<const char*>(values.data.data());
    bundle[name] = {DType::kF32,
                    values.shape,
                    {begin, begin + values.data.size() * sizeof(float)}};
  }
  const std::string prefix = testing::TempDir() + "/model.ckpt-7";
  ASSERT_TRUE(WriteTensorBundle(prefix, bundle).ok());
  const auto checkpoint = OpenCheckpoint(prefix);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  const auto plan = PlanOf("tensorflow", *checkpoint, golden.config);
  ASSERT_TRUE(plan.ok()) << plan.status();
  ExpectWeights(*plan, golden);
}

TEST(TensorFlowTest, SemanticsAreThoseOfTheCode) {
  const NativeCheckpoint checkpoint =
      TensorFlowCheckpoint(TablePerBin(LoadGolden("hf-adaptive")));
  const auto plan = PlanOf("tensorflow", checkpoint, {{"mem_len", 30}});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->config.ln_eps, 1e-12);
  EXPECT_EQ(plan->config.norm, NormPlacement::kPost);
  EXPECT_EQ(plan->config.mem_init, MemoryInit::kZeros);
  EXPECT_TRUE(plan->config.scale_embedding);
  // same_length: the memory and the token itself.
  EXPECT_EQ(plan->config.window, 31);
  EXPECT_EQ(plan->fields.at("window").origin, FieldOrigin::kFamily);
  EXPECT_EQ(plan->fields.at("cutoffs").origin, FieldOrigin::kWeights);
  const auto unlimited =
      PlanOf("tensorflow", checkpoint, {{"window", nullptr}});
  ASSERT_TRUE(unlimited.ok()) << unlimited.status();
  EXPECT_EQ(unlimited->config.window, std::nullopt);
  EXPECT_THAT(unlimited->oddities, ElementsAre(HasSubstr("mem_len")));
}

TEST(TensorFlowTest, BiasesThatDoNotCoverTheTableAreRefused) {
  const GoldenWeights golden = LoadGolden("kimi-adaptive-div1");
  for (const int64_t rows : {30, 32}) {  // the last bin has 31
    Variables variables = OneTable(golden);
    variables[Cutoff(kSoftmax, 3, "b")] = {{rows}, std::vector<float>(rows)};
    const auto plan = PlanOf("tensorflow", TensorFlowCheckpoint(variables));
    EXPECT_THAT(plan.status().message(), HasSubstr("lookup_table"));
  }
}

TEST(TensorFlowTest, WidthsThatNoDivisorGivesAreRefused) {
  Variables variables = TablePerBin(LoadGolden("hf-adaptive"));
  const std::string table = Cutoff(kEmbed, 2, "lookup_table");
  variables[table] = ColumnsOf(variables[table], 0, 7);
  const std::string projection = Cutoff(kEmbed, 2, "proj_W");
  variables[projection] = RowsOf(variables[projection], 0, 7);
  const auto plan = PlanOf("tensorflow", TensorFlowCheckpoint(variables));
  EXPECT_THAT(plan.status().message(), HasSubstr("div_val"));
}

TEST(TensorFlowTest, AVariableOfTheModelThatIsUnknownIsRefused) {
  Variables variables = TablePerBin(LoadGolden("hf-adaptive"));
  variables["transformer/layer_0/rel_attn/qkv/bias"] = {
      {108}, std::vector<float>(108)};
  const auto plan = PlanOf("tensorflow", TensorFlowCheckpoint(variables));
  EXPECT_THAT(plan.status().message(), HasSubstr("rel_attn/qkv/bias"));
}

TEST(TensorFlowTest, EachVariableIsChecked) {
  // A missing projection reads as none or as tied; the canonical list, which a
  // conversion is compared with, decides then.
  std::set<std::string> may_be_absent = {Cutoff(kSoftmax, 0, "proj")};
  for (int64_t b = 0; b < 4; ++b) {
    may_be_absent.insert(Cutoff(kEmbed, b, "proj_W"));
  }
  const GoldenWeights bins = LoadGolden("hf-adaptive");
  ExpectEachTensorIsChecked(
      "tensorflow", TensorFlowCheckpoint(TablePerBin(bins)), may_be_absent);
  const GoldenWeights one = LoadGolden("kimi-adaptive-div1");
  std::set<std::string> projections = {absl::StrCat(kEmbed, "proj_W")};
  for (int64_t b = 0; b < 4; ++b) {
    projections.insert(Cutoff(kSoftmax, b, "proj"));
  }
  ExpectEachTensorIsChecked("tensorflow", TensorFlowCheckpoint(OneTable(one)),
                            projections);
}

}  // namespace
}  // namespace txl
