// Who may listen on a path. Live sockets; those of killed servers; others'.

#include "server/unix_socket.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace txl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class SocketClaimTest : public ::testing::Test {
 protected:
  SocketClaimTest() {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  ~SocketClaimTest() override { std::filesystem::remove_all(folder_); }

  // A socket of another program at the path, listened on or left behind.
  int Bind() {
    const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un name = {};
    name.sun_family = AF_UNIX;
    path_.copy(name.sun_path, sizeof(name.sun_path) - 1);
    EXPECT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&name), sizeof(name)), 0);
    return fd;
  }
  std::string Error() const {
    return std::string(ClaimSocket(listen_).status().message());
  }

  const std::string folder_ =
      ::testing::TempDir() + "/claim-" +
      ::testing::UnitTest::GetInstance()->current_test_info()->name();
  const std::string path_ = folder_ + "/s";
  const std::string listen_ = "unix:" + path_;
};

TEST_F(SocketClaimTest, IsForOneServerAtATime) {
  {
    const auto first = ClaimSocket(listen_);
    ASSERT_TRUE(first.ok()) << first.status();
    EXPECT_EQ(ClaimSocket(listen_).status().code(),
              absl::StatusCode::kUnavailable);
    EXPECT_THAT(Error(), AllOf(HasSubstr(path_), HasSubstr("another server")));
  }
  EXPECT_TRUE(ClaimSocket(listen_).ok());
}

TEST_F(SocketClaimTest, MovesWithItsHolder) {
  SocketClaim kept;
  {
    auto claim = ClaimSocket(listen_);
    ASSERT_TRUE(claim.ok()) << claim.status();
    kept = *std::move(claim);
  }
  EXPECT_FALSE(ClaimSocket(listen_).ok());
}

TEST_F(SocketClaimTest, WantsNothingForOtherAddresses) {
  EXPECT_TRUE(ClaimSocket("127.0.0.1:0").ok());
  EXPECT_TRUE(ClaimSocket("127.0.0.1:0").ok());
}

TEST_F(SocketClaimTest, ASocketGetsThePermissionsThatAreAskedFor) {
  const int fd = Bind();
  ASSERT_TRUE(SetSocketMode(listen_, "0660").ok());
  ASSERT_TRUE(SetSocketMode(listen_, "").ok());
  ASSERT_TRUE(SetSocketMode("127.0.0.1:1", "0600").ok());
  EXPECT_EQ(std::filesystem::status(path_).permissions(),
            std::filesystem::perms{0660});
  ::close(fd);
  std::filesystem::remove(path_);
  EXPECT_THAT(std::string(SetSocketMode(listen_, "0660").message()),
              HasSubstr(path_));
}

TEST_F(SocketClaimTest, TakesASocketThatAKilledServerLeft) {
  ::close(Bind());
  EXPECT_TRUE(std::filesystem::exists(path_));
  EXPECT_TRUE(ClaimSocket(listen_).ok());
}

TEST_F(SocketClaimTest, LeavesASocketThatAnotherProgramListensOn) {
  const int fd = Bind();
  ASSERT_EQ(::listen(fd, 1), 0);
  EXPECT_THAT(Error(), AllOf(HasSubstr(path_), HasSubstr("listens there")));
  ::close(fd);
}

TEST_F(SocketClaimTest, LeavesAFileThatIsNoSocket) {
  std::ofstream(path_) << "text";
  EXPECT_THAT(Error(), AllOf(HasSubstr(path_), HasSubstr("no socket")));
  EXPECT_TRUE(std::filesystem::exists(path_));
}

TEST_F(SocketClaimTest, NamesAFolderThatIsNotThere) {
  std::filesystem::remove_all(folder_);
  EXPECT_THAT(Error(), HasSubstr(path_ + ".lock"));
}

TEST_F(SocketClaimTest, DoesNotFollowALinkInTheLocksPlace) {
  std::filesystem::create_symlink(folder_ + "/other", path_ + ".lock");
  EXPECT_FALSE(ClaimSocket(listen_).ok());
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/other"));
}

}  // namespace
}  // namespace txl
