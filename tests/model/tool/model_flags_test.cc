#include "model/tool/model_flags.h"

#include <ATen/Context.h>
#include <ATen/core/Tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/text/symbol_vocabulary.h"

namespace txl {
namespace {

TEST(ModelFlagsTest, DevicesAreNamed) {
  EXPECT_EQ(*ParseDevice("cpu"), c10::Device(c10::kCPU));
  EXPECT_EQ(ParseDevice("auto")->is_cuda(), at::hasCUDA());
}

TEST(ModelFlagsTest, UnknownDevicesNameTheFlag) {
  for (const char* name : {"", "gpu", "CPU"}) {
    const auto device = ParseDevice(name);
    EXPECT_EQ(device.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(device.status().message(), testing::HasSubstr("--device"));
  }
}

TEST(ModelFlagsTest, AGpuThatIsNotThereIsAnErrorNotACrash) {
  if (!at::hasCUDA()) {
    EXPECT_THAT(ParseDevice("cuda").status().message(),
                testing::HasSubstr("no GPU"));
  } else {
    EXPECT_TRUE(ParseDevice("cuda")->is_cuda());
  }
}

TEST(ModelFlagsTest, TheUnknownSymbolHasToBeThere) {
  SymbolRules rules;
  const SymbolVocabulary strict("symbols", {"a", "?"}, rules);
  rules.unknown_id = 1;
  const SymbolVocabulary lenient("symbols", {"a", "?"}, rules);
  EXPECT_FALSE(EncodeOptionsOf(strict, "")->skip_unknown);
  EXPECT_TRUE(EncodeOptionsOf(strict, "skip")->skip_unknown);
  EXPECT_TRUE(EncodeOptionsOf(lenient, "skip")->skip_unknown);
  EXPECT_FALSE(EncodeOptionsOf(lenient, "unk")->skip_unknown);
  const auto lacking = EncodeOptionsOf(strict, "unk");
  EXPECT_EQ(lacking.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(lacking.status().message(), testing::HasSubstr("--unknown"));
}

TEST(ModelFlagsTest, AMissingDirectoryIsNamed) {
  ModelFlags flags;
  flags.directory = "/no/such/model";
  const auto model = OpenModelOf(flags);
  EXPECT_FALSE(model.ok());
  EXPECT_THAT(model.status().message(), testing::HasSubstr("/no/such/model"));
}

}  // namespace
}  // namespace txl
