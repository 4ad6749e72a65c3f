#include "server/store/file_calls.h"

#include <fcntl.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace txl {
namespace {

using ::testing::HasSubstr;

TEST(FileCalls, AFullDiskIsToldFromOtherErrors) {
  EXPECT_TRUE(absl::IsResourceExhausted(FileError("p", "write", ENOSPC)));
  EXPECT_TRUE(absl::IsResourceExhausted(FileError("p", "write", EDQUOT)));
  EXPECT_TRUE(absl::IsUnavailable(FileError("p", "write", EIO)));
  EXPECT_EQ(FileError("/a/b", "write", ENOSPC).message(),
            "/a/b: cannot write: No space left on device");
}

TEST(FileCalls, AWriteToAFullDeviceSaysSo) {
  const FileDescriptor full(open("/dev/full", O_WRONLY));
  ASSERT_TRUE(full.is_open());
  const absl::Status status = WriteFully(full.fd(), "/dev/full", "bytes");
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
}

TEST(FileCalls, AReadGivesAllBytesOrAnError) {
  const std::string path = testing::TempDir() + "txl_file_calls";
  const FileDescriptor file(
      open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600));
  ASSERT_TRUE(WriteFully(file.fd(), path, "12345").ok());
  std::string read(5, '\0');
  ASSERT_EQ(lseek(file.fd(), 0, SEEK_SET), 0);
  ASSERT_TRUE(ReadFully(file.fd(), path, read.data(), 5).ok());
  EXPECT_EQ(read, "12345");
  EXPECT_TRUE(absl::IsOutOfRange(ReadFully(file.fd(), path, read.data(), 1)));
  EXPECT_TRUE(absl::IsUnavailable(ReadFully(-1, path, read.data(), 1)));
  std::filesystem::remove(path);
}

TEST(FileCalls, AFolderIsMadeOnce) {
  const std::string path = testing::TempDir() + "txl_file_calls_folder";
  std::filesystem::remove_all(path);
  EXPECT_TRUE(MakeFolder(path).ok());
  EXPECT_TRUE(MakeFolder(path).ok());
  EXPECT_TRUE(SyncFolder(path).ok());
  const absl::Status status = MakeFolder(path + "/a/b");
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_THAT(status.message(), HasSubstr(path + "/a/b"));
  EXPECT_TRUE(absl::IsUnavailable(SyncFolder(path + "/a")));
  std::filesystem::remove_all(path);
}

TEST(FileCalls, ADescriptorThatMovedIsClosedOnce) {
  FileDescriptor first(open("/dev/null", O_RDONLY));
  const int fd = first.fd();
  FileDescriptor second = std::move(first);
  EXPECT_EQ(second.fd(), fd);
  {
    FileDescriptor third;
    EXPECT_FALSE(third.is_open());
    third = std::move(second);
    EXPECT_EQ(fcntl(fd, F_GETFD), FD_CLOEXEC & fcntl(fd, F_GETFD));
  }
  EXPECT_EQ(fcntl(fd, F_GETFD), -1);
}

}  // namespace
}  // namespace txl
