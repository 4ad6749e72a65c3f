// Several servers on one folder of images.

#include <filesystem>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "tests/server/store/image_files_fixture.h"

namespace txl {
namespace {

using std::filesystem::exists;

// Positions are 1000 and the seed: see MakeImage.
class SharedImagesTest : public ImageFilesTest {
 protected:
  void SetUp() override {
    ImageFilesTest::SetUp();
    files_ = OpenAnother();
    there_ = OpenAnother();
  }
  void TearDown() override {
    there_ = nullptr;
    ImageFilesTest::TearDown();
  }
  // What the other server is given; -1: nothing.
  int64_t PositionThere() {
    const auto stored = there_->Get("a", kAnySize);
    return stored.ok() ? stored->image.position : -1;
  }
  size_t CountFiles() const { return ListImages(FolderOf("a")).size(); }

  const std::string other_digest_ = std::string(32, 'o');
  std::unique_ptr<ImageFiles> there_;
};

TEST_F(SharedImagesTest, WhatOneWritesTheOthersRead) {
  const StateImage image = MakeImage(100, 1);
  ASSERT_TRUE(files_->Put("a", digest_, image).ok());
  const auto stored = there_->Get("a", kAnySize);
  ASSERT_TRUE(stored.ok()) << stored.status();
  EXPECT_TRUE(EqualImages(stored->image, image));
  ASSERT_TRUE(there_->Put("a", digest_, MakeImage(100, 2)).ok());
  EXPECT_EQ(Get("a")->image.position, 1002);
  EXPECT_EQ(CountFiles(), 1u);
  ASSERT_TRUE(there_->Remove("a").ok());
  EXPECT_TRUE(absl::IsNotFound(Get("a").status()));
}

TEST_F(SharedImagesTest, OneThatComesLateDoesNotReplaceALaterOne) {
  ASSERT_TRUE(there_->Put("a", digest_, MakeImage(100, 9)).ok());
  ASSERT_TRUE(files_->Put("a", digest_, MakeImage(100, 1)).ok());
  EXPECT_EQ(PositionThere(), 1009);
  EXPECT_EQ(Get("a")->image.position, 1009);
  // It goes with the next one.
  ASSERT_TRUE(there_->Put("a", digest_, MakeImage(100, 10)).ok());
  EXPECT_EQ(CountFiles(), 1u);
}

TEST_F(SharedImagesTest, TwoOfOnePositionAreTwoFiles) {
  const StateImage image = MakeImage(100, 1);
  ASSERT_TRUE(files_->Put("a", digest_, image).ok());
  ASSERT_TRUE(there_->Put("a", digest_, image).ok());
  EXPECT_EQ(CountFiles(), 1u);  // the same
  // By a server that was fenced, of a text that nobody has.
  ASSERT_TRUE(there_->Put("a", other_digest_, image).ok());
  EXPECT_EQ(CountFiles(), 2u);
  const auto stored = Get("a");
  ASSERT_TRUE(stored.ok()) << stored.status();
  EXPECT_TRUE(EqualImages(stored->image, image));
  ASSERT_TRUE(files_->Put("a", digest_, MakeImage(100, 2)).ok());
  EXPECT_EQ(CountFiles(), 1u);
}

TEST_F(SharedImagesTest, AnOlderOneServesWhereALaterOneIsDamaged) {
  ASSERT_TRUE(files_->Put("a", digest_, MakeImage(100, 9)).ok());
  const std::string later = PathOf("a");
  ASSERT_TRUE(there_->Put("a", digest_, MakeImage(100, 5)).ok());
  WriteFile(later, ReadFile(later).substr(0, 60));
  EXPECT_EQ(PositionThere(), 1005);
  EXPECT_TRUE(exists(AsideOf("a")));
  EXPECT_EQ(CountFiles(), 1u);
}

TEST_F(SharedImagesTest, WhatAnotherIsWritingStaysUntilItIsOld) {
  const std::string writing = folder_ + "/images/new/0123456789abcdef-0";
  const std::string given_up = folder_ + "/images/new/0123456789abcdef-1";
  for (const std::string& path : {writing, given_up}) WriteFile(path, "x");
  const auto age = absl::ToChronoSeconds(ImageFiles::kHalfWritten);
  std::filesystem::last_write_time(
      given_up, std::filesystem::file_time_type::clock::now() - 2 * age);
  there_ = OpenAnother();
  there_->WaitForScan();
  EXPECT_TRUE(exists(writing));
  EXPECT_FALSE(exists(given_up));
}

TEST_F(SharedImagesTest, WhatAnotherHasUsedIsNotTheOldest) {
  for (const char* id : {"a", "b", "c"}) {
    ASSERT_TRUE(files_->Put(id, digest_, MakeImage(100, 1)).ok());
  }
  const int64_t one = files_->bytes() / 3;
  there_ = OpenAnother(3 * one);
  there_->WaitForScan();
  EXPECT_EQ(there_->bytes(), 3 * one);
  ASSERT_TRUE(Has("a"));
  ASSERT_TRUE(files_->Remove("b").ok());
  ASSERT_TRUE(there_->Put("d", digest_, MakeImage(100, 1)).ok());
  EXPECT_TRUE(exists(PathOf("a")));
  EXPECT_TRUE(exists(PathOf("c")));  // "b" had made the room
  ASSERT_TRUE(there_->Put("e", digest_, MakeImage(100, 1)).ok());
  EXPECT_FALSE(exists(PathOf("c")));
  EXPECT_TRUE(exists(PathOf("a")));
}

TEST_F(SharedImagesTest, WhatOthersDidIsCountedWhenItLooksAgain) {
  there_ = OpenAnother(kAnySize, absl::Milliseconds(1));
  ASSERT_TRUE(files_->Put("a", digest_, MakeImage(100, 1)).ok());
  ASSERT_TRUE(files_->Put("b", digest_, MakeImage(100, 1)).ok());
  while (there_->bytes() != files_->bytes()) std::this_thread::yield();
  ASSERT_TRUE(files_->Remove("a").ok());
  while (there_->bytes() != files_->bytes()) std::this_thread::yield();
  EXPECT_GT(there_->bytes(), 0);
}

// Whatever two servers do, a reader sees whole images or none, and what a
// session has last stays.
TEST_F(SharedImagesTest, TwoWritersNeverSpoilAnImage) {
  constexpr uint32_t kImages = 60;
  const auto write = [this](ImageFiles& files, uint32_t first) {
    for (uint32_t i = first; i < kImages; i += 2) {
      EXPECT_TRUE(files.Put("a", digest_, MakeImage(9000, i)).ok());
      const auto stored = files.Get("a", kAnySize);
      if (!stored.ok()) {
        // It was replaced while it was being opened.
        EXPECT_TRUE(absl::IsNotFound(stored.status())) << stored.status();
        continue;
      }
      const auto made = static_cast<uint32_t>(stored->image.position - 1000);
      EXPECT_GE(made, i);
      EXPECT_TRUE(EqualImages(stored->image, MakeImage(9000, made)));
      if (i % 7 == 0) {
        EXPECT_TRUE(files.Remove("b").ok());
      }
      EXPECT_TRUE(files.Put("b", digest_, MakeImage(10, i)).ok());
    }
  };
  std::thread other([&] { write(*there_, 1); });
  write(*files_, 0);
  other.join();
  EXPECT_EQ(PositionThere(), 1000 + kImages - 1);
  ASSERT_TRUE(files_->Put("a", digest_, MakeImage(9000, kImages)).ok());
  EXPECT_EQ(CountFiles(), 1u);
  EXPECT_EQ(CountNew(), 0);
}

}  // namespace
}  // namespace txl
