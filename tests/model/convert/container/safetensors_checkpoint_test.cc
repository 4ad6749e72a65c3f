#include "model/convert/container/safetensors_checkpoint.h"

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/model/checkpoint/raw_safetensors.h"
#include "tests/model/convert/container/checkpoint_check.h"

namespace txl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

void Write(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

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

// Two files with tensors a, b and c, and their index.
class SafetensorsShardsTest : public testing::Test {
 protected:
  void SetUp() override {
    Write(folder_ + "/one.safetensors",
          RawSafetensors(Header({Entry("a", "U8", "[1]", 0, 1),
                                 Entry("b", "U8", "[2]", 1, 3)}),
                         "abb"));
    Write(folder_ + "/two.safetensors",
          RawSafetensors(Header({Entry("c", "U8", "[3]", 0, 3)}), "ccc"));
  }

  absl::StatusOr<NativeCheckpoint> Read(const std::string& weight_map) {
    Write(folder_ + "/index.json",
          absl::StrCat(R"({"metadata": {"total_size": 6}, "weight_map": )",
                       weight_map, "}"));
    return ReadSafetensorsShards(folder_, "index.json");
  }

  std::string Refusal(const std::string& weight_map) {
    const auto checkpoint = Read(weight_map);
    EXPECT_EQ(checkpoint.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(checkpoint.status().message(), HasSubstr("index.json"));
    return std::string(checkpoint.status().message());
  }

  const std::string folder_ = FreshTempFolder("shards");
};

TEST_F(SafetensorsShardsTest, HoldWhatTheirFilesHold) {
  const auto checkpoint = Read(
      R"({"a": "one.safetensors", "b": "one.safetensors",
          "c": "two.safetensors"})");
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_EQ(checkpoint->container, "safetensors shards");
  EXPECT_EQ(checkpoint->tensors.size(), 3u);
  EXPECT_EQ(BytesOf(*checkpoint, "a"), "a");
  EXPECT_EQ(BytesOf(*checkpoint, "b"), "bb");
  EXPECT_EQ(BytesOf(*checkpoint, "c"), "ccc");
}

TEST_F(SafetensorsShardsTest, EveryTensorIsInTheFileThatTheIndexSays) {
  EXPECT_THAT(Refusal(R"({"a": "one.safetensors", "b": "two.safetensors",
                          "c": "two.safetensors"})"),
              HasSubstr("does not list tensor b of one.safetensors"));
  EXPECT_THAT(Refusal(R"({"a": "one.safetensors", "b": "one.safetensors",
                          "c": "two.safetensors", "d": "two.safetensors"})"),
              HasSubstr("two.safetensors holds tensor d"));
  EXPECT_THAT(Refusal(R"({"a": "one.safetensors", "c": "two.safetensors"})"),
              HasSubstr("does not list tensor b"));
}

// A name is in two files: one of them holds what the index does not say.
TEST_F(SafetensorsShardsTest, NoTensorIsInTwoFiles) {
  std::filesystem::copy_file(folder_ + "/two.safetensors",
                             folder_ + "/three.safetensors");
  EXPECT_THAT(Refusal(R"({"a": "one.safetensors", "b": "one.safetensors",
                          "c": "two.safetensors", "x": "three.safetensors"})"),
              HasSubstr("three.safetensors"));
}

TEST_F(SafetensorsShardsTest, NoFileLiesOutsideTheFolder) {
  for (const std::string name : {"../shards/one.safetensors", "/etc/passwd",
                                 "..", "", "sub\\\\one.safetensors"}) {
    EXPECT_THAT(Refusal(absl::StrCat(R"({"a": ")", name, R"("})")),
                HasSubstr("no name of a file in its folder"));
  }
}

TEST_F(SafetensorsShardsTest, RefusesAnIndexWithoutMap) {
  Refusal("{}");
  Refusal("[]");
  Refusal("null");
  EXPECT_THAT(Refusal(R"({"a": 1})"), HasSubstr("no file for a"));
  EXPECT_EQ(ReadSafetensorsShards(folder_, "other.json").status().code(),
            absl::StatusCode::kNotFound);
}

TEST_F(SafetensorsShardsTest, NamesAMissingFile) {
  const auto checkpoint = Read(R"({"a": "three.safetensors"})");
  EXPECT_EQ(checkpoint.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(checkpoint.status().message(), HasSubstr("three.safetensors"));
}

}  // namespace
}  // namespace txl
