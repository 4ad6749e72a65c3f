// kimiyoung's state dicts and pickled modules: which number of the file becomes
// which of the model, what its attributes say, and what is refused.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "model/convert/family/family.h"
#include "tests/model/convert/family/kpt_tensors.h"

namespace txl {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<float> Slice(const StoredTensor& tensor, size_t begin, size_t end) {
  const std::vector<float> all = FloatsOf(tensor);
  return {all.begin() + begin, all.begin() + end};
}

absl::StatusOr<ConversionPlan> PlanOf(const NativeCheckpoint& checkpoint,
                                      const json& spec = json()) {
  return PlanKimiyoung({checkpoint, json(), spec});
}

std::string ErrorOf(const NativeCheckpoint& checkpoint,
                    const json& spec = json()) {
  const auto plan = PlanOf(checkpoint, spec);
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(plan.status().message());
}

// Four bins of one table, projected.
KptShape OneTable() {
  KptShape shape;
  shape.vocab = 10;
  shape.d_embed = 2;
  shape.cutoffs = {3, 5, 6};
  shape.tie_projs = {false, true, false, true};
  return shape;
}

// A table per bin.
KptShape ThreeTables() {
  KptShape shape;
  shape.vocab = 9;
  shape.d_embed = 6;
  shape.cutoffs = {4, 6};
  shape.div_val = 2;
  shape.tie_projs = {false, true, true};
  return shape;
}

TEST(KimiyoungTest, SizesComeFromTheWeights) {
  const auto plan = PlanOf(StateDict(KptTensors({})));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->family, "kimiyoung");
  const ModelConfig& config = plan->config;
  EXPECT_EQ(config.vocab_size, 7);
  EXPECT_EQ(config.n_layer, 2);
  EXPECT_EQ(config.n_head, 2);
  EXPECT_EQ(config.d_head, 3);
  EXPECT_EQ(config.d_model, 4);
  EXPECT_EQ(config.d_embed, 4);
  EXPECT_EQ(config.d_inner, 5);
  EXPECT_TRUE(config.tie_weight);
  EXPECT_EQ(config.emb_proj_bin0, false);
  EXPECT_EQ(plan->fields.at("n_head").origin, FieldOrigin::kWeights);
}

TEST(KimiyoungTest, QueriesKeysAndValuesAreTheThirdsOfOneMatrix) {
  const TensorMap tensors = KptTensors({});
  const auto plan = PlanOf(StateDict(tensors));
  ASSERT_TRUE(plan.ok()) << plan.status();
  const StoredTensor& qkv = tensors.at("layers.1.dec_attn.qkv_net.weight");
  EXPECT_EQ(ValuesOf(*plan, "layer.1.wq"), Slice(qkv, 0, 24));
  EXPECT_EQ(ValuesOf(*plan, "layer.1.wk"), Slice(qkv, 24, 48));
  EXPECT_EQ(ValuesOf(*plan, "layer.1.wv"), Slice(qkv, 48, 72));
}

TEST(KimiyoungTest, EveryOtherTensorOfALayerKeepsItsNumbers) {
  const TensorMap tensors = KptTensors({});
  const auto plan = PlanOf(StateDict(tensors));
  ASSERT_TRUE(plan.ok()) << plan.status();
  const std::map<std::string, std::string> names = {
      {"wr", "dec_attn.r_net.weight"},
      {"wo", "dec_attn.o_net.weight"},
      {"ln1.g", "dec_attn.layer_norm.weight"},
      {"ln1.b", "dec_attn.layer_norm.bias"},
      {"ff.w1", "pos_ff.CoreNet.0.weight"},
      {"ff.b1", "pos_ff.CoreNet.0.bias"},
      {"ff.w2", "pos_ff.CoreNet.3.weight"},
      {"ff.b2", "pos_ff.CoreNet.3.bias"},
      {"ln2.g", "pos_ff.layer_norm.weight"},
      {"ln2.b", "pos_ff.layer_norm.bias"}};
  for (const auto& [canonical, native] : names) {
    EXPECT_EQ(ValuesOf(*plan, "layer.1." + canonical),
              FloatsOf(tensors.at("layers.1." + native)))
        << canonical;
  }
}

TEST(KimiyoungTest, TheBiasesOfAllLayersAreRepeated) {
  const TensorMap tensors = KptTensors({});
  const auto plan = PlanOf(StateDict(tensors));
  ASSERT_TRUE(plan.ok()) << plan.status();
  for (const char* layer : {"layer.0.", "layer.1."}) {
    EXPECT_EQ(ValuesOf(*plan, std::string(layer) + "u"),
              FloatsOf(tensors.at("r_w_bias")));
    EXPECT_EQ(ValuesOf(*plan, std::string(layer) + "v"),
              FloatsOf(tensors.at("r_r_bias")));
  }
  EXPECT_EQ(ValuesOf(*plan, "pos.inv_freq"),
            FloatsOf(tensors.at("pos_emb.inv_freq")));
}

TEST(KimiyoungTest, OneTableIsCutAtTheCutoffs) {
  const TensorMap tensors = KptTensors(OneTable());
  const auto plan = PlanOf(StateDict(tensors), json{{"cutoffs", {3, 5, 6}}});
  ASSERT_TRUE(plan.ok()) << plan.status();
  const StoredTensor& table = tensors.at("word_emb.emb_layers.0.weight");
  EXPECT_EQ(ValuesOf(*plan, "emb.0.w"), Slice(table, 0, 6));
  EXPECT_EQ(ValuesOf(*plan, "emb.1.w"), Slice(table, 6, 10));
  EXPECT_EQ(ValuesOf(*plan, "emb.3.w"), Slice(table, 12, 20));
  const StoredTensor& bias = tensors.at("crit.out_layers.0.bias");
  EXPECT_EQ(ValuesOf(*plan, "head.2.b"), Slice(bias, 5, 6));
  EXPECT_FALSE(plan->tensors.contains("head.0.w"));
  EXPECT_EQ(plan->config.div_val, 1);
}

TEST(KimiyoungTest, ProjectionsAreTiedWhereTheyShareAStorage) {
  const TensorMap tensors = KptTensors(OneTable());
  const auto plan = PlanOf(StateDict(tensors), json{{"cutoffs", {3, 5, 6}}});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->config.tie_projs, OneTable().tie_projs);
  EXPECT_EQ(plan->config.emb_proj_bin0, true);
  EXPECT_EQ(ValuesOf(*plan, "emb.3.proj"),
            FloatsOf(tensors.at("word_emb.emb_projs.0")));
  EXPECT_EQ(ValuesOf(*plan, "head.2.proj"),
            FloatsOf(tensors.at("crit.out_projs.2")));
  EXPECT_FALSE(plan->tensors.contains("head.1.proj"));
}

TEST(KimiyoungTest, ClustersAreTurnedIntoForwardOrder) {
  const TensorMap tensors = KptTensors(OneTable());
  const auto plan = PlanOf(StateDict(tensors), json{{"cutoffs", {3, 5, 6}}});
  ASSERT_TRUE(plan.ok()) << plan.status();
  const std::vector<float> w = FloatsOf(tensors.at("crit.cluster_weight"));
  EXPECT_THAT(ValuesOf(*plan, "head.cluster.w"),
              ElementsAre(w[4], w[5], w[2], w[3], w[0], w[1]));
  const std::vector<float> b = FloatsOf(tensors.at("crit.cluster_bias"));
  EXPECT_THAT(ValuesOf(*plan, "head.cluster.b"), ElementsAre(b[2], b[1], b[0]));
}

TEST(KimiyoungTest, ATablePerBinShowsCutoffsAndDivisor) {
  const TensorMap tensors = KptTensors(ThreeTables());
  const auto plan = PlanOf(StateDict(tensors));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->config.cutoffs, ElementsAre(4, 6));
  EXPECT_EQ(plan->config.div_val, 2);
  EXPECT_EQ(plan->config.d_embed, 6);
  EXPECT_EQ(plan->config.vocab_size, 9);
  EXPECT_EQ(plan->config.tie_projs, ThreeTables().tie_projs);
  EXPECT_EQ(ValuesOf(*plan, "emb.2.w"),
            FloatsOf(tensors.at("word_emb.emb_layers.2.weight")));
  EXPECT_EQ(ValuesOf(*plan, "emb.1.proj"),
            FloatsOf(tensors.at("word_emb.emb_projs.1")));
}

TEST(KimiyoungTest, ADivisorThatFitsAsWellMayBeGiven) {
  // 2 / 2 = 1 and 2 / 2 / 2 = 0, so only two bins; 3 / 2 = 3 / 3 = 1.
  KptShape shape;
  shape.d_embed = 3;
  shape.cutoffs = {4};
  shape.div_val = 2;
  const auto plan = PlanOf(StateDict(KptTensors(shape)), json{{"div_val", 3}});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->config.div_val, 3);
}

TEST(KimiyoungTest, ABareStateDictGetsDefaultsAndANote) {
  const auto plan = PlanOf(StateDict(KptTensors({})));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->config.norm, NormPlacement::kPost);
  EXPECT_EQ(plan->config.mem_len, 512);
  EXPECT_FALSE(plan->config.window.has_value());
  EXPECT_FALSE(plan->config.clamp_len.has_value());
  EXPECT_EQ(plan->config.mem_init, MemoryInit::kEmpty);
  EXPECT_TRUE(plan->config.scale_embedding);
  EXPECT_EQ(plan->fields.at("norm").origin, FieldOrigin::kFamily);
  EXPECT_THAT(plan->oddities,
              ElementsAre(HasSubstr("the file has no configuration")));
}

// A module pickled whole, with the attributes that matter.
NativeCheckpoint Module(json attributes) {
  NativeCheckpoint checkpoint = StateDict(KptTensors({}));
  checkpoint.data = std::move(attributes);
  checkpoint.data[kClassKey] = "mem_transformer.MemTransformerLM";
  checkpoint.data["_modules"]["word_emb"] = {{"cutoffs", {7}}, {"div_val", 1}};
  checkpoint
      .data["_modules"]["layers"]["_modules"]["0"]["_modules"]["dec_attn"] = {
      {"pre_lnorm", true}, {"_modules", {{"layer_norm", {{"eps", 2e-5}}}}}};
  return checkpoint;
}

TEST(KimiyoungTest, AModulesAttributesAreItsChoices) {
  const auto plan = PlanOf(Module({{"n_layer", 2},
                                   {"mem_len", 9},
                                   {"same_length", true},
                                   {"clamp_len", 5},
                                   {"attn_type", 0},
                                   {"ext_len", 0}}));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->config.norm, NormPlacement::kPre);
  EXPECT_EQ(plan->config.ln_eps, 2e-5);
  EXPECT_EQ(plan->config.mem_len, 9);
  EXPECT_EQ(plan->config.window, 9);
  EXPECT_EQ(plan->config.clamp_len, 5);
  EXPECT_EQ(plan->fields.at("window").origin, FieldOrigin::kCheckpoint);
}

TEST(KimiyoungTest, ASpecReplacesAttributesFieldByField) {
  const json attributes = {
      {"mem_len", 9}, {"same_length", true}, {"clamp_len", 5}};
  const auto plan = PlanOf(Module(attributes), json{{"mem_len", 20}});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->config.mem_len, 20);
  EXPECT_EQ(plan->config.window, 20);
  EXPECT_EQ(plan->config.clamp_len, 5);
}

TEST(KimiyoungTest, AttributesThatContradictTheWeightsAreNamed) {
  EXPECT_THAT(ErrorOf(Module({{"n_head", 3}, {"mem_len", 9}})),
              HasSubstr("field n_head"));
}

TEST(KimiyoungTest, AbsolutePositionsAndAnExtendedContextAreRefused) {
  EXPECT_THAT(ErrorOf(Module({{"mem_len", 9}, {"attn_type", 2}})),
              HasSubstr("attn_type 2"));
  const NativeCheckpoint extended = Module({{"mem_len", 9}, {"ext_len", 4}});
  EXPECT_THAT(ErrorOf(extended), HasSubstr("ext_len 4"));
  EXPECT_TRUE(PlanOf(extended, json{{"ext_len", 0}}).ok());
}

TEST(KimiyoungTest, AWindowOfNoKeyIsRefused) {
  EXPECT_THAT(ErrorOf(Module({{"mem_len", 0}, {"same_length", true}})),
              HasSubstr("same_length with mem_len 0"));
}

TEST(KimiyoungTest, LearnedTablesAreTurnedIntoDistances) {
  TensorMap tensors = KptTensors({});
  for (const char* name :
       {"r_r_bias", "pos_emb.inv_freq", "layers.0.dec_attn.r_net.weight",
        "layers.1.dec_attn.r_net.weight"}) {
    tensors.erase(name);
  }
  tensors["r_emb"] = CountingTensor({2, 3, 2, 3});
  tensors["r_bias"] = CountingTensor({2, 3, 2});
  tensors["r_w_bias"] = CountingTensor({2, 2, 3});
  const auto plan = PlanOf(StateDict(tensors));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->config.pos, PositionKind::kTable);
  // Layer 1 holds 6..11; its last row is distance 0.
  EXPECT_THAT(ValuesOf(*plan, "layer.1.rel_s"),
              ElementsAre(10, 11, 8, 9, 6, 7));
  EXPECT_THAT(ValuesOf(*plan, "layer.0.rel_t"),
              ElementsAre(12, 13, 14, 15, 16, 17, 6, 7, 8, 9, 10, 11, 0, 1, 2,
                          3, 4, 5));
  EXPECT_THAT(ValuesOf(*plan, "layer.1.u"), ElementsAre(6, 7, 8, 9, 10, 11));
}

TEST(KimiyoungTest, SeparateOutputWeightsStayApart) {
  TensorMap tensors = KptTensors({});
  tensors["crit.out_layers.0.weight"] = CountingTensor({7, 4}, 900);
  const auto plan = PlanOf(StateDict(tensors));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_FALSE(plan->config.tie_weight);
  EXPECT_EQ(ValuesOf(*plan, "head.0.w")[0], 900);
}

TEST(KimiyoungTest, ACopyIsTiedWhenSomebodySaysSo) {
  TensorMap tensors = KptTensors({});
  tensors["crit.out_layers.0.weight"] =
      CopyOf(tensors["word_emb.emb_layers.0.weight"]);
  const auto apart = PlanOf(StateDict(tensors));
  ASSERT_TRUE(apart.ok()) << apart.status();
  EXPECT_FALSE(apart->config.tie_weight);
  const auto tied = PlanOf(StateDict(tensors), json{{"tie_weight", true}});
  ASSERT_TRUE(tied.ok()) << tied.status();
  EXPECT_TRUE(tied->config.tie_weight);
  EXPECT_THAT(tied->oddities, testing::Contains(HasSubstr("is a copy of")));
}

TEST(KimiyoungTest, WeightsThatDifferCannotBeTied) {
  TensorMap tensors = KptTensors({});
  tensors["crit.out_layers.0.weight"] = CountingTensor({7, 4}, 900);
  EXPECT_THAT(ErrorOf(StateDict(tensors), json{{"tie_weight", true}}),
              HasSubstr("crit.out_layers.0.weight"));
}

TEST(KimiyoungTest, FrequenciesRoundedTo16BitsAreLeftOut) {
  TensorMap tensors = KptTensors({});
  tensors["pos_emb.inv_freq"] =
      *RowMajor(DType::kF16, {2}, BytesInMemory(std::string(4, 'a'), "test"));
  const auto plan = PlanOf(StateDict(tensors));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_FALSE(plan->tensors.contains("pos.inv_freq"));
  EXPECT_THAT(plan->oddities, testing::Contains(HasSubstr("16 bits")));
}

TEST(KimiyoungTest, EveryMissingTensorIsNamed) {
  const TensorMap whole = KptTensors({});
  for (const auto& [name, tensor] : whole) {
    if (name == "pos_emb.inv_freq") continue;          // may be absent
    if (name == "crit.out_layers.0.weight") continue;  // taken as tied
    TensorMap tensors = whole;
    tensors.erase(name);
    EXPECT_THAT(ErrorOf(StateDict(tensors)), HasSubstr("missing")) << name;
  }
}

TEST(KimiyoungTest, AnotherShapeOrAnotherTensorIsNamed) {
  TensorMap tensors = KptTensors({});
  tensors["layers.1.dec_attn.o_net.weight"] = CountingTensor({6, 4});
  EXPECT_THAT(ErrorOf(StateDict(tensors)),
              HasSubstr("layers.1.dec_attn.o_net.weight has shape [6, 4], must "
                        "have [4, 6]"));
  tensors = KptTensors({});
  tensors["layers.0.dec_attn.qkv_net.bias"] = CountingTensor({18});
  EXPECT_THAT(ErrorOf(StateDict(tensors)),
              HasSubstr("layers.0.dec_attn.qkv_net.bias is not part"));
}

TEST(KimiyoungTest, CutoffsMustFitTheClusters) {
  const NativeCheckpoint checkpoint = StateDict(KptTensors(OneTable()));
  EXPECT_THAT(ErrorOf(checkpoint), HasSubstr("cutoffs"));
  EXPECT_THAT(ErrorOf(checkpoint, json{{"cutoffs", {3, 5}}}),
              HasSubstr("cutoffs"));
  EXPECT_THAT(ErrorOf(checkpoint, json{{"cutoffs", {3, 5, 10}}}),
              HasSubstr("cutoffs"));
  EXPECT_THAT(ErrorOf(checkpoint, json{{"cutoffs", {5, 3, 6}}}),
              HasSubstr("cutoffs"));
}

}  // namespace

// NVIDIA's checkpoints from 2020 on: biases in a list, weights only where they
// are not tied, further names of the shared projections, a window of one more.

namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

KptShape NvidiaShape() {
  KptShape shape;
  shape.vocab = 9;
  shape.d_embed = 4;
  shape.cutoffs = {4, 6};
  shape.div_val = 2;
  shape.tie_projs = {false, true, true};
  return shape;
}

json ModelConfigOf() {
  return {{"n_token", 9},       {"n_layer", 2},
          {"mem_len", 5},       {"cutoffs", {4, 6}},
          {"div_val", 2},       {"pre_lnorm", true},
          {"tie_weight", true}, {"same_length", true},
          {"clamp_len", -1},    {"attn_type", 0},
          {"ext_len", 0},       {"tie_projs", {false, true, true}}};
}

TensorMap ModelState() {
  TensorMap tensors = KptTensors(NvidiaShape());
  for (int b = 0; b < 3; ++b) {
    tensors.erase(absl::StrCat("crit.out_layers.", b, ".weight"));
    auto bias = tensors.extract(absl::StrCat("crit.out_layers.", b, ".bias"));
    bias.key() = absl::StrCat("crit.out_layers_biases.", b);
    tensors.insert(std::move(bias));
    tensors[absl::StrCat("crit.shared_out_projs.", b)] =
        tensors[absl::StrCat("word_emb.emb_projs.", b)];
    if (b > 0) tensors.erase(absl::StrCat("crit.out_projs.", b));
  }
  return tensors;
}

// The dictionary that train.py saves.
NativeCheckpoint Checkpoint(const TensorMap& state, const json& config) {
  NativeCheckpoint checkpoint;
  checkpoint.path = "checkpoint_best.pt";
  for (const auto& [name, tensor] : state) {
    checkpoint.tensors["model_state." + name] = tensor;
    checkpoint.data["model_state"][name] = {{kTensorKey, name}};
  }
  checkpoint.tensors["memory.0"] = CountingTensor({3});
  checkpoint.data["memory"] = {{{kTensorKey, "memory.0"}}};
  checkpoint.data["model_config"] = config;
  checkpoint.data["args"] = {
      {kClassKey, "argparse.Namespace"}, {"mem_len", 777}, {"not_tied", false}};
  return checkpoint;
}

absl::StatusOr<ConversionPlan> PlanNvidiaFile(const TensorMap& state,
                                              const json& config,
                                              const json& spec = json()) {
  const NativeCheckpoint checkpoint = Checkpoint(state, config);
  return PlanNvidia({checkpoint, json(), spec});
}

TEST(NvidiaTest, TheModelsConfigGoesBeforeTheArguments) {
  const auto plan = PlanNvidiaFile(ModelState(), ModelConfigOf());
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->family, "nvidia");
  EXPECT_EQ(plan->config.mem_len, 5);
  EXPECT_EQ(plan->config.norm, NormPlacement::kPre);
}

TEST(NvidiaTest, ArgumentsDoWithoutAConfig) {
  const auto plan = PlanNvidiaFile(ModelState(), json());
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->config.mem_len, 777);
}

TEST(NvidiaTest, SameLengthShowsOneKeyBesidesTheMemory) {
  const auto plan = PlanNvidiaFile(ModelState(), ModelConfigOf());
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->config.window, 6);
  const auto longer =
      PlanNvidiaFile(ModelState(), ModelConfigOf(), {{"mem_len", 40}});
  ASSERT_TRUE(longer.ok()) << longer.status();
  EXPECT_EQ(longer->config.window, 41);
}

TEST(NvidiaTest, BiasesAndClustersAreFound) {
  const TensorMap state = ModelState();
  const auto plan = PlanNvidiaFile(state, ModelConfigOf());
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(ValuesOf(*plan, "head.1.b"),
            FloatsOf(state.at("crit.out_layers_biases.1")));
  const std::vector<float> bias = FloatsOf(state.at("crit.cluster_bias"));
  EXPECT_THAT(ValuesOf(*plan, "head.cluster.b"), ElementsAre(bias[1], bias[0]));
}

TEST(NvidiaTest, ProjectionsAreTiedWhereTheyAreAbsent) {
  const TensorMap state = ModelState();
  const auto plan = PlanNvidiaFile(state, ModelConfigOf());
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->config.tie_projs, ElementsAre(false, true, true));
  EXPECT_EQ(ValuesOf(*plan, "head.0.proj"),
            FloatsOf(state.at("crit.out_projs.0")));
  EXPECT_EQ(ValuesOf(*plan, "emb.2.proj"),
            FloatsOf(state.at("word_emb.emb_projs.2")));
}

TEST(NvidiaTest, UntiedWeightsHaveTheirOwnList) {
  TensorMap state = ModelState();
  json config = ModelConfigOf();
  config["tie_weight"] = false;
  for (int b = 0; b < 3; ++b) {
    state[absl::StrCat("crit.out_layers_weights.", b)] = CountingTensor(
        state[absl::StrCat("word_emb.emb_layers.", b, ".weight")].shape, 500);
  }
  const auto plan = PlanNvidiaFile(state, config);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_FALSE(plan->config.tie_weight);
  EXPECT_EQ(ValuesOf(*plan, "head.2.w")[0], 500);
}

TEST(NvidiaTest, ASharedProjectionThatDiffersIsNamed) {
  TensorMap state = ModelState();
  state["crit.shared_out_projs.1"] = CountingTensor({4, 2}, 500);
  EXPECT_THAT(PlanNvidiaFile(state, ModelConfigOf()).status().message(),
              HasSubstr("crit.shared_out_projs.1"));
}

TEST(NvidiaTest, AProjectionThatTheConfigTiesMustBeEqual) {
  TensorMap state = ModelState();
  state["crit.out_projs.1"] = CountingTensor({4, 2}, 500);
  EXPECT_THAT(PlanNvidiaFile(state, ModelConfigOf()).status().message(),
              HasSubstr("crit.out_projs.1"));
}

TEST(NvidiaTest, AForeignEntryInTheStateIsNamed) {
  NativeCheckpoint checkpoint = Checkpoint(ModelState(), ModelConfigOf());
  checkpoint.data["model_state"]["extra"] = {{kClassKey, "builtins.eval"}};
  const auto plan = PlanNvidia({checkpoint, json(), json()});
  EXPECT_THAT(plan.status().message(), HasSubstr("model_state.extra"));
}

}  // namespace

}  // namespace txl
