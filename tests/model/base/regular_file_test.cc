#include "model/base/regular_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace txl {
namespace {

using ::testing::HasSubstr;

class RegularFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(::testing::TempDir()) /
              ("regular_file_" + std::to_string(::getpid()));
    std::filesystem::create_directory(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string Path(const std::string& name) const {
    return (folder_ / name).string();
  }
  std::string Write(const std::string& name, const std::string& content) {
    std::ofstream(Path(name), std::ios::binary) << content;
    return Path(name);
  }
  void ExpectRefused(const std::string& path, absl::string_view why) {
    const auto opened = RegularFile::Open(path);
    EXPECT_EQ(opened.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(opened.status().message()),
                HasSubstr(path + ": " + std::string(why)));
    EXPECT_EQ(ReadRegularFile(path, 100).status(), opened.status());
  }

  std::filesystem::path folder_;
};

TEST_F(RegularFileTest, GivesTheWholeContent) {
  const std::string content = std::string(300'000, 'x') + '\0' + "end\n";
  const std::string path = Write("a", content);
  EXPECT_EQ(*ReadRegularFile(path, 1 << 20), content);
  EXPECT_EQ(*ReadRegularFile(Write("empty", ""), 0), "");
  EXPECT_EQ(RegularFile::Open(path)->bytes(), 300'005);
}

TEST_F(RegularFileTest, AFileOfTheKernelIsReadThoughItShowsNoSize) {
  const auto content = ReadRegularFile("/proc/self/status", 1 << 20);
  ASSERT_TRUE(content.ok()) << content.status();
  EXPECT_THAT(*content, HasSubstr("Name:"));
  EXPECT_FALSE(ReadRegularFile("/proc/self/status", 10).ok());
}

TEST_F(RegularFileTest, FollowsALink) {
  std::filesystem::create_symlink(Write("a", "text"), folder_ / "link");
  EXPECT_EQ(*ReadRegularFile(Path("link"), 4), "text");
}

TEST_F(RegularFileTest, APipeIsRefusedInsteadOfWaitedFor) {
  ASSERT_EQ(::mkfifo(Path("pipe").c_str(), 0600), 0);
  ExpectRefused(Path("pipe"), "is not a regular file");
}

TEST_F(RegularFileTest, ADirectoryAndADeviceAreRefused) {
  ExpectRefused(folder_.string(), "is not a regular file");
  ExpectRefused("/dev/zero", "is not a regular file");
}

TEST_F(RegularFileTest, MoreThanTheLimitIsRefusedNamingIt) {
  const std::string path = Write("a", "12345");
  EXPECT_TRUE(ReadRegularFile(path, 5).ok());
  const auto read = ReadRegularFile(path, 4);
  EXPECT_EQ(read.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(read.status().message(), path + ": has more than 4 bytes");
}

TEST_F(RegularFileTest, NoSuchFileIsNotFound) {
  EXPECT_EQ(RegularFile::Open(Path("none")).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(RegularFile::Open(Write("a", "") + "/none").status().code(),
            absl::StatusCode::kNotFound);
}

TEST_F(RegularFileTest, TheDescriptorIsClosedWithTheLastOwner) {
  auto file = RegularFile::Open(Write("a", "text"));
  ASSERT_TRUE(file.ok());
  int fd = -1;
  {
    const RegularFile moved = *std::move(file);
    fd = moved.fd();
    EXPECT_GE(::fcntl(fd, F_GETFD), 0);
  }
  EXPECT_EQ(::fcntl(fd, F_GETFD), -1);
}

}  // namespace
}  // namespace txl
