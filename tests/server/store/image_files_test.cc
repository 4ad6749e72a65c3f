#include "server/store/image_files.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/store/image_files_fixture.h"

namespace txl {
namespace {

using ::testing::HasSubstr;

// No file of this process grows beyond so many bytes.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit = {.rlim_cur = bytes, .rlim_max = before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    signal(SIGXFSZ, handler_);
  }

 private:
  void (*handler_)(int);
  rlimit before_ = {};
};

TEST_F(ImageFilesTest, GivesBackWhatWasPut) {
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{3} << 20}) {
    const StateImage image = MakeImage(bytes, static_cast<uint32_t>(bytes));
    ASSERT_TRUE(files_->Put("a", digest_, image).ok());
    const auto stored = Get("a");
    ASSERT_TRUE(stored.ok()) << stored.status();
    EXPECT_EQ(stored->session_id, "a");
    EXPECT_EQ(stored->ids_digest, digest_);
    EXPECT_TRUE(EqualImages(stored->image, image));
    EXPECT_EQ(CountNew(), 0);
  }
}

TEST_F(ImageFilesTest, OutlivesTheProcess) {
  const StateImage image = MakeImage(100, 1);
  ASSERT_TRUE(files_->Put("a", digest_, image).ok());
  Open();
  const auto stored = Get("a");
  ASSERT_TRUE(stored.ok()) << stored.status();
  EXPECT_TRUE(EqualImages(stored->image, image));
}

TEST_F(ImageFilesTest, KeepsOneImageOfASessionTheLast) {
  ASSERT_TRUE(files_->Put("a", digest_, MakeImage(5000, 1)).ok());
  const StateImage second = MakeImage(100, 2);
  ASSERT_TRUE(files_->Put("a", digest_, second).ok());
  EXPECT_TRUE(EqualImages(Get("a")->image, second));
  EXPECT_EQ(files_->bytes(),
            static_cast<int64_t>(std::filesystem::file_size(PathOf("a"))));
}

TEST_F(ImageFilesTest, WhatIsNotThereIsNotFound) {
  EXPECT_TRUE(absl::IsNotFound(Get("a").status()));
  EXPECT_TRUE(files_->Remove("a").ok());
  ASSERT_TRUE(files_->Put("a", digest_, MakeImage(10, 1)).ok());
  EXPECT_TRUE(absl::IsNotFound(Get("b").status()));
  EXPECT_TRUE(files_->Remove("a").ok());
  EXPECT_TRUE(absl::IsNotFound(Get("a").status()));
  EXPECT_FALSE(std::filesystem::exists(FolderOf("a")));
  EXPECT_EQ(files_->bytes(), 0);
}

TEST_F(ImageFilesTest, OnlyTheOwnerMayReadThem) {
  ASSERT_TRUE(files_->Put("a", digest_, MakeImage(10, 1)).ok());
  struct stat found;
  ASSERT_EQ(stat(PathOf("a").c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777, 0600u);
  for (const char* part : {"", "/images", "/images/new", "/quarantine"}) {
    ASSERT_EQ(stat((folder_ + part).c_str(), &found), 0) << part;
    EXPECT_EQ(found.st_mode & 0777, 0700u) << part;
  }
}

TEST_F(ImageFilesTest, LargerThanTheReaderTakesIsLeftThere) {
  ASSERT_TRUE(files_->Put("a", digest_, MakeImage(100, 1)).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(Get("a", 99).status()));
  EXPECT_TRUE(Get("a", 100).ok());
}

TEST_F(ImageFilesTest, AHeadThatNoReaderTakesIsRefused) {
  StateImage image = MakeImage(10, 1);
  EXPECT_TRUE(absl::IsInvalidArgument(files_->Put("a", "short", image)));
  image.identity.fingerprint = std::string(70'000, 'x');
  EXPECT_TRUE(absl::IsInvalidArgument(files_->Put("a", digest_, image)));
  EXPECT_FALSE(Has("a"));
}

TEST_F(ImageFilesTest, AFailedWriteLeavesTheEarlierFileAndNothingElse) {
  const StateImage earlier = MakeImage(50, 1);
  ASSERT_TRUE(files_->Put("a", digest_, earlier).ok());
  const int64_t bytes = files_->bytes();
  // In the head, in the data, and in the digest behind it.
  const rlim_t file_bytes = 100'000 + static_cast<rlim_t>(bytes) - 50;
  for (const rlim_t limit : {rlim_t{30}, rlim_t{60'000}, file_bytes - 1}) {
    absl::Status status;
    {
      const FileSizeLimit limited(limit);
      status = files_->Put("a", digest_, MakeImage(100'000, 2));
    }
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    EXPECT_THAT(status.message(), HasSubstr(folder_));
    EXPECT_TRUE(EqualImages(Get("a")->image, earlier));
    EXPECT_EQ(files_->bytes(), bytes);
    EXPECT_EQ(CountNew(), 0);
  }
  const FileSizeLimit enough(file_bytes);
  EXPECT_TRUE(files_->Put("a", digest_, MakeImage(100'000, 2)).ok());
}

TEST_F(ImageFilesTest, AFolderThatCannotBeMadeIsToldWithItsPath) {
  WriteFile(folder_ + "/file", "x");
  const auto files = ImageFiles::Open(folder_ + "/file", kAnySize);
  EXPECT_TRUE(absl::IsUnavailable(files.status()));
  EXPECT_THAT(files.status().message(), HasSubstr(folder_ + "/file/images"));
}

TEST_F(ImageFilesTest, TheOldestGoFirst) {
  const int64_t one = [&] {
    EXPECT_TRUE(files_->Put("a", digest_, MakeImage(100, 1)).ok());
    return files_->bytes();
  }();
  Open(3 * one);
  files_->WaitForScan();
  ASSERT_TRUE(files_->Put("b", digest_, MakeImage(100, 2)).ok());
  ASSERT_TRUE(files_->Put("c", digest_, MakeImage(100, 3)).ok());
  ASSERT_TRUE(Has("a"));  // used: "b" is the oldest now
  ASSERT_TRUE(files_->Put("d", digest_, MakeImage(100, 4)).ok());
  EXPECT_FALSE(Has("b"));
  EXPECT_TRUE(Has("c"));
  EXPECT_TRUE(Has("a"));
  EXPECT_TRUE(Has("d"));
  EXPECT_EQ(files_->bytes(), 3 * one);
  // The session's own earlier file needs no room beside the new one.
  ASSERT_TRUE(files_->Put("c", digest_, MakeImage(100, 5)).ok());
  EXPECT_TRUE(Has("a"));
  EXPECT_TRUE(Has("d"));
  EXPECT_EQ(files_->bytes(), 3 * one);
}

TEST_F(ImageFilesTest, AnImageLargerThanAllRoomIsRefusedAndMakesNone) {
  Open(2000);
  ASSERT_TRUE(files_->Put("a", digest_, MakeImage(500, 1)).ok());
  EXPECT_TRUE(
      absl::IsResourceExhausted(files_->Put("b", digest_, MakeImage(2000, 2))));
  EXPECT_TRUE(Has("a"));
}

// Readers see a whole image of the session or none, whatever others do.
TEST_F(ImageFilesTest, ThreadsSeeWholeImagesOnly) {
  Open(40'000);
  constexpr int kThreads = 4;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([this, t] {
      for (uint32_t i = 0; i < 60; ++i) {
        const std::string id(1, static_cast<char>('a' + (i + t) % 3));
        const uint32_t seed = i * kThreads + static_cast<uint32_t>(t);
        if (i % 7 == 0) {
          EXPECT_TRUE(files_->Remove(id).ok());
        }
        EXPECT_TRUE(files_->Put(id, digest_, MakeImage(9000, seed)).ok());
        const auto stored = Get(id);
        if (!stored.ok()) {
          EXPECT_TRUE(absl::IsNotFound(stored.status())) << stored.status();
          continue;
        }
        const auto made = static_cast<uint32_t>(stored->image.position - 1000);
        EXPECT_TRUE(EqualImages(stored->image, MakeImage(9000, made)));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  int64_t bytes = 0;
  for (const char* id : {"a", "b", "c"}) {
    for (const ImageEntry& image : ListImages(FolderOf(id))) {
      bytes += image.bytes;
    }
  }
  EXPECT_EQ(files_->bytes(), bytes);
  EXPECT_EQ(CountNew(), 0);
}

std::string Oldest(const ImageIndex& index, const std::string& spared = "") {
  const std::string* key = index.Oldest(spared);
  return key == nullptr ? "none" : *key;
}

TEST(ImageIndex, IsEmptyAtFirst) {
  const ImageIndex index;
  EXPECT_EQ(index.bytes(), 0);
  EXPECT_EQ(index.BytesOf("a"), 0);
  EXPECT_EQ(Oldest(index), "none");
}

TEST(ImageIndex, KnowsTheOldest) {
  ImageIndex index;
  index.Set("a", 10, 3);
  index.Set("b", 20, 1);
  index.Set("c", 30, 2);
  EXPECT_EQ(index.bytes(), 60);
  EXPECT_EQ(Oldest(index), "b");
  EXPECT_EQ(Oldest(index, "b"), "c");
  index.Set("b", 5, 4);  // used again, smaller
  EXPECT_EQ(index.bytes(), 45);
  EXPECT_EQ(index.BytesOf("b"), 5);
  EXPECT_EQ(Oldest(index), "c");
}

TEST(ImageIndex, ForgetsWhatIsErased) {
  ImageIndex index;
  index.Set("a", 10, 1);
  index.Set("b", 20, 1);  // used at the same time
  index.Erase("a");
  index.Erase("never there");
  EXPECT_FALSE(index.Contains("a"));
  EXPECT_EQ(index.Keys(), std::vector<std::string>{"b"});
  EXPECT_EQ(index.bytes(), 20);
  EXPECT_EQ(Oldest(index, "b"), "none");
}

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class ImageFolderTest : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directory(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  void Write(const std::string& name, const std::string& bytes) const {
    std::ofstream(folder_ + "/" + name) << bytes;
  }
  std::vector<int64_t> Positions() const {
    std::vector<int64_t> positions;
    for (const ImageEntry& image : ListImages(folder_)) {
      positions.push_back(image.position);
    }
    return positions;
  }

  const std::string folder_ =
      absl::StrCat(::testing::TempDir(), "/txl_image_folder_", getpid());
};

TEST_F(ImageFolderTest, NamesSayPositionAndHead) {
  // SHA-256 of "abc" (FIPS 180-2, appendix B.1) begins so.
  EXPECT_EQ(ImageNameOf(1276, "abc"),
            "1276-ba7816bf8f01cfea414140de5dae2223.txlm");
  EXPECT_NE(ImageNameOf(1276, "abd"), ImageNameOf(1276, "abc"));
}

TEST_F(ImageFolderTest, TheLargestPositionComesFirst) {
  for (const int64_t position : {5, 1000, 0, 99}) {
    Write(ImageNameOf(position, "head"), std::string(position, 'x'));
  }
  EXPECT_THAT(Positions(), ElementsAre(1000, 99, 5, 0));
  const ImageEntry first = ListImages(folder_)[0];
  EXPECT_EQ(first.path, folder_ + "/" + ImageNameOf(1000, "head"));
  EXPECT_EQ(first.bytes, 1000);
}

TEST_F(ImageFolderTest, OtherNamesAreNone) {
  const std::string name = ImageNameOf(7, "head");
  for (const std::string& other :
       {std::string("notes.txlm"), name + "x", "-" + name, "x" + name,
        name.substr(0, name.size() - 6) + ".txlm", std::string("7-.txlm")}) {
    Write(other, "x");
  }
  EXPECT_THAT(Positions(), IsEmpty());
  Write(name, "x");
  EXPECT_THAT(Positions(), ElementsAre(7));
  EXPECT_THAT(ListImages(folder_ + "/missing"), IsEmpty());
}

TEST_F(ImageFolderTest, AUseIsTheFilesTime) {
  Write(ImageNameOf(7, "head"), "x");
  const int fd = open(ListImages(folder_)[0].path.c_str(), O_RDONLY);
  ASSERT_GE(fd, 0);
  SetUse(fd, 1'700'000'000'000'000'000);
  close(fd);
  EXPECT_EQ(ListImages(folder_)[0].use, 1'700'000'000'000'000'000);
}

}  // namespace

}  // namespace txl
