#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "server/watchdog.h"
#include "tests/fakes/fake_clock.h"

namespace txl {
namespace {

constexpr absl::Duration kLimit = absl::Seconds(5);

// Attempts one second apart, '+' those that succeed; whether it was deaf after
// the last.
bool DeafAfter(const std::string& attempts) {
  FailedAttempts failed;
  absl::Duration now = absl::Hours(1);
  for (const char attempt : attempts) {
    failed = WithAttempt(failed, attempt == '+', now);
    now += absl::Seconds(1);
  }
  return IsDeaf(failed, now, kLimit);
}

TEST(IsDeafTest, WhenEveryAttemptFailsForTheLimit) {
  EXPECT_TRUE(DeafAfter("-----"));
  EXPECT_TRUE(DeafAfter("+++-----"));
}

TEST(IsDeafTest, NotBefore) {
  EXPECT_FALSE(DeafAfter(""));
  EXPECT_FALSE(DeafAfter("----"));
}

TEST(IsDeafTest, NotWhenOneSucceedsInBetween) {
  EXPECT_FALSE(DeafAfter("----+----"));
  EXPECT_FALSE(DeafAfter("-----+"));
}

TEST(IsDeafTest, NotWhenTheProcessWasStoppedDuringAnAttempt) {
  FailedAttempts failed = WithAttempt({}, false, absl::ZeroDuration());
  EXPECT_FALSE(IsDeaf(failed, absl::Hours(1), kLimit));
  failed = WithAttempt(failed, false, absl::Hours(1));
  EXPECT_FALSE(IsDeaf(failed, absl::Hours(1), kLimit));
  failed = WithAttempt(failed, true, absl::Hours(1));
  EXPECT_FALSE(IsDeaf(failed, absl::Hours(2), kLimit));
}

TEST(ListenerWatchTest, SaysWhyTheLastAttemptFailed) {
  FakeClock clock;
  std::atomic<int> attempts{0};
  std::atomic<bool> told{false};
  absl::Status why;
  absl::Notification deaf;
  ListenerWatchOptions options;
  options.clock = &clock;
  options.interval = absl::Microseconds(10);
  options.limit = kLimit;
  options.attempt = [&] {
    ++attempts;
    clock.Advance(absl::Seconds(1));
    return absl::UnavailableError("connection refused");
  };
  options.deaf = [&](const absl::Status& status) {
    if (told.exchange(true)) return;
    EXPECT_EQ(attempts, 5);
    why = status;
    deaf.Notify();
  };
  const ListenerWatch watch(options);
  deaf.WaitForNotification();
  EXPECT_EQ(why.message(), "connection refused");
}

}  // namespace

// Listeners that answer, that hang up, that nobody accepts from, that are gone.

namespace {

using ::testing::HasSubstr;

constexpr absl::Duration kLong = absl::Seconds(60);
constexpr absl::Duration kShort = absl::Milliseconds(50);

class Listener {
 public:
  explicit Listener(int backlog = 16) : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in name = {};
    name.sin_family = AF_INET;
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(name);
    auto* address = reinterpret_cast<sockaddr*>(&name);
    EXPECT_EQ(::bind(fd_, address, size), 0);
    EXPECT_EQ(::listen(fd_, backlog), 0);
    EXPECT_EQ(::getsockname(fd_, address, &size), 0);
    port_ = ntohs(name.sin_port);
  }
  ~Listener() { Close(); }

  std::string Address(const std::string& host = "127.0.0.1") const {
    return absl::StrCat(host, ":", port_);
  }
  int Accept() { return ::accept(fd_, nullptr, nullptr); }
  void Close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }

 private:
  int fd_;
  int port_ = 0;
};

TEST(ListenerProbeTest, AListenerThatAnswersThePreface) {
  Listener listener;
  std::string hello(24, 0);
  std::thread server([&] {
    const int fd = listener.Accept();
    EXPECT_EQ(::recv(fd, hello.data(), hello.size(), MSG_WAITALL), 24);
    EXPECT_EQ(::send(fd, "x", 1, MSG_NOSIGNAL), 1);
    ::close(fd);
  });
  EXPECT_TRUE(ListenerProbe::Create(listener.Address(), kLong).ok());
  server.join();
  EXPECT_EQ(hello, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
}

TEST(ListenerProbeTest, AListenerOfTlsIsGreetedInTls) {
  Listener listener;
  std::string hello(6, 0);
  std::thread server([&] {
    const int fd = listener.Accept();
    EXPECT_EQ(::recv(fd, hello.data(), hello.size(), MSG_WAITALL), 6);
    EXPECT_EQ(::send(fd, "x", 1, MSG_NOSIGNAL), 1);
    ::close(fd);
  });
  EXPECT_TRUE(ListenerProbe::Create(listener.Address(), kLong, true).ok());
  server.join();
  EXPECT_EQ(hello[0], 0x16);  // a record of the handshake
  EXPECT_EQ(hello[5], 0x01);  // with a ClientHello
}

TEST(ListenerProbeTest, AListenerThatHangsUpIsThere) {
  Listener listener;
  std::thread server([&] { ::close(listener.Accept()); });
  EXPECT_TRUE(ListenerProbe::Create(listener.Address("localhost"), kLong).ok());
  server.join();
}

TEST(ListenerProbeTest, AListenerThatNobodyAcceptsFrom) {
  const Listener listener;
  EXPECT_THAT(
      ListenerProbe::Create(listener.Address(), kShort).status().message(),
      HasSubstr("no answer"));
}

TEST(ListenerProbeTest, AListenerThatIsGone) {
  Listener listener;
  std::thread server([&] { ::close(listener.Accept()); });
  const auto probe = ListenerProbe::Create(listener.Address(), kLong);
  server.join();
  ASSERT_TRUE(probe.ok()) << probe.status();
  listener.Close();
  EXPECT_THAT(probe->Try(kLong).message(), HasSubstr("refused"));
}

TEST(ListenerProbeTest, AUnixSocketThatIsNotThere) {
  const auto probe = ListenerProbe::Create("unix:/no/such/socket", kLong);
  EXPECT_EQ(probe.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_FALSE(
      ListenerProbe::Create("unix:/" + std::string(200, 'x'), kLong).ok());
}

}  // namespace

}  // namespace txl
