#include "model/checkpoint/model_directory.h"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/model/checkpoint/raw_safetensors.h"
#include "tests/model/golden_paths.h"

namespace txl {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kConfig[] = R"({"vocab_size": 4, "n_layer": 1, "n_head": 1,
  "d_head": 2, "d_model": 2, "d_inner": 2, "mem_len": 3})";

class ModelDirectoryTest : public testing::Test {
 protected:
  void SetUp() override {
    Write("config.json", kConfig);
    Write("model.safetensors", "not looked into");
  }

  void Write(const std::string& name, const std::string& content) {
    std::ofstream(folder_ + "/" + name, std::ios::binary) << content;
  }

  ModelDirectory Open() {
    auto directory = OpenModelDirectory(folder_);
    EXPECT_TRUE(directory.ok()) << directory.status();
    return directory.ok() ? *std::move(directory) : ModelDirectory();
  }

  // The refusal, which names `file`.
  absl::Status Refusal(const std::string& file) {
    const absl::Status status = OpenModelDirectory(folder_).status();
    EXPECT_FALSE(status.ok());
    EXPECT_THAT(status.message(), HasSubstr(file));
    return status;
  }

  const std::string folder_ = FreshTempFolder("model");
};

TEST_F(ModelDirectoryTest, ConfigAndWeightsAreEnough) {
  const ModelDirectory directory = Open();
  EXPECT_EQ(directory.path, folder_);
  EXPECT_EQ(directory.name, fs::path(folder_).filename().string());
  EXPECT_EQ(directory.config.vocab_size, 4);
  EXPECT_EQ(directory.vocabulary, nullptr);
  EXPECT_EQ(directory.generation.max_tokens, std::nullopt);
}

TEST_F(ModelDirectoryTest, TheNameIsTheLastPartOfThePathHoweverItIsSpelt) {
  const std::string name = fs::path(folder_).filename().string();
  for (const char* end : {"/", "//", "/.", "/x/.."}) {
    fs::create_directories(folder_ + "/x");
    const auto directory = OpenModelDirectory(folder_ + end);
    ASSERT_TRUE(directory.ok()) << directory.status();
    EXPECT_EQ(directory->name, name) << end;
  }
}

// Digests as sha256sum prints them for the same bytes.
TEST_F(ModelDirectoryTest, TheFingerprintIsSha256OfConfigThenWeights) {
  Write("config.json", kConfig);
  const std::string fingerprint = Open().fingerprint;
  EXPECT_EQ(fingerprint.size(), 64u);
  EXPECT_EQ(fingerprint.find_first_not_of("0123456789abcdef"),
            std::string::npos);
  EXPECT_EQ(fingerprint,
            "ad4b12008eb2e73dc99bda4113fd5a8c975590aff35f54901ac59b290b9c777f");
}

TEST_F(ModelDirectoryTest, TheFingerprintCanBeComputedLater) {
  const auto directory = ReadModelDirectory(folder_);
  ASSERT_TRUE(directory.ok()) << directory.status();
  EXPECT_EQ(directory->fingerprint, "");
  EXPECT_EQ(*FingerprintOf(*directory), Open().fingerprint);
}

TEST_F(ModelDirectoryTest, AnyChangedByteChangesTheFingerprint) {
  const std::string before = Open().fingerprint;
  Write("model.safetensors", "not looked intp");
  const std::string weights_changed = Open().fingerprint;
  EXPECT_NE(weights_changed, before);
  Write("config.json", std::string(kConfig) + "\n");
  EXPECT_NE(Open().fingerprint, weights_changed);
}

TEST_F(ModelDirectoryTest, OtherFilesDoNotChangeTheFingerprint) {
  const std::string before = Open().fingerprint;
  Write("generation.json", R"({"temperature": 0.5})");
  Write("kinds.json", R"({"kinds": {}})");
  Write("README.md", "hello");
  EXPECT_EQ(Open().fingerprint, before);
}

TEST_F(ModelDirectoryTest, GenerationDefaultsAreRead) {
  Write("generation.json", R"({"start_tokens": [3], "max_tokens": 9})");
  const ModelDirectory directory = Open();
  EXPECT_THAT(directory.generation.start_tokens, ElementsAre(3));
  EXPECT_EQ(directory.generation.max_tokens, 9);
}

TEST_F(ModelDirectoryTest, GenerationDefaultsAreCheckedWithTheVocabulary) {
  Write("generation.json", R"({"start_tokens": [4]})");
  const absl::Status status = Refusal(folder_ + "/generation.json");
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(ModelDirectoryTest, KindsOfTokensAreReadWhereTheyAre) {
  EXPECT_EQ(Open().kinds, nullptr);
  Write("kinds.json", R"({"kinds": {"A": {"tokens": [[1, 3]]}}})");
  const ModelDirectory directory = Open();
  ASSERT_NE(directory.kinds, nullptr);
  EXPECT_EQ(directory.kinds->KindOf(3), 0);
}

TEST_F(ModelDirectoryTest, KindsOfTokensAreCheckedWithTheVocabulary) {
  Write("kinds.json", R"({"kinds": {"A": {"tokens": [[1, 4]]}}})");
  EXPECT_EQ(Refusal(folder_ + "/kinds.json").code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(ModelDirectoryTest, ADefaultThatFollowsKindsNeedsThem) {
  Write("generation.json", R"({"follow_kinds": true})");
  const absl::Status status = Refusal(folder_ + "/generation.json");
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("follow_kinds"));
  Write("kinds.json", R"({"kinds": {"A": {"tokens": [0]}}})");
  EXPECT_EQ(Open().generation.sampling.follow_kinds, true);
}

TEST_F(ModelDirectoryTest, AVocabularyIsReadWithItsFile) {
  Write("tokenizer.json", R"({"kind": "characters", "file": "vocab.txt"})");
  Write("vocab.txt", "a\nb\nc\nd\n");
  const ModelDirectory directory = Open();
  ASSERT_NE(directory.vocabulary, nullptr);
  EXPECT_EQ(directory.vocabulary->size(), 4);
  EXPECT_THAT(*directory.vocabulary->Encode("dab"), ElementsAre(3, 0, 1));
}

TEST_F(ModelDirectoryTest, AVocabularyOfAnotherSizeIsRefused) {
  Write("tokenizer.json", R"({"kind": "characters", "file": "vocab.txt"})");
  Write("vocab.txt", "a\nb\nc\n");
  EXPECT_EQ(Refusal("vocab.txt").code(), absl::StatusCode::kInvalidArgument);
}

// Served without its vocabulary the model would refuse all text.
TEST_F(ModelDirectoryTest, AVocabularyFileThatIsMissingIsAnError) {
  Write("tokenizer.json", R"({"kind": "characters", "file": "vocab.txt"})");
  EXPECT_FALSE(Refusal("vocab.txt").ok());
}

TEST_F(ModelDirectoryTest, AConfigThatIsMissingIsNotFound) {
  fs::remove(folder_ + "/config.json");
  const absl::Status status = Refusal(folder_ + "/config.json");
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(status.message(), HasSubstr("txl-model convert"));
}

TEST_F(ModelDirectoryTest, AConfigOfAnotherCodeBaseSaysWhatConvertsIt) {
  Write("config.json", R"({"model_type": "transfo-xl", "n_layer": 4})");
  EXPECT_THAT(Refusal("config.json").message(), HasSubstr("txl-model convert"));
}

TEST_F(ModelDirectoryTest, WeightsThatAreMissingAreNotFound) {
  fs::remove(folder_ + "/model.safetensors");
  EXPECT_EQ(Refusal(folder_ + "/model.safetensors").code(),
            absl::StatusCode::kNotFound);
}

TEST_F(ModelDirectoryTest, AFolderThatIsMissingIsNotFound) {
  EXPECT_EQ(OpenModelDirectory(folder_ + "/none").status().code(),
            absl::StatusCode::kNotFound);
}

TEST_F(ModelDirectoryTest, ABadConfigIsRefusedNamingFileAndField) {
  Write("config.json", R"({"vocab_size": 4})");
  EXPECT_THAT(Refusal(folder_ + "/config.json").message(),
              HasSubstr("field n_layer is missing"));
}

TEST_F(ModelDirectoryTest, AnEmptyConfigIsRefused) {
  Write("config.json", "");
  EXPECT_EQ(Refusal("config.json").code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(ModelDirectoryTest, AConfigOfMoreThanAMebibyteIsNotRead) {
  Write("config.json", kConfig + std::string(1 << 20, ' '));
  EXPECT_EQ(Refusal("config.json").code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(ModelDirectoryTest, AGenerationFileThatCannotBeReadIsAnError) {
  fs::create_directories(folder_ + "/generation.json");
  EXPECT_FALSE(Refusal("generation.json").ok());
}

// A pipe that nobody writes to would be waited for, for ever.
TEST_F(ModelDirectoryTest, FilesThatAreNoneAreRefusedAtOnce) {
  for (const std::string name : {"config.json", "model.safetensors"}) {
    const std::string path = folder_ + "/" + name;
    fs::remove(path);
    ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
    EXPECT_THAT(Refusal(name).message(), HasSubstr("is not a regular file"));
    fs::remove(path);
    fs::create_symlink("/dev/zero", path);
    EXPECT_THAT(Refusal(name).message(), HasSubstr("is not a regular file"));
    fs::remove(path);
    Write(name, name == "config.json" ? kConfig : "");
  }
}

TEST_F(ModelDirectoryTest, WeightsAreLoadedOnDemandOnly) {
  const ModelDirectory directory = Open();
  const absl::Status status = LoadDirectoryWeights(directory, {}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr(folder_ + "/model.safetensors"));
}

TEST(GoldenCases, AreAllInTheList) {
  std::vector<std::string> folders;
  for (const auto& entry : fs::directory_iterator(TestData() + "/golden")) {
    if (entry.is_directory()) folders.push_back(entry.path().filename());
  }
  std::sort(folders.begin(), folders.end());
  EXPECT_THAT(folders, testing::ElementsAreArray(kGoldenCases));
}

}  // namespace
}  // namespace txl
