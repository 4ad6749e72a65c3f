#include "model/train/run_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "model/train/model_files.h"
#include "model/train/streams.h"

namespace txl {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

class RunFolderTest : public testing::Test {
 protected:
  RunFolderTest()
      : folder_(testing::TempDir() + "/run_folder_test/" +
                testing::UnitTest::GetInstance()->current_test_info()->name()) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  std::string Path(const std::string& name) { return folder_ + "/" + name; }
  void Write(const std::string& name, const std::string& text = "x") {
    ASSERT_TRUE(WriteTextFile(Path(name), text).ok());
  }

  const std::string folder_;
};

TEST_F(RunFolderTest, ContentIsTheMostThatItsFilesAllow) {
  EXPECT_EQ(ContentOf(Path("absent")), FolderContent::kNothing);
  EXPECT_EQ(ContentOf(folder_), FolderContent::kNothing);
  Write("notes", "");
  EXPECT_EQ(ContentOf(folder_), FolderContent::kOther);
  EXPECT_EQ(ContentOf(Path("notes")), FolderContent::kOther);
  Write("log.jsonl");
  EXPECT_EQ(ContentOf(folder_), FolderContent::kModel);
  Write("checkpoint.safetensors.tmp");
  EXPECT_EQ(ContentOf(folder_), FolderContent::kModel);
  Write("checkpoint.safetensors");
  EXPECT_EQ(ContentOf(folder_), FolderContent::kCheckpoint);
}

TEST_F(RunFolderTest, AFolderWithTheNameOfAModelsFileIsNone) {
  fs::create_directories(Path("config.json"));
  EXPECT_EQ(ContentOf(folder_), FolderContent::kOther);
}

TEST_F(RunFolderTest, TheVocabularyIsTheFileThatTheTokenizerNames) {
  const auto beside = [&] {
    std::vector<std::string> names = DescribingFiles(folder_);
    names.erase(names.begin(), names.begin() + 4);
    return names;
  };
  EXPECT_THAT(beside(), ElementsAre());
  Write("tokenizer.json", R"({"kind": "symbols", "file": "words.txt"})");
  EXPECT_THAT(beside(), ElementsAre("words.txt"));
  for (const char* other : {R"({"kind": "bytes"})", R"({"file": 5})", "[]"}) {
    Write("tokenizer.json", other);
    EXPECT_THAT(beside(), ElementsAre()) << other;
  }
}

TEST_F(RunFolderTest, WhatAKilledRunHasLeftIsRemovedAlone) {
  for (const char* name :
       {"model.safetensors", "model.safetensors.tmp", "checkpoint.safetensors",
        "checkpoint.safetensors.tmp", "ngrams.bin.tmp", "notes.tmp"}) {
    Write(name);
  }
  ASSERT_TRUE(RemoveTemporaryFiles(folder_).ok());
  for (const char* name :
       {"model.safetensors", "checkpoint.safetensors", "notes.tmp"}) {
    EXPECT_TRUE(fs::exists(Path(name))) << name;
  }
  for (const char* name : {"model.safetensors.tmp",
                           "checkpoint.safetensors.tmp", "ngrams.bin.tmp"}) {
    EXPECT_FALSE(fs::exists(Path(name))) << name;
  }
}

TEST_F(RunFolderTest, OnlyFilesOfAModelAndARunAreRemoved) {
  fs::create_directories(Path("sub"));
  fs::create_directories(Path("kinds.json"));
  for (const char* name :
       {"words.txt", "sub/words.txt", "ngrams.bin", "losses.svg", "notes"}) {
    Write(name);
  }
  fs::create_symlink("notes", Path("model.safetensors"));
  Write("tokenizer.json", R"({"kind": "symbols", "file": "sub/words.txt"})");
  ASSERT_TRUE(RemoveRunFiles(folder_).ok());
  std::vector<std::string> left;
  for (const auto& entry : fs::recursive_directory_iterator(folder_)) {
    left.push_back(fs::relative(entry.path(), folder_));
  }
  EXPECT_THAT(left,
              testing::UnorderedElementsAre("kinds.json", "notes", "sub",
                                            "sub/words.txt", "words.txt"));
}

TEST_F(RunFolderTest, ALockIsHeldUntilItsObjectEnds) {
  const std::string folder = Path("new/run");
  auto first = RunLock::Take(folder);
  ASSERT_TRUE(first.ok()) << first.status();
  const auto second = RunLock::Take(folder);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(second.status().message()), HasSubstr(folder));
  first->reset();
  EXPECT_TRUE(RunLock::Take(folder).ok());
  EXPECT_TRUE(fs::is_empty(folder));
}

TEST_F(RunFolderTest, WhatIsNoFolderCannotBeLocked) {
  Write("notes");
  EXPECT_THAT(std::string(RunLock::Take(Path("notes")).status().message()),
              HasSubstr(Path("notes")));
}

}  // namespace
}  // namespace txl
