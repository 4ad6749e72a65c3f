#include "server/listen_address.h"

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

using ::testing::HasSubstr;

TEST(HostPort, IsAHostAndAPort) {
  for (const char* good : {"127.0.0.1:0", "0.0.0.0:9090", "localhost:65535",
                           "[::1]:9090", "metrics.internal:80"}) {
    EXPECT_EQ(CheckHostPort(good), "") << good;
  }
}

TEST(HostPort, SaysWhatIsWrong) {
  for (const char* bad :
       {"", "9090", ":9090", "host", "host:", "host:x", "host:-1", "host:+1",
        "host:65536", "host: 1", "unix:/run/m.sock", "a:b:1", "::1:9090",
        "[]:1", "[::1:1", "h:1,i:2", "a b:1", "host:1s"}) {
    EXPECT_THAT(CheckHostPort(bad), HasSubstr("is not HOST:PORT")) << bad;
  }
}

TEST(ListenAddress, IsHostAndPortOrAUnixSocket) {
  for (const char* good : {"127.0.0.1:0", "[::1]:50051", "host:65535",
                           "unix:/run/txl.sock", "unix:relative"}) {
    EXPECT_EQ(CheckListen(good), "") << good;
    EXPECT_EQ(CheckAdminListen(good), "") << good;
  }
  for (const char* bad : {"off", "auto", "", "host", ":1", "host:", "host:x",
                          "host:-1", "host:65536", "host:+80", "host: 80",
                          "::1:80", "http://127.0.0.1:80"}) {
    EXPECT_THAT(CheckListen(bad), HasSubstr("neither HOST:PORT nor unix:PATH"))
        << bad;
  }
  EXPECT_EQ(CheckListen("unix:"), "unix: needs a path");
  EXPECT_EQ(CheckListen("unix:" + std::string(107, 'a')), "");
  EXPECT_EQ(CheckListen("unix:" + std::string(108, 'a')),
            "the path of a Unix socket has at most 107 bytes");
}

TEST(HostList, HasNamesAndAddressesWithCommasBetweenThem) {
  EXPECT_EQ(ItemsOf(" a, b,,[::1] ,"),
            (std::vector<std::string>{"a", "b", "[::1]"}));
  EXPECT_EQ(CheckHosts("chat.example, txl_1:8080,[::1],10.0.0.1"), "");
  for (const char* bad : {"a, http://b", "a b", "a/b", "a,b?c"}) {
    EXPECT_THAT(CheckHosts(bad), HasSubstr("is not a host name")) << bad;
  }
}

TEST(OriginList, HasWhatBrowsersSend) {
  EXPECT_EQ(CheckOrigins("https://chat.example, http://[::1]:80,null"), "");
  EXPECT_EQ(CheckOrigins("chrome-extension://abc"), "");
  for (const char* bad : {"chat.example", "https://x.example/", "https://",
                          "://a", "https://a, b", "https://a b"}) {
    EXPECT_THAT(CheckOrigins(bad), HasSubstr("is not an origin like")) << bad;
  }
}

TEST(AdminAddress, MayBeLeftToTheServerOrBeNone) {
  for (const char* word : {"auto", "off", "OFF", "Auto", ""}) {
    EXPECT_EQ(CheckAdminListen(word), "") << word;
  }
  EXPECT_NE(CheckAdminListen("on"), "");
}

TEST(AdminAddress, IsASocketInTheFolderOfTheStoreUnlessSomebodySays) {
  EXPECT_EQ(AdminAddress("auto", "/data"), "unix:/data/admin.sock");
  EXPECT_EQ(AdminAddress("AUTO", "/data"), "unix:/data/admin.sock");
  EXPECT_EQ(AdminAddress("Off", "/data"), "");
  EXPECT_EQ(AdminAddress("auto", ""), "");
  for (const char* folder : {"", "/data"}) {
    EXPECT_EQ(AdminAddress("off", folder), "");
    EXPECT_EQ(AdminAddress("", folder), "");
    EXPECT_EQ(AdminAddress("unix:/s", folder), "unix:/s");
    EXPECT_EQ(AdminAddress("127.0.0.1:7", folder), "127.0.0.1:7");
  }
}

}  // namespace

// Who may listen on a path. Live sockets; those of killed servers; others'.

namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class SocketLockTest : public ::testing::Test {
 protected:
  SocketLockTest() {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  ~SocketLockTest() override { std::filesystem::remove_all(folder_); }

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
    return std::string(LockSocket(listen_).status().message());
  }

  const std::string folder_ =
      ::testing::TempDir() + "/lock-" +
      ::testing::UnitTest::GetInstance()->current_test_info()->name();
  const std::string path_ = folder_ + "/s";
  const std::string listen_ = "unix:" + path_;
};

TEST_F(SocketLockTest, IsForOneServerAtATime) {
  {
    const auto first = LockSocket(listen_);
    ASSERT_TRUE(first.ok()) << first.status();
    EXPECT_EQ(LockSocket(listen_).status().code(),
              absl::StatusCode::kUnavailable);
    EXPECT_THAT(Error(), AllOf(HasSubstr(path_), HasSubstr("another server")));
  }
  EXPECT_TRUE(LockSocket(listen_).ok());
}

TEST_F(SocketLockTest, MovesWithItsHolder) {
  SocketLock kept;
  {
    auto lock = LockSocket(listen_);
    ASSERT_TRUE(lock.ok()) << lock.status();
    kept = *std::move(lock);
  }
  EXPECT_FALSE(LockSocket(listen_).ok());
}

TEST_F(SocketLockTest, WantsNothingForOtherAddresses) {
  EXPECT_TRUE(LockSocket("127.0.0.1:0").ok());
  EXPECT_TRUE(LockSocket("127.0.0.1:0").ok());
}

TEST_F(SocketLockTest, ASocketGetsThePermissionsThatAreAskedFor) {
  const int fd = Bind();
  ASSERT_TRUE(SetSocketMode(listen_, "0660").ok());
  ASSERT_TRUE(SetSocketMode(listen_, "").ok());
  ASSERT_TRUE(SetSocketMode("127.0.0.1:1", "0600").ok());
  EXPECT_EQ(std::filesystem::status(path_).permissions(),
            std::filesystem::perms{0660});
  ::close(fd);
  std::filesystem::remove(path_);
  EXPECT_THAT(SetSocketMode(listen_, "0660").message(), HasSubstr(path_));
}

TEST_F(SocketLockTest, TakesASocketThatAKilledServerLeft) {
  ::close(Bind());
  EXPECT_TRUE(std::filesystem::exists(path_));
  EXPECT_TRUE(LockSocket(listen_).ok());
}

TEST_F(SocketLockTest, LeavesASocketThatAnotherProgramListensOn) {
  const int fd = Bind();
  ASSERT_EQ(::listen(fd, 1), 0);
  EXPECT_THAT(Error(), AllOf(HasSubstr(path_), HasSubstr("listens there")));
  ::close(fd);
}

TEST_F(SocketLockTest, LeavesAFileThatIsNoSocket) {
  std::ofstream(path_) << "text";
  EXPECT_THAT(Error(), AllOf(HasSubstr(path_), HasSubstr("not a socket")));
  EXPECT_TRUE(std::filesystem::exists(path_));
}

TEST_F(SocketLockTest, NamesAFolderThatIsNotThere) {
  std::filesystem::remove_all(folder_);
  EXPECT_THAT(Error(), HasSubstr(path_ + ".lock"));
}

TEST_F(SocketLockTest, DoesNotFollowALinkInTheLocksPlace) {
  std::filesystem::create_symlink(folder_ + "/other", path_ + ".lock");
  EXPECT_FALSE(LockSocket(listen_).ok());
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/other"));
}

using ::testing::HasSubstr;

std::string Refusal(const Exposure& exposure) {
  const absl::Status status = CheckExposure(exposure);
  if (status.ok()) return "";
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return std::string(status.message());
}

TEST(OfThisMachine, AreLoopbackAndUnixSockets) {
  for (const char* own : {"127.0.0.1:50051", "127.8.9.10:0", "localhost:1",
                          "[::1]:50051", "unix:/run/txl.sock"}) {
    EXPECT_TRUE(IsOfThisMachine(own)) << own;
  }
}

TEST(OfThisMachine, IsNothingElse) {
  for (const char* other :
       {"0.0.0.0:50051", "[::]:50051", "10.0.0.1:50051", "128.0.0.1:1",
        "txl.example:1", "127.evil.example:1", "localhost.example:1", "*:1",
        "[::ffff:10.0.0.1]:1"}) {
    EXPECT_FALSE(IsOfThisMachine(other)) << other;
  }
}

TEST(BeyondLoopback, AListenerNeedsTlsOrAWordForNone) {
  const TlsFiles tls = {"c.pem", "k.pem", ""};
  EXPECT_THAT(Refusal({"0.0.0.0:1", "", {}, false}),
              HasSubstr("--listen 0.0.0.0:1: is beyond loopback"));
  EXPECT_THAT(Refusal({"127.0.0.1:1", "[::]:2", {}, false}),
              HasSubstr("--http-listen [::]:2: is beyond loopback"));
  EXPECT_EQ(Refusal({"0.0.0.0:1", "[::]:2", tls, false}), "");
  EXPECT_EQ(Refusal({"0.0.0.0:1", "[::]:2", {}, true}), "");
  EXPECT_EQ(Refusal({"unix:/s", "127.0.0.1:2", {}, false}), "");
}

TEST(BeyondLoopback, NothingLetsAdministrationListen) {
  const TlsFiles tls = {"c.pem", "k.pem", ""};
  EXPECT_THAT(Refusal({"127.0.0.1:1", "", tls, true, "0.0.0.0:3"}),
              HasSubstr("--admin-listen 0.0.0.0:3: is beyond loopback"));
  for (const char* own : {"", "unix:/s", "127.0.0.1:3", "[::1]:3"}) {
    EXPECT_EQ(Refusal({"127.0.0.1:1", "", {}, false, own}), "") << own;
  }
}

TEST(FilesOfTls, ComeTogether) {
  EXPECT_THAT(Refusal({"127.0.0.1:1", "", {"c.pem", "", ""}, false}),
              HasSubstr("--tls-cert: needs --tls-key"));
  EXPECT_THAT(Refusal({"127.0.0.1:1", "", {"", "k.pem", ""}, true}),
              HasSubstr("--tls-key: needs --tls-cert"));
  EXPECT_THAT(Refusal({"unix:/s", "", {"", "", "ca.pem"}, true}),
              HasSubstr("--tls-client-ca: needs --tls-cert and --tls-key"));
  EXPECT_THAT(
      Refusal({"127.0.0.1:1", "", {"c.pem", "k.pem", "", "r.crl"}, false}),
      HasSubstr("--tls-crl: needs --tls-client-ca"));
  EXPECT_EQ(Refusal({"127.0.0.1:1", "", {"c.pem", "k.pem", "ca.pem"}, false}),
            "");
}

}  // namespace

}  // namespace txl
