// Checkpoints in several files: what the index says against what is there.

#include "model/convert/container/indexed_shards.h"

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/model/checkpoint/raw_safetensors.h"
#include "tests/model/convert/container/checkpoint_check.h"
#include "tests/model/convert/container/zip_writer.h"

namespace txl {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
namespace fs = std::filesystem;

using ShardBytes = std::map<std::string, std::string>;  // tensor -> bytes

std::string SafetensorsFile(const ShardBytes& tensors) {
  std::vector<std::string> entries;
  std::string data;
  for (const auto& [name, bytes] : tensors) {
    const size_t begin = data.size();
    data += bytes;
    entries.push_back(Entry(name, "U8", absl::StrCat("[", bytes.size(), "]"),
                            static_cast<int64_t>(begin),
                            static_cast<int64_t>(data.size())));
  }
  return RawSafetensors(Header(entries), data);
}

std::string Short(const std::string& text) {
  return absl::StrCat("U", std::string(1, static_cast<char>(text.size())),
                      text);
}

// What torch.save writes of a state dict of byte tensors.
std::string TorchFile(const ShardBytes& tensors) {
  RawZip zip;
  std::string pickle = "\x80\x02}";
  for (const auto& [name, bytes] : tensors) {
    const std::string size(1, static_cast<char>(bytes.size()));
    const std::string key = absl::StrCat(zip.records.size());
    zip.records.push_back({.name = "m/data/" + key, .data = bytes});
    absl::StrAppend(&pickle, Short(name),
                    "ctorch._utils\n_rebuild_tensor_v2\n((", Short("storage"),
                    "ctorch\nByteStorage\n", Short(key), Short("cpu"), "K",
                    size, "tQ", std::string("K\0", 2), "K", size,
                    "\x85K\1\x85\x89NtRs");
  }
  zip.records.push_back({.name = "m/data.pkl", .data = pickle + "."});
  return ZipBytes(zip);
}

// A folder with tensors a and b in one file, c in another, of either kind.
class IndexedShardsTest : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    Write(One(), File({{"a", "a"}, {"b", "bb"}}));
    Write(Two(), File({{"c", "ccc"}}));
  }

  bool torch() const { return GetParam(); }
  std::string Ending() const { return torch() ? ".bin" : ".safetensors"; }
  std::string Stem() const { return torch() ? "pytorch_model" : "model"; }
  std::string One() const { return Stem() + "-00001-of-00002" + Ending(); }
  std::string Two() const { return Stem() + "-00002-of-00002" + Ending(); }
  std::string Index() const { return Stem() + Ending() + ".index.json"; }
  std::string File(const ShardBytes& tensors) const {
    return torch() ? TorchFile(tensors) : SafetensorsFile(tensors);
  }
  void Write(const std::string& name, const std::string& content) const {
    std::ofstream(folder_ + "/" + name, std::ios::binary) << content;
  }
  void WriteIndex(const nlohmann::json& weight_map) const {
    Write(Index(), nlohmann::json{{"metadata", {{"total_size", 6}}},
                                  {"weight_map", weight_map}}
                       .dump());
  }
  nlohmann::json WholeMap() const {
    return {{"a", One()}, {"b", One()}, {"c", Two()}};
  }

  std::string Refusal(
      absl::StatusCode code = absl::StatusCode::kInvalidArgument) const {
    const auto checkpoint = OpenCheckpoint(folder_);
    EXPECT_EQ(checkpoint.status().code(), code);
    EXPECT_THAT(checkpoint.status().message(), Not(HasSubstr("\n")));
    return std::string(checkpoint.status().message());
  }
  std::string Refusal(const nlohmann::json& weight_map) const {
    WriteIndex(weight_map);
    const std::string message = Refusal();
    EXPECT_THAT(message, HasSubstr(Index()));
    return message;
  }
  void ExpectWhole(const std::string& path) const {
    const auto checkpoint = OpenCheckpoint(path);
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    EXPECT_EQ(checkpoint->path, path);
    EXPECT_EQ(checkpoint->container,
              torch() ? "torch zip shards" : "safetensors shards");
    EXPECT_EQ(checkpoint->tensors.size(), 3u);
    EXPECT_EQ(BytesOf(*checkpoint, "a"), "a");
    EXPECT_EQ(BytesOf(*checkpoint, "b"), "bb");
    EXPECT_EQ(BytesOf(*checkpoint, "c"), "ccc");
  }

  const std::string folder_ = FreshTempFolder("shards");
};

INSTANTIATE_TEST_SUITE_P(OfEitherKind, IndexedShardsTest, testing::Bool(),
                         [](const auto& info) {
                           return info.param ? "Torch" : "Safetensors";
                         });

TEST_P(IndexedShardsTest, AFolderHoldsWhatItsFilesHold) {
  WriteIndex(WholeMap());
  ExpectWhole(folder_);
  ExpectWhole(folder_ + "/");
}

TEST_P(IndexedShardsTest, TheIndexMayBeGivenItself) {
  WriteIndex(WholeMap());
  ExpectWhole(folder_ + "/" + Index());
}

TEST_P(IndexedShardsTest, AnIndexOfAnotherNameIsFound) {
  fs::rename(folder_ + "/" + One(), folder_ + "/w-00001-of-00002" + Ending());
  fs::rename(folder_ + "/" + Two(), folder_ + "/w-00002-of-00002" + Ending());
  const std::string one = "w-00001-of-00002" + Ending();
  Write("w" + Ending() + ".index.json",
        nlohmann::json{
            {"weight_map",
             {{"a", one}, {"b", one}, {"c", "w-00002-of-00002" + Ending()}}}}
            .dump());
  ExpectWhole(folder_);
}

// As Hugging Face's libraries choose.
TEST_P(IndexedShardsTest, ASingleFileOfTheSameKindGoesFirst) {
  WriteIndex(WholeMap());
  Write(Stem() + Ending(), File({{"whole", "w"}}));
  const auto checkpoint = OpenCheckpoint(folder_);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_EQ(checkpoint->container, torch() ? "torch zip" : "safetensors");
  EXPECT_EQ(BytesOf(*checkpoint, "whole"), "w");
}

TEST_P(IndexedShardsTest, EveryTensorIsInTheFileThatTheIndexSays) {
  EXPECT_THAT(Refusal({{"a", One()}, {"b", Two()}, {"c", Two()}}),
              HasSubstr("does not list tensor b of " + One()));
  nlohmann::json map = WholeMap();
  map["d"] = Two();
  EXPECT_THAT(Refusal(map), HasSubstr(Two() + " holds tensor d"));
  EXPECT_THAT(Refusal({{"a", One()}, {"c", Two()}}),
              HasSubstr("does not list tensor b"));
}

// A name is in two files: one of them holds what the index does not say.
TEST_P(IndexedShardsTest, NoTensorIsInTwoFiles) {
  fs::copy_file(folder_ + "/" + Two(), folder_ + "/three" + Ending());
  nlohmann::json map = WholeMap();
  map["x"] = "three" + Ending();
  EXPECT_THAT(Refusal(map), HasSubstr("three" + Ending()));
}

TEST_P(IndexedShardsTest, NoFileLiesOutsideTheFolder) {
  for (const std::string& name :
       std::vector<std::string>{"../shards/" + One(), "/etc/passwd", "..", "",
                                "sub\\" + One(), "./" + One()}) {
    EXPECT_THAT(Refusal({{"a", name}}),
                HasSubstr("not a name of a file in its folder"));
  }
}

TEST_P(IndexedShardsTest, AMissingFileIsNamedWithTheIndex) {
  WriteIndex(WholeMap());
  fs::remove(folder_ + "/" + Two());
  const std::string message = Refusal(absl::StatusCode::kNotFound);
  EXPECT_THAT(message, HasSubstr(Index() + ": names " + Two()));
  EXPECT_THAT(message, HasSubstr("is missing"));
}

TEST_P(IndexedShardsTest, AFileOfTheSeriesThatTheIndexLeavesOutIsNamed) {
  EXPECT_THAT(Refusal({{"a", One()}, {"b", One()}}),
              HasSubstr("names " + One() + ", but not " + Two()));
}

// Left over from when the model was saved in other pieces.
TEST_P(IndexedShardsTest, FilesOfAnotherSeriesAreLeftAlone) {
  WriteIndex(WholeMap());
  Write(Stem() + "-00003-of-00003" + Ending(), File({{"old", "o"}}));
  ExpectWhole(folder_);
}

TEST_P(IndexedShardsTest, AMissingIndexIsNamed) {
  EXPECT_THAT(Refusal(), HasSubstr("but not their index " + Index()));
  fs::remove(folder_ + "/" + Two());
  EXPECT_THAT(Refusal(), HasSubstr("but not their index " + Index()));
}

TEST_P(IndexedShardsTest, AFileThatIsNoCheckpointIsNamedForWhatItIs) {
  WriteIndex(WholeMap());
  Write(Two(), "version https://git-lfs.github.com/spec/v1\n");
  const std::string message = Refusal();
  EXPECT_THAT(message, HasSubstr(Two()));
  if (torch()) {
    EXPECT_THAT(message, HasSubstr("pointer of Git LFS"));
  }
}

TEST_P(IndexedShardsTest, AnIndexWithoutMapIsRefused) {
  for (const char* content : {"{}", "[]", "null", R"({"weight_map": {}})"}) {
    Write(Index(), content);
    EXPECT_THAT(Refusal(), HasSubstr(Index()));
  }
  EXPECT_THAT(Refusal({{"a", 1}}), HasSubstr("no file for a"));
}

TEST(IndexedShards, SafetensorsGoBeforeTorchFiles) {
  const std::string folder = FreshTempFolder("both_kinds");
  const auto write = [&](const std::string& name, const std::string& content) {
    std::ofstream(folder + "/" + name, std::ios::binary) << content;
  };
  const auto index = [](const std::string& file) {
    return nlohmann::json{{"weight_map", {{"a", file}}}}.dump();
  };
  write("pytorch_model-00001-of-00001.bin", TorchFile({{"a", "t"}}));
  write("pytorch_model.bin.index.json",
        index("pytorch_model-00001-of-00001.bin"));
  write("model-00001-of-00001.safetensors", SafetensorsFile({{"a", "s"}}));
  write("model.safetensors.index.json",
        index("model-00001-of-00001.safetensors"));
  EXPECT_EQ(OpenCheckpoint(folder)->container, "safetensors shards");
  write("pytorch_model.bin", TorchFile({{"a", "w"}}));
  EXPECT_EQ(OpenCheckpoint(folder)->container, "safetensors shards");
  fs::remove(folder + "/model.safetensors.index.json");
  EXPECT_EQ(OpenCheckpoint(folder)->container, "torch zip");
}

TEST(IndexedShards, NamesOfShardsCallForAnIndex) {
  EXPECT_EQ(IndexOfShard("pytorch_model-00001-of-00002.bin"),
            "pytorch_model.bin.index.json");
  EXPECT_EQ(IndexOfShard("model-00007-of-00123.safetensors"),
            "model.safetensors.index.json");
  for (const char* other :
       {"model.safetensors", "model-0001-of-0002.bin", "-00001-of-00002.bin",
        "model-00001-of-00002", "model_00001-of-00002.bin", "-of-", "",
        "model.ckpt-5.data-00000-of-00001"}) {
    EXPECT_EQ(IndexOfShard(other), "") << other;
  }
}

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

NativeCheckpoint Rank(const std::string& bytes) {
  NativeCheckpoint checkpoint;
  checkpoint.container = "torch zip";
  checkpoint.tensors["module.w"] =
      *RowMajor(DType::kU8, {static_cast<int64_t>(bytes.size())},
                BytesInMemory(bytes, "w"));
  checkpoint.data = {{"module", {{"w", {{kTensorKey, "module.w"}}}}},
                     {"steps", {7, {{kTensorKey, "module.w"}}}},
                     {"name", "module.w"}};
  return checkpoint;
}

TEST(RankFiles, AreKnownByTheirNames) {
  EXPECT_THAT(
      RankFiles({"latest", "mp_rank_00_model_states.pt",
                 "mp_rank_01_model_states.pt", "mp_rank_x_model_states.pt",
                 "mp_rank__model_states.pt", "mp_rank_02_optim_states.pt",
                 "zero_pp_rank_0_mp_rank_00_optim_states.pt",
                 "mp_rank_00001_model_states.pt"}),
      ElementsAre(Pair("00", "mp_rank_00_model_states.pt"),
                  Pair("01", "mp_rank_01_model_states.pt")));
  EXPECT_THAT(RankFiles({}), IsEmpty());
}

TEST(JoinRanks, NamesTensorsByRank) {
  const auto joined =
      JoinRanks("folder", {{"00", Rank("ab")}, {"01", Rank("cd")}});
  ASSERT_TRUE(joined.ok()) << joined.status();
  EXPECT_EQ(joined->path, "folder");
  EXPECT_EQ(joined->container, "torch zip");
  EXPECT_EQ(joined->tensors.size(), 2u);
  EXPECT_EQ(BytesOf(*joined, "rank.00.module.w"), "ab");
  EXPECT_EQ(BytesOf(*joined, "rank.01.module.w"), "cd");
}

TEST(JoinRanks, DataRefersToTheNewNames) {
  const auto joined =
      JoinRanks("folder", {{"00", Rank("ab")}, {"01", Rank("cd")}});
  ASSERT_TRUE(joined.ok()) << joined.status();
  const json& one = joined->data["rank"]["01"];
  EXPECT_EQ(one["module"]["w"][kTensorKey], "rank.01.module.w");
  EXPECT_EQ(one["steps"][1][kTensorKey], "rank.01.module.w");
  EXPECT_EQ(one["steps"][0], 7);
  EXPECT_EQ(one["name"], "module.w");  // a string that is no reference
  EXPECT_EQ(joined->data["rank"]["00"]["module"]["w"][kTensorKey],
            "rank.00.module.w");
}

TEST(JoinRanks, NamesAMissingRank) {
  const auto gap =
      JoinRanks("folder", {{"00", Rank("ab")}, {"02", Rank("cd")}});
  EXPECT_EQ(gap.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(gap.status().message(), HasSubstr("folder: the file of rank 1"));
  EXPECT_THAT(JoinRanks("folder", {{"01", Rank("ab")}}).status().message(),
              HasSubstr("rank 0"));
}

}  // namespace

}  // namespace txl
