#include "model/convert/container/labml_folder.h"

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/model/checkpoint/raw_safetensors.h"
#include "tests/model/convert/container/checkpoint_check.h"

namespace txl {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kNpyFolder[] =
    "golden/labml-char/native/checkpoints_npy/0000040000";
constexpr char kTorchFolder[] =
    "golden/labml-char/native/checkpoints/0000040000";

NativeCheckpoint ReadFolder(const std::string& folder) {
  auto checkpoint = ReadLabmlFolder(folder);
  EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
  return checkpoint.ok() ? *std::move(checkpoint) : NativeCheckpoint();
}

TEST(LabmlFolder, ReadsNpyFilesByKey) {
  const NativeCheckpoint checkpoint = ReadFolder(TestFile(kNpyFolder));
  EXPECT_EQ(checkpoint.container, "npy folder");
  EXPECT_TRUE(checkpoint.data.is_null());
  EXPECT_EQ(checkpoint.tensors.size(), 39u);
  EXPECT_THAT(checkpoint.tensors.at("src_embed.weight").shape,
              ElementsAre(63, 24));
  EXPECT_THAT(
      checkpoint.tensors.at("transformer.layers.1.self_attn.key_pos_embeddings")
          .shape,
      ElementsAre(8192, 4, 6));
}

// The two folders hold the same weights in the two forms.
TEST(LabmlFolder, BothFormsHoldTheSame) {
  const NativeCheckpoint npy = ReadFolder(TestFile(kNpyFolder));
  const NativeCheckpoint torch = ReadFolder(TestFile(kTorchFolder));
  EXPECT_EQ(torch.container, "torch zip");
  EXPECT_EQ(torch.tensors.size(), npy.tensors.size());
  for (const auto& [name, tensor] : npy.tensors) {
    ASSERT_EQ(torch.tensors.count(name), 1u) << name;
    EXPECT_EQ(torch.tensors.at(name).shape, tensor.shape) << name;
    EXPECT_TRUE(BytesOf(torch, name) == BytesOf(npy, name)) << name;
  }
}

class LabmlInfoTest : public testing::Test {
 protected:
  void SetUp() override {
    fs::copy_file(
        absl::StrCat(TestFile(kNpyFolder), "/model_generator.bias.npy"),
        folder_ + "/b.npy");
  }

  absl::StatusOr<NativeCheckpoint> With(const std::string& info) {
    std::ofstream(folder_ + "/info.json") << info;
    return ReadLabmlFolder(folder_);
  }

  std::string Refusal(const std::string& info) {
    const auto checkpoint = With(info);
    EXPECT_EQ(checkpoint.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(checkpoint.status().message(), HasSubstr("info.json"));
    return std::string(checkpoint.status().message());
  }

  const std::string folder_ = FreshTempFolder("labml");
};

TEST_F(LabmlInfoTest, SeveralModelsArePrefixed) {
  const auto both = With(R"({"x": {"k": "b.npy"}, "y": {"k": "b.npy"}})");
  ASSERT_TRUE(both.ok()) << both.status();
  EXPECT_EQ(both->tensors.size(), 2u);
  EXPECT_THAT(both->tensors.at("x.k").shape, ElementsAre(63));
  EXPECT_THAT(both->tensors.at("y.k").shape, ElementsAre(63));
}

TEST_F(LabmlInfoTest, NoFileLiesOutsideTheFolder) {
  fs::create_directory(folder_ + "/sub");
  for (const std::string name :
       {"../labml/b.npy", "sub/../b.npy", "/etc/passwd", "..", ""}) {
    EXPECT_THAT(Refusal(absl::StrCat(R"({"m": {"k": ")", name, R"("}})")),
                HasSubstr("not a name of a file in its folder"));
    EXPECT_THAT(Refusal(absl::StrCat(R"({"m": ")", name, R"("})")),
                HasSubstr("not a name of a file in its folder"));
  }
}

TEST_F(LabmlInfoTest, RefusesOtherForms) {
  EXPECT_THAT(Refusal("{}"), HasSubstr("names no model"));
  EXPECT_THAT(Refusal(R"({"m": 1})"), HasSubstr("m maps no keys"));
  EXPECT_THAT(Refusal(R"({"m": {"k": 1}})"), HasSubstr("k names no file"));
  EXPECT_THAT(Refusal(R"({"m": "a.pth", "n": "b.pth"})"),
              HasSubstr("one of several models"));
  EXPECT_THAT(Refusal(R"({"x.y": {"k": "b.npy"}, "x": {"y.k": "b.npy"}})"),
              HasSubstr("twice"));
  Refusal("[]");
}

TEST_F(LabmlInfoTest, NamesTheFileThatIsMissingOrDamaged) {
  EXPECT_EQ(With(R"({"m": {"k": "c.npy"}})").status().code(),
            absl::StatusCode::kNotFound);
  std::ofstream(folder_ + "/d.npy") << "no array";
  EXPECT_THAT(With(R"({"m": {"k": "d.npy"}})").status().message(),
              HasSubstr("d.npy: is not an npy file"));
}

}  // namespace
}  // namespace txl
