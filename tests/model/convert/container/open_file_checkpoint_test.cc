#include "model/convert/container/open_file_checkpoint.h"

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/model/checkpoint/raw_safetensors.h"
#include "tests/model/convert/container/checkpoint_check.h"

namespace txl {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST(SafetensorsFile, HoldsItsTensors) {
  for (const std::string name : {"hf-adaptive", "hf-prelnorm-tied-r"}) {
    const std::string path =
        TestFile("golden/" + name + "/native/model.safetensors");
    const auto checkpoint = ReadSafetensorsFile(path);
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    EXPECT_EQ(checkpoint->container, "safetensors");
    EXPECT_EQ(checkpoint->path, path);
    EXPECT_THAT(checkpoint->tensors, Not(IsEmpty()));
    ExpectTensorsOf(*checkpoint, path);
  }
}

TEST(SafetensorsFile, KeepsItsMetadataAsData) {
  const std::string path = WriteTempFile(
      "meta.safetensors",
      RawSafetensors(Header({Entry("a", "U8", "[2]", 0, 2),
                             R"("__metadata__":{"format":"pt"})"}),
                     "xy"));
  const auto checkpoint = ReadSafetensorsFile(path);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_EQ(checkpoint->data, (nlohmann::json{{"format", "pt"}}));
  EXPECT_EQ(BytesOf(*checkpoint, "a"), "xy");
}

TEST(SafetensorsFile, NamesATensorOfAnUnsupportedDType) {
  for (const std::string dtype : {"BOOL", "F8_E4M3", "I16"}) {
    const std::string path = WriteTempFile(
        "dtype.safetensors",
        RawSafetensors(Header({Entry("odd", dtype, "[1]", 0, 1)}), "x"));
    const auto checkpoint = ReadSafetensorsFile(path);
    EXPECT_EQ(checkpoint.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(checkpoint.status().message(),
                HasSubstr(absl::StrCat("tensor odd has the unsupported dtype ",
                                       dtype)));
  }
}

// What hostile.json says about them that the file alone shows.
TEST(SafetensorsFile, RefusesHostileFiles) {
  for (const std::string name :
       {"hf_header_longer_than_file", "hf_header_length_2p63",
        "hf_overlapping_offsets", "hf_shape_overflow", "hf_negative_shape",
        "hf_duplicate_key", "hf_non_utf8_name"}) {
    const std::string path = TestFile("hostile/" + name + "/model.safetensors");
    ASSERT_TRUE(std::filesystem::exists(path)) << path;
    const auto checkpoint = ReadSafetensorsFile(path);
    EXPECT_EQ(checkpoint.status().code(), absl::StatusCode::kInvalidArgument)
        << name;
    EXPECT_THAT(checkpoint.status().message(), HasSubstr(path));
    EXPECT_THAT(checkpoint.status().message(), Not(HasSubstr("\n")));
  }
  EXPECT_TRUE(
      ReadSafetensorsFile(TestFile("hostile/benign_hf/model.safetensors"))
          .ok());
}

}  // namespace

}  // namespace txl
