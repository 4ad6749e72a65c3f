#include "server/base/text_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace txl {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(TextFileTest, IsReadWhole) {
  const std::filesystem::path file =
      std::filesystem::path(::testing::TempDir()) / "text_file_test_whole";
  const std::string text = "a\n\nb" + std::string(100'000, 'c');
  std::ofstream(file) << text;
  EXPECT_EQ(ReadTextFile(file), text);
}

TEST(TextFileTest, OfTheKernelIsReadThoughItsSizeIsNothing) {
  EXPECT_THAT(ReadTextFile("/proc/self/status"), HasSubstr("Name:"));
}

TEST(TextFileTest, IsEmptyWhereThereIsNone) {
  EXPECT_THAT(ReadTextFile("/proc/self/no_such_file"), IsEmpty());
}

TEST(TextFileTest, IsEmptyWhereItIsAFolder) {
  EXPECT_THAT(ReadTextFile("/proc/self"), IsEmpty());
}

TEST(FileVersionTest, IsTheSameUntilTheFileIsAnother) {
  const std::filesystem::path file =
      std::filesystem::path(::testing::TempDir()) / "file_version_test";
  std::ofstream(file) << "one";
  const std::string first = FileVersion(file);
  EXPECT_EQ(FileVersion(file), first);
  std::ofstream(file.string() + ".new") << "two";
  std::filesystem::rename(file.string() + ".new", file);
  const std::string renamed = FileVersion(file);
  EXPECT_NE(renamed, first);
  ASSERT_EQ(chmod(file.c_str(), 0600), 0);
  const std::string closed = FileVersion(file);
  EXPECT_NE(closed, renamed);
  std::ofstream(file) << "longer";
  EXPECT_NE(FileVersion(file), closed);
  std::filesystem::remove(file);
  EXPECT_THAT(FileVersion(file), IsEmpty());
}

using testing::HasSubstr;
using testing::StartsWith;

class SecretFile : public testing::Test {
 protected:
  SecretFile() {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  static mode_t ModeOf(const std::string& path) {
    struct stat found = {};
    EXPECT_EQ(stat(path.c_str(), &found), 0);
    return found.st_mode & 07777;
  }
  size_t Files() const {
    const std::filesystem::directory_iterator all(folder_);
    return static_cast<size_t>(std::distance(begin(all), end(all)));
  }

  const std::string folder_ =
      absl::StrCat(testing::TempDir(), "/secret_file_", getpid());
  const std::string path_ = folder_ + "/secret";
};

TEST_F(SecretFile, IsReadAsItWasWritten) {
  const std::string bytes("a\0\n\xff", 4);
  ASSERT_TRUE(WriteSecretFile(path_, bytes).ok());
  EXPECT_EQ(*ReadSecretFile(path_, {0, 4}), bytes);
  ASSERT_TRUE(WriteSecretFile(path_, "").ok());
  EXPECT_EQ(*ReadSecretFile(path_, {0, 4}), "");
}

TEST_F(SecretFile, IsItsOwnersWhateverTheUmaskAndTheOldFileWere) {
  std::ofstream(path_) << "old";
  ASSERT_EQ(chmod(path_.c_str(), 0666), 0);
  const mode_t before = umask(0);
  ASSERT_TRUE(WriteSecretFile(path_, "new").ok());
  umask(before);
  EXPECT_EQ(ModeOf(path_), 0600u);
  EXPECT_EQ(Files(), 1u) << "nothing is left beside it";
}

TEST_F(SecretFile, IsWrittenWhereItsLinkLeads) {
  std::filesystem::create_directories(folder_ + "/far");
  std::filesystem::create_symlink("far/secret", path_);
  for (const char* bytes : {"first", "second"}) {  // dangling at first
    ASSERT_TRUE(WriteSecretFile(path_, bytes).ok());
    EXPECT_TRUE(std::filesystem::is_symlink(path_));
    EXPECT_EQ(*ReadSecretFile(folder_ + "/far/secret", {0, 9}), bytes);
  }
}

TEST_F(SecretFile, StaysItsOwners) {
  // Only root gives files away; of others a file is and stays their own.
  const bool gives = geteuid() == 0;
  const uid_t owner = gives ? 10001 : geteuid();
  const gid_t group = gives ? 10001 : getegid();
  std::ofstream(path_) << "old";
  ASSERT_EQ(chown(path_.c_str(), owner, group), 0);
  ASSERT_TRUE(WriteSecretFile(path_, "new").ok());
  struct stat found = {};
  ASSERT_EQ(stat(path_.c_str(), &found), 0);
  EXPECT_EQ(found.st_uid, owner);
  EXPECT_EQ(found.st_gid, group);
  EXPECT_EQ(ModeOf(path_), 0600u);
}

TEST_F(SecretFile, ThatCannotBeWrittenLeavesTheOldOne) {
  std::filesystem::create_directories(path_ + "/not_empty");
  const absl::Status status = WriteSecretFile(path_, "new");
  EXPECT_THAT(status.message(), HasSubstr(path_));
  EXPECT_TRUE(std::filesystem::exists(path_ + "/not_empty"));
  EXPECT_EQ(Files(), 1u);
  EXPECT_THAT(WriteSecretFile(folder_ + "/none/secret", "new").message(),
              HasSubstr(folder_ + "/none/secret"));
}

TEST_F(SecretFile, OfAnotherSizeOrThatOthersMayUseIsRefusedByName) {
  ASSERT_TRUE(WriteSecretFile(path_, "12345").ok());
  const absl::Status size = ReadSecretFile(path_, {6, 7, "a key"}).status();
  EXPECT_EQ(size.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(size.message(), path_ + ": has 5 bytes, a key has 6 to 7");
  ASSERT_EQ(chmod(path_.c_str(), 0640), 0);
  EXPECT_TRUE(ReadSecretFile(path_, {0, 9}).ok()) << "its group may read it";
  for (const mode_t mode : {0604, 0620, 0610, 0602, 0644}) {
    ASSERT_EQ(chmod(path_.c_str(), mode), 0);
    const absl::Status open = ReadSecretFile(path_, {0, 9}).status();
    EXPECT_EQ(open.code(), absl::StatusCode::kFailedPrecondition) << mode;
    EXPECT_THAT(open.message(), HasSubstr("secret: others may use it"));
  }
}

}  // namespace

}  // namespace txl
