#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "model/convert/container/native_checkpoint.h"
#include "tests/model/checkpoint/raw_safetensors.h"
#include "tests/model/convert/container/checkpoint_check.h"

namespace txl {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

NativeCheckpoint OpenFile(const std::string& path) {
  auto checkpoint = OpenCheckpoint(path);
  EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
  if (!checkpoint.ok()) return NativeCheckpoint();
  EXPECT_EQ(checkpoint->path, path);
  return *std::move(checkpoint);
}

std::string Container(const std::string& path) {
  return OpenFile(TestFile("golden/" + path)).container;
}

std::string OpenRefusal(const std::string& path) {
  const auto checkpoint = OpenCheckpoint(path);
  EXPECT_EQ(checkpoint.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(checkpoint.status().message(), HasSubstr(path));
  EXPECT_THAT(checkpoint.status().message(), Not(HasSubstr("\n")));
  return std::string(checkpoint.status().message());
}

TEST(OpenCheckpoint, OpensFilesByContent) {
  EXPECT_EQ(Container("kimi-char/native/model.pt"), "torch zip");
  EXPECT_EQ(Container("kimi-char/native/model_legacy.pt"), "torch legacy");
  EXPECT_EQ(Container("cpw/native/ep_170.pth.tar"), "torch zip");
  EXPECT_EQ(Container("hf-adaptive/native/pytorch_model.bin"), "torch legacy");
  EXPECT_EQ(Container("hf-adaptive/native/model.safetensors"), "safetensors");
}

TEST(OpenCheckpoint, OpensFolders) {
  EXPECT_EQ(Container("hf-adaptive/native"), "safetensors");
  EXPECT_EQ(Container("labml-char/native/checkpoints/0000040000"), "torch zip");
  EXPECT_EQ(Container("labml-char/native/checkpoints_npy/0000040000"),
            "npy folder");
  EXPECT_EQ(Container("cpw/native"), "torch zip");
  EXPECT_EQ(Container("sorter/native"), "torch zip");
  EXPECT_EQ(Container("thu/native"), "torch zip");
  EXPECT_EQ(Container("nvidia-2019/native/"), "torch legacy");
}

TEST(OpenCheckpoint, OpensATensorFlowCheckpointByEveryName) {
  const std::string folder =
      TestFile("model/convert/container/testdata/tensor_bundle/saver");
  const std::string prefix = folder + "/model.ckpt-40000";
  for (const std::string& path :
       {folder, folder + "/", prefix, prefix + ".index",
        prefix + ".data-00000-of-00001"}) {
    const NativeCheckpoint checkpoint = OpenFile(path);
    EXPECT_EQ(checkpoint.container, "tensorflow checkpoint");
    ExpectTensorsOf(checkpoint, folder + "/expected.safetensors");
  }
}

class CheckpointFolderTest : public testing::Test {
 protected:
  void Copy(const std::string& golden, const std::string& name) {
    fs::copy_file(TestFile(golden), folder_ + "/" + name);
  }
  void Write(const std::string& name, const std::string& content) {
    std::ofstream(folder_ + "/" + name, std::ios::binary) << content;
  }
  // A TensorFlow checkpoint of three tensors.
  void CopyBundle(const std::string& prefix) {
    const std::string from =
        "model/convert/container/testdata/tensor_bundle/sharded/model";
    for (const std::string end :
         {".index", ".data-00000-of-00002", ".data-00001-of-00002"}) {
      Copy(from + end, prefix + end);
    }
  }

  const std::string folder_ = FreshTempFolder("open_checkpoint");
};

TEST_F(CheckpointFolderTest, OfASingleTorchFileNeedsNoName) {
  Copy("golden/sorter/native/model.pt", "anything.xyz");
  Copy("golden/hf-adaptive/native/vocab.bin", "vocab.bin");
  Copy("golden/cpw/native/dictionary.pkl", "dictionary.pkl");
  Write("log.txt", "text");
  Write("empty", "");
  EXPECT_EQ(OpenFile(folder_).container, "torch zip");
}

TEST_F(CheckpointFolderTest, OfSeveralTorchFilesIsAnErrorThatListsThem) {
  Copy("golden/sorter/native/model.pt", "a.pt");
  Copy("golden/sorter/native/model.pt", "b.pt");
  EXPECT_THAT(OpenRefusal(folder_), HasSubstr("give one of them: a.pt, b.pt"));
}

TEST_F(CheckpointFolderTest, OfHuggingFacePrefersSafetensors) {
  Copy("golden/hf-adaptive/native/pytorch_model.bin", "pytorch_model.bin");
  Copy("golden/hf-adaptive/native/vocab.bin", "tokens.bin");
  EXPECT_EQ(OpenFile(folder_).container, "torch legacy");
  Copy("golden/hf-adaptive/native/model.safetensors", "model.safetensors");
  EXPECT_EQ(OpenFile(folder_).container, "safetensors");
}

TEST_F(CheckpointFolderTest, WithAnIndexOpensItsShards) {
  Copy("golden/hf-adaptive/native/model.safetensors", "only.safetensors");
  nlohmann::json map;
  const NativeCheckpoint whole = OpenFile(folder_);
  for (const auto& [name, tensor] : whole.tensors) {
    map[name] = "only.safetensors";
  }
  Write("model.safetensors.index.json",
        nlohmann::json{{"weight_map", map}}.dump());
  const NativeCheckpoint shards = OpenFile(folder_);
  EXPECT_EQ(shards.container, "safetensors shards");
  ExpectTensorsOf(shards, folder_ + "/only.safetensors");
}

TEST_F(CheckpointFolderTest, OfTensorFlowFollowsItsNote) {
  CopyBundle("model.ckpt-1");
  EXPECT_EQ(OpenFile(folder_).tensors.size(), 3u);
  CopyBundle("model.ckpt-2");
  EXPECT_THAT(OpenRefusal(folder_),
              HasSubstr("model.ckpt-1.index, model.ckpt-2.index"));
  // As it was written on another machine.
  Write("checkpoint",
        "model_checkpoint_path: \"/data/run/model.ckpt-2\"\n"
        "all_model_checkpoint_paths: \"/data/run/model.ckpt-1\"\n");
  EXPECT_EQ(OpenFile(folder_).tensors.size(), 3u);
  Write("checkpoint", "model_checkpoint_path: \"..\"\n");
  EXPECT_THAT(OpenRefusal(folder_), HasSubstr("not a name of a file"));
  Write("checkpoint", "model_checkpoint_path: \"model.ckpt-3\"\n");
  EXPECT_EQ(OpenCheckpoint(folder_).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_THAT(OpenRefusal(folder_ + "/checkpoint"),
              HasSubstr("give its folder"));
}

TEST_F(CheckpointFolderTest, OfRanksJoinsThem) {
  const std::string file = "golden/thu/native/mp_rank_00_model_states.pt";
  Copy(file, "mp_rank_00_model_states.pt");
  const NativeCheckpoint alone = OpenFile(folder_);
  Copy(file, "mp_rank_01_model_states.pt");
  const NativeCheckpoint both = OpenFile(folder_);
  EXPECT_EQ(both.tensors.size(), 2 * alone.tensors.size());
  for (const auto& [name, tensor] : alone.tensors) {
    EXPECT_EQ(both.tensors.count("rank.00." + name), 1u) << name;
    EXPECT_EQ(both.tensors.count("rank.01." + name), 1u) << name;
  }
  EXPECT_TRUE(both.data["rank"]["01"].is_object());
}

TEST_F(CheckpointFolderTest, OfDeepSpeedFollowsItsNote) {
  fs::create_directory(folder_ + "/step7");
  Copy("golden/thu/native/mp_rank_00_model_states.pt",
       "step7/mp_rank_00_model_states.pt");
  Write("latest", "step7\n");
  EXPECT_EQ(OpenFile(folder_).container, "torch zip");
  Write("latest", "../open_checkpoint/step7");
  EXPECT_THAT(OpenRefusal(folder_), HasSubstr("not a name of a file"));
  // A note that leads in a circle is followed once.
  fs::create_directory(folder_ + "/step8");
  Write("latest", "step8");
  Write("step8/latest", "step8");
  EXPECT_THAT(OpenCheckpoint(folder_).status().message(),
              HasSubstr("without a checkpoint"));
}

TEST_F(CheckpointFolderTest, WithoutCheckpointSaysSo) {
  EXPECT_THAT(OpenRefusal(folder_), HasSubstr("without a checkpoint"));
}

TEST_F(CheckpointFolderTest, FilesThatAreNoCheckpointAreNamedForWhatTheyAre) {
  Write("a.pt", "\x1f\x8b\x08");
  EXPECT_THAT(OpenRefusal(folder_ + "/a.pt"), HasSubstr("is a gzip file"));
  Write("a.pt", "");
  EXPECT_THAT(OpenRefusal(folder_ + "/a.pt"), HasSubstr("is empty"));
  Write("a.safetensors", "");
  EXPECT_THAT(OpenRefusal(folder_ + "/a.safetensors"), HasSubstr("is empty"));
  Write("a.safetensors", "no header at all");
  EXPECT_THAT(OpenRefusal(folder_ + "/a.safetensors"), HasSubstr("header"));
  EXPECT_THAT(OpenRefusal(TestFile("golden/cpw/native/dictionary.pkl")),
              HasSubstr("is a plain pickle, no torch file"));
  EXPECT_EQ(OpenCheckpoint(folder_ + "/none").status().code(),
            absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace txl
