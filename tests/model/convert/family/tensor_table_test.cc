// Every tensor of a model is used or expressly ignored; the first thing that is
// wrong is named.

#include "model/convert/family/tensor_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/model/convert/family/stored_tensors.h"

namespace txl {
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
            "in_memory.pt: tensor head.bias is no part of the model");
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
            "nested.pt: entry model_state.command is no tensor");
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
}  // namespace txl
