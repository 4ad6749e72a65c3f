#include "model/checkpoint/canonical_tensors.h"

#include <functional>
#include <ostream>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace txl {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Infos = std::map<std::string, TensorInfo>;

// V 20, H*D 6 unlike d 8.
ModelConfig Plain() {
  ModelConfig config;
  config.vocab_size = 20;
  config.n_layer = 2;
  config.n_head = 2;
  config.d_head = 3;
  config.d_model = 8;
  config.d_embed = 8;
  config.d_inner = 5;
  config.mem_len = 4;
  return config;
}

ModelConfig Adaptive() {
  ModelConfig config = Plain();
  config.cutoffs = {6, 11};
  config.div_val = 2;
  config.emb_proj_bin0 = true;
  config.tie_weight = true;
  config.tie_projs = {false, true, true};
  return config;
}

std::set<std::string> Names(const ModelConfig& config, Presence presence) {
  std::set<std::string> names;
  for (const auto& [name, tensor] : CanonicalTensors(config)) {
    if (tensor.presence == presence) names.insert(name);
  }
  return names;
}

// A table of contents that holds all that is required or tied.
Infos FullFile(const ModelConfig& config) {
  Infos infos;
  for (const auto& [name, tensor] : CanonicalTensors(config)) {
    if (tensor.presence == Presence::kOptional) continue;
    TensorInfo info = {.shape = tensor.shape};
    for (int64_t& size : info.shape) {
      if (size == -1) size = 7;
    }
    infos[name] = info;
  }
  return infos;
}

absl::Status Check(const ModelConfig& config, const Infos& infos) {
  return CheckCanonicalTensors(config, infos, "m.safetensors");
}

TEST(CanonicalTensors, APlainModelHasTheListOfTheFormat) {
  ModelConfig config = Plain();
  config.n_layer = 1;
  config.emb_proj_bin0 = false;
  const auto tensors = CanonicalTensors(config);
  EXPECT_THAT(
      Names(config, Presence::kRequired),
      ElementsAre("emb.0.w", "head.0.b", "head.0.w", "layer.0.ff.b1",
                  "layer.0.ff.b2", "layer.0.ff.w1", "layer.0.ff.w2",
                  "layer.0.ln1.b", "layer.0.ln1.g", "layer.0.ln2.b",
                  "layer.0.ln2.g", "layer.0.u", "layer.0.v", "layer.0.wk",
                  "layer.0.wo", "layer.0.wq", "layer.0.wr", "layer.0.wv"));
  EXPECT_THAT(Names(config, Presence::kOptional),
              ElementsAre("layer.0.bk", "layer.0.bo", "layer.0.bq",
                          "layer.0.br", "layer.0.bv", "pos.inv_freq"));
  EXPECT_THAT(tensors.at("emb.0.w").shape, ElementsAre(20, 8));
  EXPECT_THAT(tensors.at("head.0.w").shape, ElementsAre(20, 8));
  EXPECT_THAT(tensors.at("head.0.b").shape, ElementsAre(20));
  EXPECT_THAT(tensors.at("layer.0.wq").shape, ElementsAre(6, 8));
  EXPECT_THAT(tensors.at("layer.0.wr").shape, ElementsAre(6, 8));
  EXPECT_THAT(tensors.at("layer.0.wo").shape, ElementsAre(8, 6));
  EXPECT_THAT(tensors.at("layer.0.bq").shape, ElementsAre(6));
  EXPECT_THAT(tensors.at("layer.0.bo").shape, ElementsAre(8));
  EXPECT_THAT(tensors.at("layer.0.u").shape, ElementsAre(2, 3));
  EXPECT_THAT(tensors.at("layer.0.v").shape, ElementsAre(2, 3));
  EXPECT_THAT(tensors.at("layer.0.ff.w1").shape, ElementsAre(5, 8));
  EXPECT_THAT(tensors.at("layer.0.ff.b1").shape, ElementsAre(5));
  EXPECT_THAT(tensors.at("layer.0.ff.w2").shape, ElementsAre(8, 5));
  EXPECT_THAT(tensors.at("layer.0.ff.b2").shape, ElementsAre(8));
  EXPECT_THAT(tensors.at("layer.0.ln1.g").shape, ElementsAre(8));
  EXPECT_THAT(tensors.at("pos.inv_freq").shape, ElementsAre(4));
}

TEST(CanonicalTensors, PositionTablesReplaceTheProjectionOfSinusoids) {
  ModelConfig config = Plain();
  config.pos = PositionKind::kTable;
  const auto tensors = CanonicalTensors(config);
  EXPECT_THAT(tensors.at("layer.1.rel_t").shape, ElementsAre(-1, 2, 3));
  EXPECT_THAT(tensors.at("layer.1.rel_s").shape, ElementsAre(-1, 2));
  for (const char* name : {"layer.0.wr", "layer.0.v", "layer.0.br"}) {
    EXPECT_FALSE(tensors.contains(name)) << name;
  }
  EXPECT_FALSE(tensors.contains("pos.inv_freq"));
}

TEST(CanonicalTensors, RawSinusoidsHaveNoFrequenciesOfTheirOwn) {
  ModelConfig config = Plain();
  config.pos = PositionKind::kSinInterleavedRaw;
  EXPECT_FALSE(CanonicalTensors(config).contains("pos.inv_freq"));
  EXPECT_TRUE(CanonicalTensors(config).contains("layer.0.wr"));
}

TEST(CanonicalTensors, TheLastNormIsThereOnDemand) {
  ModelConfig config = Plain();
  EXPECT_FALSE(CanonicalTensors(config).contains("final.g"));
  config.final_norm = true;
  EXPECT_THAT(Names(config, Presence::kRequired), Contains("final.g"));
  EXPECT_THAT(Names(config, Presence::kRequired), Contains("final.b"));
}

TEST(CanonicalTensors, BeatPositionsHaveTheirTwoTables) {
  ModelConfig config = Plain();
  EXPECT_FALSE(CanonicalTensors(config).contains("emb.beat"));
  config.beat_positions = BeatPositions{1, 9, 4, 0, 6, 5};
  const auto tensors = CanonicalTensors(config);
  EXPECT_THAT(tensors.at("emb.beat").shape, ElementsAre(6, 8));
  EXPECT_THAT(tensors.at("emb.bar").shape, ElementsAre(5, 8));
  EXPECT_EQ(RequiredParameters(config) - RequiredParameters(Plain()), 11 * 8);
  for (const char* name : {"emb.beat", "emb.bar"}) {
    EXPECT_EQ(tensors.at(name).presence, Presence::kRequired);
  }
}

TEST(CanonicalTensors, AHeadWithoutBiasHasNone) {
  ModelConfig config = Plain();
  config.head_bias = false;
  EXPECT_FALSE(CanonicalTensors(config).contains("head.0.b"));
}

TEST(CanonicalTensors, BinsShrinkAndMayBeTied) {
  const auto tensors = CanonicalTensors(Adaptive());
  EXPECT_THAT(tensors.at("emb.0.w").shape, ElementsAre(6, 8));
  EXPECT_THAT(tensors.at("emb.1.w").shape, ElementsAre(5, 4));
  EXPECT_THAT(tensors.at("emb.2.w").shape, ElementsAre(9, 2));
  EXPECT_THAT(tensors.at("emb.2.proj").shape, ElementsAre(8, 2));
  EXPECT_THAT(tensors.at("head.cluster.w").shape, ElementsAre(2, 8));
  EXPECT_THAT(tensors.at("head.cluster.b").shape, ElementsAre(2));
  EXPECT_EQ(tensors.at("head.1.w").tied_to, "emb.1.w");
  EXPECT_EQ(tensors.at("head.1.proj").tied_to, "emb.1.proj");
  EXPECT_EQ(tensors.at("head.0.proj").presence, Presence::kRequired);
}

TEST(CanonicalTensors, AProjectionBetweenUnequalWidthsIsRequired) {
  ModelConfig config = Plain();
  config.d_embed = 6;
  config.emb_proj_bin0 = false;  // cannot be meant
  EXPECT_THAT(Names(config, Presence::kRequired),
              AllOf(Contains("emb.0.proj"), Contains("head.0.proj")));
}

TEST(CanonicalTensors, ASquareProjectionIsWhatTheConfigSays) {
  ModelConfig config = Adaptive();
  EXPECT_THAT(Names(config, Presence::kRequired),
              AllOf(Contains("emb.0.proj"), Contains("head.0.proj")));
  config.emb_proj_bin0 = false;
  EXPECT_FALSE(CanonicalTensors(config).contains("emb.0.proj"));
  EXPECT_FALSE(CanonicalTensors(config).contains("head.0.proj"));
  EXPECT_TRUE(CanonicalTensors(config).contains("emb.1.proj"));
  config.emb_proj_bin0 = std::nullopt;
  EXPECT_THAT(Names(config, Presence::kOptional), Contains("emb.0.proj"));
}

TEST(CanonicalTensors, WithOneTableTheSayForTheFirstBinHoldsForAll) {
  ModelConfig config = Adaptive();
  config.div_val = 1;
  config.emb_proj_bin0 = false;
  EXPECT_FALSE(CanonicalTensors(config).contains("emb.2.proj"));
  config.emb_proj_bin0 = true;
  EXPECT_THAT(Names(config, Presence::kRequired), Contains("emb.2.proj"));
}

TEST(CheckCanonicalTensors, AFullFileIsAccepted) {
  EXPECT_TRUE(Check(Plain(), FullFile(Plain())).ok());
  EXPECT_TRUE(Check(Adaptive(), FullFile(Adaptive())).ok());
}

TEST(CheckCanonicalTensors, TiedTensorsMayBeLeftOut) {
  Infos infos = FullFile(Adaptive());
  EXPECT_EQ(infos.erase("head.0.w") + infos.erase("head.2.w") +
                infos.erase("head.1.proj"),
            3u);
  EXPECT_TRUE(Check(Adaptive(), infos).ok());
}

TEST(CheckCanonicalTensors, EveryFloatIsAccepted) {
  for (const DType dtype :
       {DType::kF64, DType::kF32, DType::kF16, DType::kBF16}) {
    Infos infos = FullFile(Plain());
    infos["layer.0.wq"].dtype = dtype;
    EXPECT_TRUE(Check(Plain(), infos).ok()) << DTypeName(dtype);
  }
}

TEST(CheckCanonicalTensors, EveryRequiredTensorIsMissed) {
  for (const ModelConfig& config : {Plain(), Adaptive()}) {
    for (const std::string& name : Names(config, Presence::kRequired)) {
      Infos infos = FullFile(config);
      infos.erase(name);
      const absl::Status status = Check(config, infos);
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
      EXPECT_THAT(status.message(),
                  HasSubstr(absl::StrCat("m.safetensors: tensor ", name,
                                         " is missing")));
    }
  }
}

struct Damage {
  const char* test_name;
  std::function<void(Infos&)> apply;
  const char* about;
};

std::ostream& operator<<(std::ostream& out, const Damage& damage) {
  return out << damage.test_name;
}

class DamagedList : public testing::TestWithParam<Damage> {};

TEST_P(DamagedList, IsRefusedNamingFileAndTensor) {
  Infos infos = FullFile(Adaptive());
  GetParam().apply(infos);
  const absl::Status status = Check(Adaptive(), infos);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr("m.safetensors: "), HasSubstr(GetParam().about)));
}

INSTANTIATE_TEST_SUITE_P(
    All, DamagedList,
    testing::Values(
        Damage{"LayerTooMany",
               [](Infos& i) { i["layer.2.wq"] = i["layer.1.wq"]; },
               "tensor layer.2.wq is not part"},
        Damage{"UnknownName", [](Infos& i) { i["layer.0.wx"] = {}; },
               "tensor layer.0.wx is not part"},
        Damage{"NameWithLeadingZero",
               [](Infos& i) { i["layer.00.wq"] = i["layer.0.wq"]; },
               "tensor layer.00.wq is not part"},
        Damage{"Transposed",
               [](Infos& i) {
                 i["layer.1.wq"].shape = {8, 6};
               },
               "tensor layer.1.wq has shape [8, 6], must have [6, 8]"},
        Damage{"OneDimensionMore",
               [](Infos& i) {
                 i["layer.1.ln1.g"].shape = {8, 1};
               },
               "tensor layer.1.ln1.g has shape [8, 1], must have [8]"},
        Damage{"TiedOfAnotherShape",
               [](Infos& i) {
                 i["head.1.w"].shape = {5, 8};
               },
               "tensor head.1.w has shape"},
        Damage{"Integers", [](Infos& i) { i["emb.0.w"].dtype = DType::kI64; },
               "tensor emb.0.w has dtype I64"},
        Damage{"BiasOfOneLayerOnly",
               [](Infos& i) { i["layer.1.bq"].shape = {6}; },
               "tensor layer.1.bq unlike in layer 0"},
        Damage{"BiasMissingInALayer",
               [](Infos& i) { i["layer.0.bo"].shape = {8}; },
               "tensor layer.1.bo is missing unlike in layer 0"}),
    [](const auto& info) { return std::string(info.param.test_name); });

TEST(CheckCanonicalTensors, ASquareProjectionAtOneEndOnlyIsRefused) {
  ModelConfig config = Adaptive();
  config.emb_proj_bin0 = std::nullopt;
  Infos infos = FullFile(config);
  EXPECT_TRUE(Check(config, infos).ok());
  infos["emb.0.proj"].shape = {8, 8};
  EXPECT_THAT(Check(config, infos).message(),
              HasSubstr("head.0.proj is missing unlike emb.0.proj"));
  infos["head.0.proj"].shape = {8, 8};
  EXPECT_TRUE(Check(config, infos).ok());
  infos.erase("emb.0.proj");
  EXPECT_THAT(Check(config, infos).message(),
              HasSubstr("emb.0.proj is missing unlike head.0.proj"));
}

TEST(CheckCanonicalTensors, PositionTablesHaveAnyNumberOfRowsButNone) {
  ModelConfig config = Plain();
  config.pos = PositionKind::kTable;
  Infos infos = FullFile(config);
  EXPECT_TRUE(Check(config, infos).ok());
  infos["layer.0.rel_t"].shape = {0, 2, 3};
  EXPECT_THAT(Check(config, infos).message(), HasSubstr("layer.0.rel_t"));
}

TEST(CheckCanonicalTensors, ThePositionTablesOfAllLayersReachEquallyFar) {
  ModelConfig config = Plain();
  config.pos = PositionKind::kTable;
  Infos infos = FullFile(config);
  infos["layer.1.rel_s"].shape = {6, 2};
  EXPECT_THAT(Check(config, infos).message(),
              HasSubstr("layer.1.rel_s has 6 rows, layer.0.rel_t has 7"));
}

TEST(CheckCanonicalTensors, MoreLayersThanTensorsAreRefusedAtOnce) {
  ModelConfig config = Plain();
  config.n_layer = 4096;
  EXPECT_THAT(Check(config, FullFile(Plain())).message(),
              HasSubstr("n_layer 4096"));
}

TEST(RequiredParameters, OfTheReleasedWikiTextModelAre285Million) {
  const auto config = ParseModelConfig(R"({
    "vocab_size": 267735, "n_layer": 18, "n_head": 16, "d_head": 64,
    "d_model": 1024, "d_inner": 4096, "mem_len": 1600,
    "cutoffs": [20000, 40000, 200000], "div_val": 4,
    "emb_proj_bin0": "present", "tie_weight": true,
    "tie_projs": [false, true, true, true]})",
                                       "config.json");
  ASSERT_TRUE(config.ok()) << config.status();
  // The unique tensors of the public checkpoint, u and v per layer.
  EXPECT_EQ(RequiredParameters(*config), 285'205'322);
}

}  // namespace
}  // namespace txl
