// What Open finds of an earlier process.

#include <filesystem>
#include <string>

#include "tests/server/store/image_files_fixture.h"

namespace txl {
namespace {

using std::filesystem::exists;

TEST_F(ImageFilesTest, CountsTheFilesFromBefore) {
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(
        files_->Put(absl::StrCat("s", i), digest_, MakeImage(100 + i, 1)).ok());
  }
  const int64_t bytes = files_->bytes();
  Open();
  files_->WaitForScan();
  EXPECT_EQ(files_->bytes(), bytes);
  // Counted once, also when it is used or replaced.
  ASSERT_TRUE(Has("s7"));
  ASSERT_TRUE(files_->Put("s8", digest_, MakeImage(108, 1)).ok());
  EXPECT_EQ(files_->bytes(), bytes);
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(files_->Remove(absl::StrCat("s", i)).ok());
  }
  EXPECT_EQ(files_->bytes(), 0);
}

TEST_F(ImageFilesTest, WorkBesideTheScanIsCountedOnce) {
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(
        files_->Put(absl::StrCat("s", i), digest_, MakeImage(100, 1)).ok());
  }
  const int64_t bytes = files_->bytes();
  Open();
  for (int i = 0; i < 100; ++i) {
    const std::string id = absl::StrCat("s", i);
    ASSERT_TRUE(Has(id));
    ASSERT_TRUE(files_->Put(id, digest_, MakeImage(100, 2)).ok());
  }
  files_->WaitForScan();
  EXPECT_EQ(files_->bytes(), bytes);
}

TEST_F(ImageFilesTest, TheOrderOfUsesOutlivesTheProcess) {
  for (const char* id : {"a", "b", "c", "d"}) {
    ASSERT_TRUE(files_->Put(id, digest_, MakeImage(100, 1)).ok());
  }
  const int64_t one = files_->bytes() / 4;
  ASSERT_TRUE(Has("a"));
  ASSERT_TRUE(Has("b"));
  Open(2 * one);  // less room than before
  files_->WaitForScan();
  EXPECT_EQ(files_->bytes(), 2 * one);
  EXPECT_FALSE(exists(PathOf("c")));
  EXPECT_FALSE(exists(PathOf("d")));
  EXPECT_TRUE(exists(PathOf("a")));
  EXPECT_TRUE(exists(PathOf("b")));
}

TEST_F(ImageFilesTest, AFileFromTheFutureIsNotNewerThanOneUsedNow) {
  ASSERT_TRUE(files_->Put("a", digest_, MakeImage(100, 1)).ok());
  const int64_t one = files_->bytes();
  std::filesystem::last_write_time(
      PathOf("a"),
      std::filesystem::file_time_type::clock::now() + std::chrono::hours(24));
  Open(2 * one);
  files_->WaitForScan();
  ASSERT_TRUE(files_->Put("b", digest_, MakeImage(100, 2)).ok());
  ASSERT_TRUE(files_->Put("c", digest_, MakeImage(100, 3)).ok());
  EXPECT_FALSE(exists(PathOf("a")));
  EXPECT_TRUE(exists(PathOf("b")));
}

TEST_F(ImageFilesTest, WhatACrashLeftHalfWrittenIsClearedAway) {
  ASSERT_TRUE(files_->Put("a", digest_, MakeImage(100, 1)).ok());
  const std::string half = ReadFile(PathOf("a")).substr(0, 100);
  WriteFile(folder_ + "/images/new/0123456789abcdef-0", half);
  Open();
  files_->WaitForScan();
  EXPECT_EQ(CountNew(), 0);
  EXPECT_TRUE(Has("a"));
}

TEST_F(ImageFilesTest, FilesOfAnEarlierVersionAreClearedAway) {
  const std::string prefix = folder_ + "/images/" + KeyOf("a").substr(0, 2);
  std::filesystem::create_directories(prefix);
  const std::string earlier = prefix + "/" + KeyOf("a") + ".txlm";
  WriteFile(earlier, "x");
  Open();
  files_->WaitForScan();
  EXPECT_FALSE(exists(earlier));
}

TEST_F(ImageFilesTest, ForeignFilesAreLeftAlone) {
  ASSERT_TRUE(files_->Put("a", digest_, MakeImage(100, 1)).ok());
  const int64_t bytes = files_->bytes();
  const std::string folder =
      std::filesystem::path(PathOf("a")).parent_path().string();
  const std::string foreign[] = {folder + "/notes.txlm",
                                 folder + "/../notes.txlm",
                                 folder_ + "/images/notes", folder_ + "/notes"};
  for (const std::string& path : foreign) WriteFile(path, "x");
  Open(bytes);
  files_->WaitForScan();
  EXPECT_EQ(files_->bytes(), bytes);
  for (const std::string& path : foreign) EXPECT_TRUE(exists(path)) << path;
}

TEST_F(ImageFilesTest, EndsWhileItScans) {
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(
        files_->Put(absl::StrCat("s", i), digest_, MakeImage(10, 1)).ok());
  }
  for (int i = 0; i < 20; ++i) Open(100);
  files_ = nullptr;
}

}  // namespace
}  // namespace txl
