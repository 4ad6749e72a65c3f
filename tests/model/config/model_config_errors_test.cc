#include <nlohmann/json.hpp>
#include <ostream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/config/model_config.h"

namespace txl {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// A valid config with what a test puts in its place.
struct BadField {
  const char* test_name;
  const char* fields;  // JSON object; null removes a field
  const char* named;   // the message names this field
};

std::ostream& operator<<(std::ostream& out, const BadField& bad) {
  return out << bad.fields;
}

constexpr BadField kBadFields[] = {
    {"NoVocabulary", R"({"vocab_size": null})", "vocab_size"},
    {"NoLayers", R"({"n_layer": null})", "n_layer"},
    {"NoHeads", R"({"n_head": null})", "n_head"},
    {"NoHeadWidth", R"({"d_head": null})", "d_head"},
    {"NoWidth", R"({"d_model": null})", "d_model"},
    {"NoInnerWidth", R"({"d_inner": null})", "d_inner"},
    {"NoMemory", R"({"mem_len": null})", "mem_len"},
    {"EmptyVocabulary", R"({"vocab_size": 0})", "vocab_size"},
    {"VocabularyAsText", R"({"vocab_size": "12"})", "vocab_size"},
    {"VocabularyWithFraction", R"({"vocab_size": 12.5})", "vocab_size"},
    {"VocabularyInFloatSpelling", R"({"vocab_size": 12.0})", "vocab_size"},
    {"NegativeLayers", R"({"n_layer": -1})", "n_layer"},
    {"TooManyLayers", R"({"n_layer": 1000000})", "n_layer"},
    {"BooleanHeads", R"({"n_head": true})", "n_head"},
    {"HugeWidth", R"({"d_model": 1099511627776})", "d_model"},
    {"WidthBeyondInt64", R"({"d_model": 9223372036854775808})", "d_model"},
    {"WidthBeyondUint64", R"({"d_model": 18446744073709551616})", "d_model"},
    {"HeadsTimesWidthTooLarge", R"({"n_head": 1048576, "d_head": 2})",
     "n_head"},
    {"ZeroHeadWidth", R"({"d_head": 0})", "d_head"},
    {"ZeroEmbedding", R"({"d_embed": 0})", "d_embed"},
    {"ListAsInnerWidth", R"({"d_inner": [5]})", "d_inner"},
    {"OddWidthOfHalves", R"({"d_model": 7})", "d_model"},
    {"NormInTheMiddle", R"({"norm": "middle"})", "norm"},
    {"FinalNormAsNumber", R"({"final_norm": 1})", "final_norm"},
    {"EpsilonZero", R"({"ln_eps": 0})", "ln_eps"},
    {"EpsilonAsText", R"({"ln_eps": "1e-5"})", "ln_eps"},
    {"UnknownActivation", R"({"act": "swish"})", "act"},
    {"ActivationNone", R"({"act": "none"})", "act"},
    {"UnknownOutputActivation", R"({"ff_out_act": "gelu_tanh"})", "ff_out_act"},
    {"UnknownPositions", R"({"pos": "rotary"})", "pos"},
    {"NegativeBase", R"({"pos_base": -1})", "pos_base"},
    {"HalfPrecisionPositions", R"({"pos_dtype": "f16_emulated"})", "pos_dtype"},
    {"ClampBelowMinusOne", R"({"clamp_len": -2})", "clamp_len"},
    {"ClampWithFraction", R"({"clamp_len": 2.5})", "clamp_len"},
    {"WindowZero", R"({"window": 0})", "window"},
    {"WindowBelowMinusOne", R"({"window": -2})", "window"},
    {"WindowAsRule", R"({"window": "mem_len"})", "window"},
    {"NegativeMemory", R"({"mem_len": -1})", "mem_len"},
    {"HugeMemory", R"({"mem_len": 1099511627776})", "mem_len"},
    {"UnknownMemoryStart", R"({"mem_init": "random"})", "mem_init"},
    {"SegmentPolicy", R"({"mem_policy": "segment"})", "mem_policy"},
    {"ExtendedContext", R"({"ext_len": 3})", "ext_len"},
    {"OtherScaleAsText", R"({"emb_scale": "2"})", "emb_scale"},
    {"OtherScaleAsNumber", R"({"emb_scale": 2})", "emb_scale"},
    {"ScaleAsBoolean", R"({"emb_scale": true})", "emb_scale"},
    {"FallingCutoffs", R"({"cutoffs": [8, 4]})", "cutoffs"},
    {"RepeatedCutoff", R"({"cutoffs": [4, 4]})", "cutoffs"},
    {"CutoffZero", R"({"cutoffs": [0, 4]})", "cutoffs"},
    {"CutoffAtTheEnd", R"({"cutoffs": [4, 12]})", "cutoffs"},
    {"CutoffBeyondTheEnd", R"({"cutoffs": [4, 13]})", "cutoffs"},
    {"CutoffWithFraction", R"({"cutoffs": [4.5]})", "cutoffs"},
    {"CutoffNoList", R"({"cutoffs": 4})", "cutoffs"},
    {"DivisorZero", R"({"div_val": 0})", "div_val"},
    {"LastBinWithoutWidth", R"({"cutoffs": [4, 8], "div_val": 3})", "div_val"},
    {"ProjectionMaybe", R"({"emb_proj_bin0": "maybe"})", "emb_proj_bin0"},
    {"TieAsNumber", R"({"tie_weight": 1})", "tie_weight"},
    {"TooFewTies", R"({"cutoffs": [4], "tie_projs": [true]})", "tie_projs"},
    {"TooManyTies", R"({"tie_projs": [true, false]})", "tie_projs"},
    {"TiesAsNumbers", R"({"tie_projs": [1]})", "tie_projs"},
    {"BiasAsText", R"({"head_bias": "yes"})", "head_bias"},
};

std::string ConfigWith(const char* fields) {
  json object = {{"vocab_size", 12}, {"n_layer", 2}, {"n_head", 2},
                 {"d_head", 3},      {"d_model", 8}, {"d_inner", 5},
                 {"mem_len", 4}};
  object.merge_patch(json::parse(fields));
  return object.dump();
}

class BadConfig : public testing::TestWithParam<BadField> {};

TEST_P(BadConfig, IsRefusedNamingFileAndField) {
  const absl::StatusOr<ModelConfig> config =
      ParseModelConfig(ConfigWith(GetParam().fields), "some/config.json");
  ASSERT_FALSE(config.ok());
  EXPECT_EQ(config.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(config.status().message()),
              AllOf(HasSubstr("some/config.json: field "),
                    HasSubstr(GetParam().named)));
}

INSTANTIATE_TEST_SUITE_P(All, BadConfig, testing::ValuesIn(kBadFields),
                         [](const auto& info) {
                           return std::string(info.param.test_name);
                         });

TEST(BadConfigs, DeriveFromAConfigThatIsAccepted) {
  EXPECT_TRUE(ParseModelConfig(ConfigWith("{}"), "config.json").ok());
}

TEST(BadConfigs, AMisspeltFieldIsNamedWithTheNearestOne) {
  EXPECT_THAT(ParseModelConfig(ConfigWith(R"({"memlen": 3})"), "c.json")
                  .status()
                  .message(),
              HasSubstr("field memlen is unknown; did you mean mem_len?"));
}

TEST(BadConfigs, ANameOfTrainingCodeIsRefusedWithTheFieldThatSaysIt) {
  EXPECT_THAT(ParseModelConfig(ConfigWith(R"({"same_length": true})"), "c.json")
                  .status()
                  .message(),
              HasSubstr("field same_length is unknown; window says it"));
}

TEST(BadConfigs, NotesOfWhoeverWroteItAreNone) {
  EXPECT_TRUE(ParseModelConfig(ConfigWith(R"({"source": "me", "tgt_len": 3})"),
                               "c.json")
                  .ok());
}

std::string MessageFor(const std::string& text) {
  const absl::StatusOr<ModelConfig> config = ParseModelConfig(text, "c.json");
  EXPECT_FALSE(config.ok()) << text;
  EXPECT_EQ(config.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(config.status().message());
}

TEST(BadConfigs, TextThatIsNoJsonObject) {
  EXPECT_THAT(MessageFor(""), HasSubstr("c.json: is not valid JSON"));
  EXPECT_THAT(MessageFor("{\"vocab_size\": 12"), HasSubstr("not valid JSON"));
  EXPECT_THAT(MessageFor("{\"a\": \"\xff\xfe\"}"), HasSubstr("UTF-8"));
  EXPECT_THAT(MessageFor("{\"a\": NaN}"), HasSubstr("not valid JSON"));
  EXPECT_THAT(MessageFor("[1, 2]"), HasSubstr("not a JSON object"));
  EXPECT_THAT(MessageFor("12"), HasSubstr("not a JSON object"));
}

TEST(BadConfigs, AFieldThatStandsTwice) {
  std::string text = ConfigWith("{}");
  text.insert(1, R"("n_layer": 3, )");
  EXPECT_THAT(MessageFor(text), HasSubstr("\"n_layer\" twice"));
}

TEST(BadConfigs, DeepNestingIsRefusedWithoutBeingBuilt) {
  const std::string deep =
      "{\"a\": " + std::string(200'000, '[') + std::string(200'000, ']') + "}";
  EXPECT_THAT(MessageFor(deep), HasSubstr("nested too deeply"));
}

TEST(BadConfigs, MessagesStayShortAndOnOneLine) {
  const std::string message = MessageFor(ConfigWith(
      (R"({"norm": "a\nb)" + std::string(5000, 'x') + "\"}").c_str()));
  EXPECT_THAT(message, AllOf(HasSubstr("norm"), Not(HasSubstr("\n"))));
  EXPECT_LT(message.size(), 300u);
}

}  // namespace
}  // namespace txl
