#pragma once

// Converted vocabularies as a model directory would hold them.

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "model/text/vocabulary_loader.h"

namespace txl {

// A folder of the running test, empty at first and gone with the object.
class TestFolder {
 public:
  TestFolder() {
    static int count = 0;  // a test may have several
    const testing::TestInfo* test =
        testing::UnitTest::GetInstance()->current_test_info();
    path_ = std::filesystem::path(testing::TempDir()) /
            (std::string("txl_vocabulary_") + test->test_suite_name() + "_" +
             test->name() + "_" + std::to_string(++count));
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  ~TestFolder() { std::filesystem::remove_all(path_); }

  std::string path(const std::string& name = "") const {
    return (path_ / name).string();
  }
  void Write(const std::string& name, const std::string& content) const {
    std::ofstream(path_ / name, std::ios::binary) << content;
  }

 private:
  std::filesystem::path path_;
};

// The vocabulary that the server makes of the files.
inline std::unique_ptr<Vocabulary> Loaded(
    const std::map<std::string, std::string>& files, int64_t vocab_size) {
  TestFolder folder;
  for (const auto& [name, content] : files) folder.Write(name, content);
  auto vocabulary = LoadVocabulary(folder.path(), vocab_size);
  EXPECT_TRUE(vocabulary.ok()) << vocabulary.status();
  return vocabulary.ok() ? *std::move(vocabulary) : nullptr;
}

}  // namespace txl
