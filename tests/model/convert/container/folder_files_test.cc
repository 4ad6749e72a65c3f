#include "model/convert/container/folder_files.h"

#include <filesystem>
#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/model/checkpoint/raw_safetensors.h"

namespace txl {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(FileInside, JoinsPlainNames) {
  for (const std::string name : {"a", "model.pt", "..a", "a b", "größe"}) {
    const auto path = FileInside("folder", name, "origin");
    ASSERT_TRUE(path.ok()) << path.status();
    EXPECT_EQ(*path, "folder/" + name);
  }
}

TEST(FileInside, RefusesNamesThatLeadElsewhere) {
  for (const std::string& name :
       {std::string(""), std::string("."), std::string(".."),
        std::string("../a"), std::string("a/b"), std::string("/a"),
        std::string("a\\b"), std::string("a\nb"), std::string("a\0b", 3)}) {
    const auto path = FileInside("folder", name, "index.json");
    EXPECT_EQ(path.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(path.status().message(), HasSubstr("index.json"));
    EXPECT_EQ(path.status().message().find('\n'), std::string::npos);
  }
}

TEST(FilesIn, ListsRegularFilesSorted) {
  const std::string folder = FreshTempFolder("listed");
  EXPECT_THAT(*FilesIn(folder), IsEmpty());
  std::ofstream(folder + "/b") << "1";
  std::ofstream(folder + "/a") << "1";
  fs::create_directory(folder + "/c");
  fs::create_symlink(folder + "/b", folder + "/d");
  fs::create_symlink(folder + "/nothing", folder + "/e");
  EXPECT_THAT(*FilesIn(folder), ElementsAre("a", "b", "d"));
  EXPECT_THAT(FilesIn(folder + "/none").status().message(),
              HasSubstr("cannot be listed"));
  EXPECT_TRUE(IsFile(folder + "/d"));
  EXPECT_FALSE(IsFile(folder + "/c"));
  EXPECT_TRUE(IsFolder(folder + "/c"));
  EXPECT_FALSE(IsFolder(folder + "/a"));
}

TEST(ReadSmallFile, HasALimit) {
  const std::string path = WriteTempFile("small", "12345");
  EXPECT_EQ(*ReadSmallFile(path, 5), "12345");
  EXPECT_THAT(ReadSmallFile(path, 4).status().message(), HasSubstr("larger"));
  EXPECT_EQ(ReadSmallFile(path + "-", 4).status().code(),
            absl::StatusCode::kNotFound);
}

TEST(ReadJsonObjectFile, ReadsObjectsOnly) {
  EXPECT_EQ(*ReadJsonObjectFile(WriteTempFile("j", R"({"a": {"b": 1}})")),
            (nlohmann::json{{"a", {{"b", 1}}}}));
  for (const std::string bad : {"", "[]", "{", R"({"a": 1, "a": 2})"}) {
    const auto object = ReadJsonObjectFile(WriteTempFile("j", bad));
    EXPECT_EQ(object.status().code(), absl::StatusCode::kInvalidArgument)
        << bad;
  }
}

}  // namespace
}  // namespace txl
