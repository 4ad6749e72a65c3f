// Models may lie at the root, under a key, or inside a wrapper.

#include "model/convert/family/plan_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>

#include "tests/model/convert/family/kpt_tensors.h"
#include "tests/model/convert/family/stored_tensors.h"

namespace txl {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

NativeCheckpoint TensorsNamed(const std::vector<std::string>& names) {
  NativeCheckpoint checkpoint;
  checkpoint.path = "in_memory.pt";
  for (const std::string& name : names) {
    checkpoint.tensors[name] = CountingTensor({1});
  }
  return checkpoint;
}

TEST(HasPartTest, APartBeginsWithAComponent) {
  const NativeCheckpoint checkpoint =
      TensorsNamed({"model_state.crit.out_layers.0.bias"});
  EXPECT_TRUE(HasPart(checkpoint, "crit.out_layers."));
  EXPECT_TRUE(HasPart(checkpoint, "model_state."));
  EXPECT_FALSE(HasPart(checkpoint, "rit.out_layers."));
  EXPECT_FALSE(HasPart(checkpoint, "crit.out_layers.1"));
}

TEST(PlaceBeforeTest, IsWhatStandsBeforeTheName) {
  EXPECT_EQ(*PlaceBefore(TensorsNamed({"emb.w", "other"}), "emb.w"), "");
  EXPECT_EQ(*PlaceBefore(TensorsNamed({"a.b.emb.w"}), "emb.w"), "a.b.");
}

TEST(PlaceBeforeTest, ALongerComponentIsAnotherName) {
  const auto place = PlaceBefore(TensorsNamed({"xemb.w"}), "emb.w");
  EXPECT_EQ(place.status().message(), "in_memory.pt: tensor emb.w is missing");
}

TEST(PlaceBeforeTest, TwoModelsAreRefused) {
  const auto place = PlaceBefore(TensorsNamed({"ema.emb.w", "emb.w"}), "emb.w");
  EXPECT_THAT(place.status().message(),
              AllOf(HasSubstr("two models"), HasSubstr("ema.emb.w")));
}

TEST(ObjectAtTest, WalksKeysAndModules) {
  const json data = {
      {"state", {{"model", {{"n", 1}}}}},
      {"_modules", {{"layers", {{"_modules", {{"0", {{"n", 2}}}}}}}}}};
  EXPECT_EQ(ObjectAt(data, "")->size(), 2u);
  EXPECT_EQ(ObjectAt(data, "state.model.")->at("n"), 1);
  EXPECT_EQ(ObjectAt(data, "layers.0")->at("n"), 2);
}

TEST(ObjectAtTest, IsNullWhereThereIsNoObject) {
  const json data = {{"a", {{"b", 3}}}, {"list", {1, 2}}};
  EXPECT_EQ(ObjectAt(data, "a.b"), nullptr);
  EXPECT_EQ(ObjectAt(data, "a.c"), nullptr);
  EXPECT_EQ(ObjectAt(data, "list.0"), nullptr);
  EXPECT_EQ(ObjectAt(json(), ""), nullptr);
}

TEST(MemberTest, IsDiscardedWhenAbsentOrNull) {
  const json object = {{"a", 1}, {"b", nullptr}};
  EXPECT_EQ(Member(&object, "a"), 1);
  EXPECT_TRUE(Member(&object, "b").is_discarded());
  EXPECT_TRUE(Member(&object, "c").is_discarded());
  EXPECT_TRUE(Member(nullptr, "a").is_discarded());
  const json list = {1};
  EXPECT_TRUE(Member(&list, "a").is_discarded());
}

}  // namespace

// Who says what a field is: weights, spec, checkpoint, family, in this order.

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

// Every tensor of a model is used or expressly ignored; the first thing that is
// wrong is named.

namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

NativeCheckpoint TwoTensors() {
  return StateDict({{"emb.weight", CountingTensor({3, 2})},
                    {"head.bias", CountingTensor({3})}});
}

TEST(TensorTableTest, GivesATensorAndFinishesOnceAllAreUsed) {
  const NativeCheckpoint checkpoint = TwoTensors();
  TensorTable table(checkpoint, "");
  EXPECT_TRUE(table.Has("emb.weight"));
  EXPECT_FALSE(table.Has("emb.bias"));
  EXPECT_EQ(table.Dim("emb.weight", 1), 2);
  EXPECT_EQ(table.Dims("head.bias"), 1);
  EXPECT_THAT(FloatsOf(table.Take("emb.weight", {3, 2})),
              ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(table.Unused(), ElementsAre("head.bias"));
  EXPECT_EQ(table.Take("head.bias", {-1}).shape[0], 3);
  EXPECT_THAT(table.Unused(), IsEmpty());
  EXPECT_TRUE(table.Finish().ok()) << table.Finish();
}

TEST(TensorTableTest, LookingAtSizesIsNoUse) {
  const NativeCheckpoint checkpoint = TwoTensors();
  TensorTable table(checkpoint, "");
  table.Dim("emb.weight", 0);
  EXPECT_THAT(table.Unused(), ElementsAre("emb.weight", "head.bias"));
}

TEST(TensorTableTest, AMissingTensorIsNamed) {
  const NativeCheckpoint checkpoint = TwoTensors();
  TensorTable table(checkpoint, "");
  const StoredTensor nothing = table.Take("head.weight", {4, -1});
  EXPECT_THAT(nothing.shape, ElementsAre(4, 0));
  EXPECT_EQ(table.Finish().message(),
            "in_memory.pt: tensor head.weight is missing");
}

TEST(TensorTableTest, AMisshapedTensorIsNamedWithBothShapes) {
  const NativeCheckpoint checkpoint = TwoTensors();
  TensorTable table(checkpoint, "");
  table.Take("emb.weight", {3, -1, 7});
  EXPECT_EQ(table.Finish().message(),
            "in_memory.pt: tensor emb.weight has shape [3, 2], must have "
            "[3, any, 7]");
}

TEST(TensorTableTest, AnySizeMeansAtLeastOne) {
  const NativeCheckpoint checkpoint =
      StateDict({{"w", CountingTensor({0, 2})}});
  TensorTable table(checkpoint, "");
  table.Take("w", {-1, 2});
  EXPECT_THAT(table.Finish().message(), HasSubstr("[0, 2]"));
}

TEST(TensorTableTest, SizesOfWhatIsNotThereAreErrors) {
  const NativeCheckpoint checkpoint = TwoTensors();
  TensorTable absent(checkpoint, "");
  EXPECT_EQ(absent.Dim("head.weight", 0), 0);
  EXPECT_THAT(absent.Finish().message(), HasSubstr("head.weight is missing"));
  TensorTable flat(checkpoint, "");
  EXPECT_EQ(flat.Dim("head.bias", 1), 0);
  EXPECT_THAT(flat.Finish().message(),
              AllOf(HasSubstr("head.bias"), HasSubstr("1 dimensions")));
}

TEST(TensorTableTest, OnlyTheFirstErrorIsKept) {
  const NativeCheckpoint checkpoint = TwoTensors();
  TensorTable table(checkpoint, "");
  table.Fail("first");
  table.Take("head.weight", {1});
  table.Fail("second");
  EXPECT_EQ(table.Finish().message(), "in_memory.pt: first");
  EXPECT_EQ(table.status(), table.Finish());
}

TEST(TensorTableTest, AnUnknownTensorIsNamed) {
  const NativeCheckpoint checkpoint = TwoTensors();
  TensorTable table(checkpoint, "");
  table.Take("emb.weight", {3, 2});
  EXPECT_EQ(table.Finish().message(),
            "in_memory.pt: tensor head.bias is not part of the model");
}

TEST(TensorTableTest, ManyUnknownTensorsAreCounted) {
  std::map<std::string, StoredTensor> tensors;
  for (const char* name : {"a", "b", "c", "d", "e", "f"}) {
    tensors[name] = CountingTensor({1});
  }
  const NativeCheckpoint checkpoint = StateDict(std::move(tensors));
  const TensorTable table(checkpoint, "");
  EXPECT_THAT(table.Finish().message(), HasSubstr("a, b, c, d and 2 more"));
}

TEST(TensorTableTest, WhatIsIgnoredIsUsed) {
  const NativeCheckpoint checkpoint =
      StateDict({{"pos.freq", CountingTensor({1})},
                 {"crit.shared.0", CountingTensor({1})},
                 {"crit.shared.1", CountingTensor({1})},
                 {"layers.0.mask", CountingTensor({1})}});
  TensorTable table(checkpoint, "");
  table.Ignore("pos.freq");
  table.Ignore("not.there");
  table.IgnorePrefix("crit.shared.");
  EXPECT_THAT(table.Unused(), ElementsAre("layers.0.mask"));
  table.Ignore("layers.0.mask");
  EXPECT_TRUE(table.Finish().ok());
}

TEST(TensorTableTest, CountsNumbersWithoutAGap) {
  const NativeCheckpoint checkpoint =
      StateDict({{"layers.0.w", CountingTensor({1})},
                 {"layers.1.w", CountingTensor({1})},
                 {"layers.10.w", CountingTensor({1})},
                 {"layers.3.w", CountingTensor({1})},
                 {"projs.0", CountingTensor({1})}});
  const TensorTable table(checkpoint, "");
  EXPECT_EQ(table.Count("layers."), 2);
  EXPECT_EQ(table.Count("projs."), 1);
  EXPECT_EQ(table.Count("heads."), 0);
}

NativeCheckpoint Nested() {
  NativeCheckpoint checkpoint;
  checkpoint.path = "nested.pt";
  checkpoint.tensors = {{"model_state.w", CountingTensor({2})},
                        {"optimizer.w", CountingTensor({5})}};
  checkpoint.data = {
      {"epoch", 3},
      {"model_state", {{"w", {{kTensorKey, "model_state.w"}}}}},
      {"optimizer", {{"lr", 0.1}, {"w", {{kTensorKey, "optimizer.w"}}}}}};
  return checkpoint;
}

TEST(TensorTableTest, APrefixLeavesTheRestOfTheCheckpointAlone) {
  const NativeCheckpoint checkpoint = Nested();
  TensorTable table(checkpoint, "model_state.");
  EXPECT_FALSE(table.Has("optimizer.w"));
  EXPECT_EQ(table.Take("w", {2}).numel(), 2);
  EXPECT_TRUE(table.Finish().ok()) << table.Finish();
}

TEST(TensorTableTest, ErrorsNameTheWholePlace) {
  const NativeCheckpoint checkpoint = Nested();
  TensorTable missing(checkpoint, "model_state.");
  missing.Take("b", {2});
  EXPECT_EQ(missing.Finish().message(),
            "nested.pt: tensor model_state.b is missing");
  const TensorTable unused(checkpoint, "model_state.");
  EXPECT_THAT(unused.Finish().message(), HasSubstr("model_state.w"));
}

TEST(TensorTableTest, AnEntryThatIsNoTensorIsAnError) {
  NativeCheckpoint checkpoint = Nested();
  checkpoint.data["model_state"]["command"] = {{kClassKey, "os.system"}};
  const TensorTable table(checkpoint, "model_state.");
  EXPECT_EQ(table.Finish().message(),
            "nested.pt: entry model_state.command is not a tensor");
}

TEST(TensorTableTest, ADictionaryWithoutTensorsIsNoStateDict) {
  NativeCheckpoint checkpoint = Nested();
  checkpoint.data["model_state"] = {{"format", "pt"}};  // metadata of a file
  TensorTable table(checkpoint, "model_state.");
  table.Take("w", {2});
  EXPECT_TRUE(table.Finish().ok()) << table.Finish();
}

TEST(TensorTableTest, AViewOfMoreThanItsStorageIsAnError) {
  NativeCheckpoint checkpoint = StateDict({{"w", CountingTensor({1, 2})}});
  StoredTensor& w = checkpoint.tensors["w"];
  w.shape = {1000000, 2};
  w.strides = {0, 1};  // one row, shown a million times
  TensorTable table(checkpoint, "");
  table.Take("w", {-1, 2});
  EXPECT_THAT(table.Finish().message(), HasSubstr("its 8 bytes"));
}

TEST(TensorTableTest, AttributesOfAModuleAreNoEntries) {
  NativeCheckpoint checkpoint = Nested();
  checkpoint.data["model_state"] = {{kClassKey, "a.Model"}, {"n_layer", 2}};
  TensorTable table(checkpoint, "model_state.");
  table.Take("w", {2});
  EXPECT_TRUE(table.Finish().ok()) << table.Finish();
}

}  // namespace

// When two names are one tensor.

namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(SameElementsTest, ComparesBitsAndNotStorages) {
  const StoredTensor a = CountingTensor({3, 2});
  EXPECT_TRUE(*SameElements(a, CopyOf(a)));
  EXPECT_TRUE(*SameElements(a, Transposed(CopyOf(Transposed(a)))));
  EXPECT_FALSE(*SameElements(a, CountingTensor({3, 2}, 1)));
  EXPECT_FALSE(*SameElements(a, CountingTensor({2, 3})));
  EXPECT_FALSE(
      *SameElements(FloatTensor({1}, {0.f}), FloatTensor({1}, {-0.f})));
}

TEST(SameElementsTest, ComparesEveryRowOfALargeTensor) {
  // 12 MB: more than one piece of reading.
  const StoredTensor a = CountingTensor({3000, 1000});
  std::vector<float> values = FloatsOf(a);
  EXPECT_TRUE(*SameElements(a, FloatTensor({3000, 1000}, values)));
  values.back() = -1;
  EXPECT_FALSE(*SameElements(a, FloatTensor({3000, 1000}, values)));
}

// A builder over "own" and "other".
class IsTiedTest : public testing::Test {
 protected:
  void Set(std::optional<StoredTensor> own) {
    TensorMap tensors = {{"other", other_}};
    if (own.has_value()) tensors["own"] = *own;
    checkpoint_ = StateDict(std::move(tensors));
    builder_ = std::make_unique<PlanBuilder>(
        "test", PlanInput{checkpoint_, json(), json()}, "");
  }
  bool Tied(std::optional<bool> configured) {
    return IsTied(*builder_, "own", "other", configured);
  }

  const StoredTensor other_ = CountingTensor({2, 2});
  NativeCheckpoint checkpoint_;
  std::unique_ptr<PlanBuilder> builder_;
};

TEST_F(IsTiedTest, OneViewIsTiedWhateverIsConfigured) {
  for (const std::optional<bool> configured :
       {std::optional<bool>(), std::optional<bool>(false),
        std::optional<bool>(true)}) {
    Set(other_);
    EXPECT_TRUE(Tied(configured));
    EXPECT_THAT(builder_->plan.oddities, IsEmpty());
    EXPECT_TRUE(builder_->table.Finish().ok()) << builder_->table.Finish();
  }
}

TEST_F(IsTiedTest, AnAbsentTensorIsTiedUnlessConfiguredApart) {
  Set(std::nullopt);
  EXPECT_TRUE(Tied(true));
  EXPECT_THAT(builder_->plan.oddities, IsEmpty());
  EXPECT_FALSE(Tied(false));
  EXPECT_TRUE(Tied(std::nullopt));
  EXPECT_THAT(builder_->plan.oddities, ElementsAre(HasSubstr("own is absent")));
}

TEST_F(IsTiedTest, ACopyIsTiedOnlyWhenConfigured) {
  Set(CopyOf(other_));
  EXPECT_FALSE(Tied(std::nullopt));
  EXPECT_FALSE(Tied(false));
  EXPECT_THAT(builder_->plan.oddities, IsEmpty());
  EXPECT_TRUE(Tied(true));
  EXPECT_THAT(builder_->plan.oddities, ElementsAre(HasSubstr("is a copy")));
}

TEST_F(IsTiedTest, ADifferentTensorCannotBeConfiguredTied) {
  Set(CountingTensor({2, 2}, 5));
  EXPECT_FALSE(Tied(std::nullopt));
  EXPECT_TRUE(builder_->table.status().ok());
  Tied(true);
  EXPECT_THAT(builder_->table.status().message(),
              HasSubstr("tensors own and other differ"));
}

}  // namespace

}  // namespace txl
