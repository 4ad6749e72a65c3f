// Models may lie at the root, under a key, or inside a wrapper.

#include "model/convert/family/places.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
}  // namespace txl
