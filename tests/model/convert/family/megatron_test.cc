// Megatron models in one file and cut by model parallelism.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/model/convert/family/golden_weights.h"

namespace txl {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// How the code base cuts a parameter over its ranks.
enum class Cut { kRows, kColumns, kFused, kNot };

struct Parameter {
  Values values;
  Cut cut = Cut::kNot;
};

// The whole model under its names.
std::map<std::string, Parameter> Parameters(const GoldenWeights& golden) {
  std::map<std::string, Parameter> out;
  out["word_embeddings.weight"] = {golden.at("emb.0.w"), Cut::kRows};
  out["transformer.r_w_bias"] = {golden.layer(0, "u"), Cut::kRows};
  out["transformer.r_r_bias"] = {golden.layer(0, "v"), Cut::kRows};
  out["transformer.final_layernorm.weight"] = {golden.at("final.g")};
  out["transformer.final_layernorm.bias"] = {golden.at("final.b")};
  for (int64_t l = 0; l < golden.layers(); ++l) {
    const auto put = [&](const std::string& native, const char* name, Cut cut) {
      out[absl::StrCat("transformer.layers.", l, ".", native)] = {
          golden.layer(l, name), cut};
    };
    const auto fused = [&](const std::vector<const char*>& names) {
      std::vector<Values> parts;
      for (const char* name : names) parts.push_back(golden.layer(l, name));
      return Parameter{BelowEachOther(parts), Cut::kFused};
    };
    const std::string attention =
        absl::StrCat("transformer.layers.", l, ".attention.");
    out[attention + "query_key_value.weight"] = fused({"wq", "wk", "wv"});
    out[attention + "query_key_value.bias"] = fused({"bq", "bk", "bv"});
    put("attention.relative.weight", "wr", Cut::kRows);
    put("attention.relative.bias", "br", Cut::kRows);
    put("attention.dense.weight", "wo", Cut::kColumns);
    put("attention.dense.bias", "bo", Cut::kNot);
    put("input_layernorm.weight", "ln1.g", Cut::kNot);
    put("input_layernorm.bias", "ln1.b", Cut::kNot);
    put("mlp.dense_h_to_4h.weight", "ff.w1", Cut::kRows);
    put("mlp.dense_h_to_4h.bias", "ff.b1", Cut::kRows);
    put("mlp.dense_4h_to_h.weight", "ff.w2", Cut::kColumns);
    put("mlp.dense_4h_to_h.bias", "ff.b2", Cut::kNot);
    put("post_attention_layernorm.weight", "ln2.g", Cut::kNot);
    put("post_attention_layernorm.bias", "ln2.b", Cut::kNot);
  }
  return out;
}

Values Share(const Parameter& parameter, int64_t rank, int64_t ranks) {
  const Values& whole = parameter.values;
  if (parameter.cut == Cut::kNot) return whole;
  if (parameter.cut == Cut::kColumns) {
    const int64_t share = whole.shape[1] / ranks;
    return ColumnsOf(whole, rank * share, (rank + 1) * share);
  }
  const int64_t parts = parameter.cut == Cut::kFused ? 3 : 1;
  const int64_t rows = whole.shape[0] / parts, share = rows / ranks;
  std::vector<Values> own;
  for (int64_t part = 0; part < parts; ++part) {
    const int64_t begin = part * rows + rank * share;
    own.push_back(RowsOf(whole, begin, begin + share));
  }
  return BelowEachOther(own);
}

NativeCheckpoint Sharded(const GoldenWeights& golden, int64_t ranks) {
  std::map<std::string, Values> tensors;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    const std::string place =
        absl::StrCat("rank.", rank < 10 ? "0" : "", rank, ".module.");
    for (const auto& [name, parameter] : Parameters(golden)) {
      tensors[place + name] = Share(parameter, rank, ranks);
    }
  }
  NativeCheckpoint checkpoint = Checkpoint(tensors);
  checkpoint.data = nullptr;
  return checkpoint;
}

TEST(MegatronTest, ItsFileGivesTheGoldenWeightsAndConfig) {
  const auto checkpoint =
      OpenCheckpoint(GoldenFile("thu/native/mp_rank_00_model_states.pt"));
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  const GoldenWeights golden = LoadGolden("thu");
  const auto plan = PlanOf("thu", *checkpoint, golden.config);
  ASSERT_TRUE(plan.ok()) << plan.status();
  ExpectWeights(*plan, golden);
  ExpectConfig(*plan, golden);
  for (const auto& [name, tensor] : plan->tensors) {
    EXPECT_EQ(DTypeName(tensor.pieces[0].dtype), "F16") << name;
  }
  // Frequencies in half precision are no frequencies.
  EXPECT_FALSE(plan->tensors.contains("pos.inv_freq"));
  EXPECT_THAT(plan->oddities, ElementsAre(HasSubstr("inv_freq")));
}

TEST(MegatronTest, AFolderOfOneShardIsTheSame) {
  const auto checkpoint = OpenCheckpoint(GoldenFile("thu/native"));
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  const GoldenWeights golden = LoadGolden("thu");
  const auto plan = PlanOf("thu", *checkpoint, golden.config);
  ASSERT_TRUE(plan.ok()) << plan.status();
  ExpectWeights(*plan, golden);
}

class MegatronRanksTest : public testing::TestWithParam<int64_t> {};

// The golden model with its rows of 24 taken as `heads` heads, so that ranks
// divide them.
GoldenWeights WithHeads(int64_t heads) {
  GoldenWeights golden = LoadGolden("thu");
  golden.config["n_head"] = heads;
  golden.config["d_head"] = 24 / heads;
  for (int64_t l = 0; l < golden.layers(); ++l) {
    for (const char* name : {"u", "v"}) {
      Values& bias = golden.tensors[absl::StrCat("layer.", l, ".", name)];
      bias = Reshaped(bias, {heads, 24 / heads});
    }
  }
  return golden;
}

TEST_P(MegatronRanksTest, TheSharesOfAllRanksAreTheWholeModel) {
  const GoldenWeights golden = WithHeads(12);
  const auto plan = PlanOf("thu", Sharded(golden, GetParam()), golden.config);
  ASSERT_TRUE(plan.ok()) << plan.status();
  ExpectWeights(*plan, golden);
  ExpectConfig(*plan, golden);
}

INSTANTIATE_TEST_SUITE_P(OneTwoFour, MegatronRanksTest,
                         testing::Values(1, 2, 4));

TEST(MegatronTest, MoreThanTenRanksKeepTheirOrder) {
  // 24 heads of width 1 over 12 ranks; 136 rows cut to 132.
  GoldenWeights golden = WithHeads(24);
  golden.config["vocab_size"] = 132;
  for (const char* name : {"emb.0.w", "head.0.w"}) {
    golden.tensors[name] = RowsOf(golden.at(name), 0, 132);
  }
  const auto plan = PlanOf("thu", Sharded(golden, 12), golden.config);
  ASSERT_TRUE(plan.ok()) << plan.status();
  ExpectWeights(*plan, golden);
}

TEST(MegatronTest, PaddingRowsGoWhereTheSpecSaysHowManyAreWords) {
  GoldenWeights golden = WithHeads(12);
  const NativeCheckpoint checkpoint = Sharded(golden, 2);
  for (const int64_t words : {131, 68, 60}) {
    GoldenWeights cut = golden;
    cut.config["vocab_size"] = words;
    for (const char* name : {"emb.0.w", "head.0.w"}) {
      cut.tensors[name] = RowsOf(golden.at(name), 0, words);
    }
    const auto plan = PlanOf("thu", checkpoint, cut.config);
    ASSERT_TRUE(plan.ok()) << plan.status();
    ExpectWeights(*plan, cut);
    EXPECT_THAT(plan->oddities,
                ElementsAre(HasSubstr(absl::StrCat(136 - words))));
  }
  const auto whole = PlanOf("thu", checkpoint);
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_EQ(whole->config.vocab_size, 136);
  const auto more = PlanOf("thu", checkpoint, json{{"vocab_size", 137}});
  EXPECT_THAT(more.status().message(), HasSubstr("vocab_size"));
}

TEST(MegatronTest, TheWindowIsThatOfGenerationUnlessGiven) {
  const GoldenWeights golden = LoadGolden("thu");
  const NativeCheckpoint checkpoint = Sharded(golden, 1);
  const auto plain = PlanOf("thu", checkpoint);
  ASSERT_TRUE(plain.ok()) << plain.status();
  // seq_length 512 and mem_length 256 of generate_text.sh: 512 + 256 - 1.
  EXPECT_EQ(plain->config.mem_len, 767);
  EXPECT_EQ(plain->config.window, 768);
  EXPECT_THAT(plain->oddities,
              ElementsAre(HasSubstr("mem_len"), HasSubstr("window")));
  const auto shorter = PlanOf("thu", checkpoint, json{{"mem_len", 99}});
  ASSERT_TRUE(shorter.ok()) << shorter.status();
  EXPECT_EQ(shorter->config.window, 100);
  const auto given =
      PlanOf("thu", checkpoint, json{{"mem_len", 99}, {"window", nullptr}});
  ASSERT_TRUE(given.ok()) << given.status();
  EXPECT_EQ(given->config.window, std::nullopt);
  EXPECT_THAT(given->oddities, IsEmpty());
}

TEST(MegatronTest, AMissingShardIsNamed) {
  NativeCheckpoint checkpoint = Sharded(WithHeads(12), 2);
  std::erase_if(checkpoint.tensors, [](const auto& entry) {
    return entry.first.rfind("rank.00.", 0) == 0;
  });
  EXPECT_THAT(PlanOf("thu", checkpoint).status().message(),
              HasSubstr("rank 0"));
}

TEST(MegatronTest, TheFirstOfTwoShardsIsNotTakenForAModel) {
  NativeCheckpoint checkpoint = Sharded(WithHeads(12), 2);
  std::erase_if(checkpoint.tensors, [](const auto& entry) {
    return entry.first.rfind("rank.01.", 0) == 0;
  });
  EXPECT_THAT(PlanOf("thu", checkpoint).status().message(),
              HasSubstr("shards of other ranks are missing"));
}

TEST(MegatronTest, ATensorOfAnotherRankThatIsWrongIsNamedWithIt) {
  const GoldenWeights golden = WithHeads(12);
  NativeCheckpoint checkpoint = Sharded(golden, 2);
  const std::string name =
      "rank.01.module.transformer.layers.2.mlp.dense_4h_to_h.weight";
  checkpoint.tensors[name] = Stored(golden.layer(2, "ff.w2"));
  EXPECT_THAT(PlanOf("thu", checkpoint).status().message(), HasSubstr(name));
  checkpoint.tensors.erase(name);
  EXPECT_THAT(PlanOf("thu", checkpoint).status().message(), HasSubstr(name));
}

TEST(MegatronTest, EachTensorOfEachRankIsChecked) {
  ExpectEachTensorIsChecked("thu", Sharded(WithHeads(12), 2));
}

}  // namespace
}  // namespace txl
