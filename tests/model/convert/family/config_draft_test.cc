// Who says what a field is: weights, spec, checkpoint, family, in this order.

#include "model/convert/family/config_draft.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace txl {
namespace {

using nlohmann::json;
using testing::HasSubstr;

// The fields without which config.json is incomplete.
void SetSizes(ConfigDraft& draft) {
  for (const char* field : {"vocab_size", "n_layer", "n_head", "d_head"}) {
    draft.FromWeights(field, 2);
  }
  for (const char* field : {"d_model", "d_embed", "d_inner"}) {
    draft.FromWeights(field, 4);
  }
}

ConversionPlan Finished(const ConfigDraft& draft) {
  ConversionPlan plan;
  EXPECT_TRUE(draft.Finish("file.pt", plan).ok())
      << draft.Finish("file.pt", plan);
  return plan;
}

std::string ErrorOf(const ConfigDraft& draft) {
  ConversionPlan plan;
  const absl::Status status = draft.Finish("file.pt", plan);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return std::string(status.message());
}

TEST(ConfigDraftTest, ASpecGoesBeforeTheCheckpointAndTheFamily) {
  ConfigDraft draft(json{{"mem_len", 7}});
  SetSizes(draft);
  draft.FromCheckpoint("mem_len", 8);
  draft.FamilyDefault("mem_len", 9);
  const ConversionPlan plan = Finished(draft);
  EXPECT_EQ(plan.config.mem_len, 7);
  EXPECT_EQ(plan.fields.at("mem_len").origin, FieldOrigin::kSpec);
}

TEST(ConfigDraftTest, TheCheckpointGoesBeforeTheFamily) {
  ConfigDraft draft{json()};
  SetSizes(draft);
  draft.FromCheckpoint("mem_len", 8);
  draft.FamilyDefault("mem_len", 9);
  const ConversionPlan plan = Finished(draft);
  EXPECT_EQ(plan.config.mem_len, 8);
  EXPECT_EQ(plan.fields.at("mem_len").origin, FieldOrigin::kCheckpoint);
}

TEST(ConfigDraftTest, TheCheckpointGoesBeforeTheFamilyInAnyOrder) {
  ConfigDraft draft{json()};
  SetSizes(draft);
  draft.FamilyDefault("mem_len", 9);
  draft.FromCheckpoint("mem_len", 8);
  EXPECT_EQ(Finished(draft).config.mem_len, 8);
}

TEST(ConfigDraftTest, TheFamilyDecidesWhereNobodySays) {
  ConfigDraft draft{json()};
  SetSizes(draft);
  draft.FromCheckpoint("mem_len", json(json::value_t::discarded));
  draft.FamilyDefault("mem_len", 9);
  const ConversionPlan plan = Finished(draft);
  EXPECT_EQ(plan.config.mem_len, 9);
  EXPECT_EQ(plan.fields.at("mem_len").origin, FieldOrigin::kFamily);
}

TEST(ConfigDraftTest, ASpecThatAgreesWithTheWeightsIsFine) {
  ConfigDraft draft(json{{"n_layer", 2}, {"mem_len", 1}, {"cutoffs", {1}}});
  SetSizes(draft);
  draft.FromWeights("cutoffs", {1});
  const ConversionPlan plan = Finished(draft);
  EXPECT_EQ(plan.fields.at("n_layer").origin, FieldOrigin::kWeights);
}

TEST(ConfigDraftTest, ASpecThatContradictsTheWeightsIsNamed) {
  ConfigDraft draft(json{{"n_layer", 3}, {"mem_len", 1}});
  SetSizes(draft);
  EXPECT_EQ(ErrorOf(draft),
            "file.pt: field n_layer: the spec says 3, the weights show 2");
}

TEST(ConfigDraftTest, WeightsThatContradictEachOtherAreNamed) {
  ConfigDraft draft{json()};
  SetSizes(draft);
  draft.FromWeights("d_inner", 5);
  EXPECT_THAT(ErrorOf(draft), HasSubstr("d_inner"));
}

TEST(ConfigDraftTest, TheWeightsGoBeforeTheCheckpoint) {
  ConfigDraft draft(json{{"mem_len", 1}});
  SetSizes(draft);
  draft.FromCheckpoint("n_layer", 12);
  EXPECT_EQ(Finished(draft).config.n_layer, 2);
}

TEST(ConfigDraftTest, OtherFieldsOfASpecAreIgnored) {
  ConfigDraft draft(json{{"mem_len", 1}, {"case", "x"}, {"observed", {1}}});
  SetSizes(draft);
  EXPECT_FALSE(Finished(draft).fields.contains("case"));
}

TEST(ConfigDraftTest, NullIsNoLimitOrNothing) {
  ConfigDraft draft(
      json{{"mem_len", 6}, {"window", nullptr}, {"emb_proj_bin0", nullptr}});
  SetSizes(draft);
  draft.FromWeights("emb_proj_bin0", "absent");
  draft.FromCheckpoint("window", 6);
  const ConversionPlan plan = Finished(draft);
  EXPECT_FALSE(plan.config.window.has_value());
  EXPECT_EQ(plan.fields.at("window").origin, FieldOrigin::kSpec);
  EXPECT_EQ(plan.config.emb_proj_bin0, false);
}

TEST(ConfigDraftTest, ReadsBackWhatHolds) {
  ConfigDraft draft(json{{"mem_len", 6}, {"tie_weight", true}});
  EXPECT_EQ(draft.Int("mem_len", 1), 6);
  EXPECT_EQ(draft.Int("div_val", 1), 1);
  EXPECT_TRUE(draft.Bool("tie_weight", false));
  EXPECT_FALSE(draft.Bool("final_norm", false));
  EXPECT_TRUE(draft.Get("window").is_null());
  draft.FromCheckpoint("window", 9);
  EXPECT_EQ(draft.Get("window"), 9);
}

TEST(ConfigDraftTest, AValueOutOfRangeIsNamedWithTheFile) {
  ConfigDraft draft(json{{"mem_len", -3}});
  SetSizes(draft);
  EXPECT_THAT(ErrorOf(draft), HasSubstr("file.pt"));
  EXPECT_THAT(ErrorOf(draft), HasSubstr("mem_len"));
}

TEST(ConfigDraftTest, AMissingFieldIsNamed) {
  ConfigDraft draft{json()};
  SetSizes(draft);
  EXPECT_THAT(ErrorOf(draft), HasSubstr("mem_len"));
}

TEST(ConfigDraftTest, IllFormedTextOfACheckpointIsAnErrorAndNoException) {
  ConfigDraft draft(json{{"mem_len", 1}});
  SetSizes(draft);
  draft.FromCheckpoint("act", "\xff\xfe");
  EXPECT_THAT(ErrorOf(draft), HasSubstr("act"));
}

TEST(ConfigDraftTest, ASpecMustBeAnObject) {
  ConfigDraft draft(json::array());
  EXPECT_THAT(ErrorOf(draft), HasSubstr("spec"));
}

TEST(ConfigDraftTest, EveryFieldOfTheConfigHasAnOrigin) {
  ConfigDraft draft(json{{"mem_len", 1}});
  SetSizes(draft);
  const ConversionPlan plan = Finished(draft);
  const json config = json::parse(ModelConfigToJson(plan.config));
  for (const auto& [field, value] : config.items()) {
    ASSERT_TRUE(plan.fields.contains(field)) << field;
    EXPECT_EQ(plan.fields.at(field).value, value) << field;
  }
  EXPECT_EQ(plan.fields.at("pos_base").origin, FieldOrigin::kFamily);
}

}  // namespace
}  // namespace txl
