// A damaged file is refused, set aside and never found again.

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "absl/status/status.h"
#include "tests/server/store/image_files_fixture.h"

namespace txl {
namespace {

using std::filesystem::exists;

class ImageFilesDamageTest : public ImageFilesTest {
 protected:
  void SetUp() override {
    ImageFilesTest::SetUp();
    ASSERT_TRUE(files_->Put("a", digest_, MakeImage(40, 1)).ok());
    path_ = PathOf("a");
    whole_ = ReadFile(path_);
  }

  // The damaged file in the place of the whole one.
  void ExpectRefused(const std::string& damaged) {
    WriteFile(path_, damaged);
    const absl::Status status = Get("a").status();
    ASSERT_TRUE(absl::IsDataLoss(status)) << status;
    ASSERT_FALSE(exists(path_));
    ASSERT_EQ(ReadFile(AsideOf("a")), damaged);
    ASSERT_TRUE(absl::IsNotFound(Get("a").status()));
    ASSERT_EQ(files_->bytes(), 0);
  }

  std::string path_;
  std::string whole_;
};

TEST_F(ImageFilesDamageTest, EveryFlippedByteIsNoticed) {
  for (size_t i = 0; i < whole_.size(); ++i) {
    for (const int flip : {0x01, 0x80, 0xFF}) {
      std::string damaged = whole_;
      damaged[i] = static_cast<char>(damaged[i] ^ flip);
      ExpectRefused(damaged);
      ASSERT_FALSE(HasFatalFailure()) << "byte " << i;
    }
  }
}

TEST_F(ImageFilesDamageTest, EveryCutAndEveryAdditionIsNoticed) {
  for (size_t size = 0; size < whole_.size(); ++size) {
    ExpectRefused(whole_.substr(0, size));
    ASSERT_FALSE(HasFatalFailure()) << size << " bytes";
  }
  ExpectRefused(whole_ + '\0');
  ExpectRefused(whole_ + whole_);
}

TEST_F(ImageFilesDamageTest, SizesAreNotBelievedBeforeTheFileShowsThem) {
  // Bytes 8-11 are those of the head's size, 12-19 those of the data's.
  for (const size_t byte : {size_t{11}, size_t{15}, size_t{18}, size_t{19}}) {
    std::string damaged = whole_;
    damaged[byte] = '\x7F';
    ExpectRefused(damaged);
  }
}

TEST_F(ImageFilesDamageTest, AnImageUnderAnotherSessionsNameIsRefused) {
  ASSERT_TRUE(files_->Put("b", digest_, MakeImage(40, 2)).ok());
  WriteFile(PathOf("b"), whole_);
  EXPECT_TRUE(absl::IsDataLoss(Get("b").status()));
  EXPECT_TRUE(exists(AsideOf("b")));
  EXPECT_TRUE(Has("a"));
}

TEST_F(ImageFilesDamageTest, AnotherVersionStaysForItsOwnAndIsNotCalledDamage) {
  std::string other = whole_.substr(0, whole_.size() - kDigestBytes);
  other[4] = 2;
  other += Sha256Of(other);
  WriteFile(path_, other);
  EXPECT_TRUE(absl::IsNotFound(Get("a").status()));
  EXPECT_EQ(ReadFile(path_), other);
  EXPECT_FALSE(exists(AsideOf("a")));
}

TEST_F(ImageFilesDamageTest, WhatIsNoFileIsNotReadNorWaitedFor) {
  std::filesystem::remove(path_);
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  EXPECT_TRUE(absl::IsDataLoss(Get("a").status()));
  ASSERT_TRUE(files_->Put("b", digest_, MakeImage(40, 1)).ok());
  std::filesystem::create_symlink(PathOf("b"), path_);
  EXPECT_TRUE(absl::IsUnavailable(Get("a").status()));
}

TEST_F(ImageFilesDamageTest, ANewImageTakesThePlaceOfADamagedOne) {
  ExpectRefused(whole_.substr(0, 30));
  ASSERT_TRUE(files_->Put("a", digest_, MakeImage(40, 3)).ok());
  EXPECT_TRUE(Has("a"));
  EXPECT_TRUE(exists(AsideOf("a")));
}

TEST_F(ImageFilesDamageTest, TheQuarantineKeepsTheLastFewOnly) {
  constexpr int kMost = ImageFiles::kMostInQuarantine;
  for (int i = 0; i < kMost + 3; ++i) {
    const std::string id = absl::StrCat("s", i);
    ASSERT_TRUE(files_->Put(id, digest_, MakeImage(40, 1)).ok());
    ASSERT_EQ(truncate(PathOf(id).c_str(), 50), 0);
    EXPECT_TRUE(absl::IsDataLoss(Get(id).status()));
  }
  int kept = 0;
  for (int i = 0; i < kMost + 3; ++i) {
    kept += exists(AsideOf(absl::StrCat("s", i))) ? 1 : 0;
  }
  EXPECT_EQ(kept, kMost);
}

}  // namespace
}  // namespace txl
