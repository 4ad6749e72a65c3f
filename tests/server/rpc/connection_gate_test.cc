// Connections: how many, and what becomes of the rest.

#include "server/rpc/connection_gate.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <grpcpp/generic/generic_stub.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "tests/fakes/fake_clock.h"
#include "tests/server/rpc/rpc_world.h"

namespace txl {
namespace {

// Plain connections that say nothing.
class Connections {
 public:
  explicit Connections(const std::string& address) {
    address_.sin_family = AF_INET;
    int port = 0;
    EXPECT_TRUE(
        absl::SimpleAtoi(address.substr(address.rfind(':') + 1), &port));
    address_.sin_port = htons(static_cast<in_port_t>(port));
    inet_pton(AF_INET, "127.0.0.1", &address_.sin_addr);
  }
  ~Connections() { Close(); }
  void Open(int count) {
    // All sockets first: the server takes descriptors of this process, too.
    Make(count);
    Connect();
  }
  void Make(int count) {
    for (int i = 0; i < count; ++i) {
      const int fd = socket(AF_INET, SOCK_STREAM, 0);
      ASSERT_GE(fd, 0);
      fds_.push_back(fd);
    }
  }
  // Those that are made and not connected yet.
  void Connect() {
    for (; connected_ < fds_.size(); ++connected_) {
      ASSERT_EQ(connect(fds_[connected_],
                        reinterpret_cast<const sockaddr*>(&address_),
                        sizeof(address_)),
                0);
    }
  }
  // The server has closed the newest one.
  bool LastIsClosed() {
    char byte;
    return recv(fds_.back(), &byte, 1, MSG_DONTWAIT) == 0;
  }
  void Close() {
    for (const int fd : fds_) close(fd);
    fds_.clear();
    connected_ = 0;
  }
  int last() const { return fds_.back(); }

 private:
  sockaddr_in address_ = {};
  std::vector<int> fds_;
  size_t connected_ = 0;  // of them, the first ones
};

bool Answers(RpcWorld& world) {
  return Outcome(CallRaw(world.NewChannel(), "/grpc.health.v1.Health/Check", "")
                     .status) == "OK";
}

TEST(ConnectionLimit, LeavesFilesForEverythingElse) {
  EXPECT_EQ(ConnectionLimit(1024, 1 << 20), 1024);
  EXPECT_EQ(ConnectionLimit(1024, 256), 192);
  EXPECT_EQ(ConnectionLimit(1024, 10), 1);
}

TEST(ConnectionGate, ClosesConnectionsOverTheLimitUntilOthersLeave) {
  RpcWorldOptions options;
  options.calls.connections = 8;
  RpcWorld world(options);
  Connections others(world.server->address());
  others.Open(8);
  ASSERT_TRUE(
      Eventually([&] { return world.server->connections().open == 8; }));
  others.Open(1);
  EXPECT_TRUE(Eventually([&] { return others.LastIsClosed(); }));
  EXPECT_EQ(world.server->connections().refused, 1);
  others.Close();
  EXPECT_TRUE(Eventually([&] { return Answers(world); }));
}

TEST(ConnectionGate, LimitsTheConnectionsOfAnAddress) {
  RpcWorldOptions options;
  options.calls.connections_per_host = 3;
  RpcWorld world(options);
  Connections others(world.server->address());
  others.Open(4);
  EXPECT_TRUE(Eventually([&] { return others.LastIsClosed(); }));
  EXPECT_EQ(world.server->connections().open, 3);
}

// The listener of gRPC 1.51 never comes back from this (CVE-2023-4785).
TEST(ConnectionGate, OutlivesATimeWithoutFileDescriptors) {
  RpcWorld world;
  ASSERT_TRUE(Answers(world));
  Connections others(world.server->address());
  others.Open(20);
  ASSERT_TRUE(
      Eventually([&] { return world.server->connections().open >= 20; }));
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit none = before;
  Connections waiting(world.server->address());
  // The client's side of two more is there already; for the server's there is
  // no room.
  waiting.Make(2);
  const int next = dup(0);
  close(next);
  none.rlim_cur = static_cast<rlim_t>(next);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  waiting.Connect();
  // The kernel has taken them on; accept fails until there is room again.
  EXPECT_TRUE(Eventually([&] { return dup(0) < 0; }));
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  waiting.Close();
  others.Close();
  EXPECT_TRUE(Eventually([&] { return Answers(world); }));
}

// Resets a call before its message is sent.
void ResetCall(const std::shared_ptr<grpc::Channel>& channel) {
  grpc::GenericStub stub(channel);
  grpc::ClientContext client;
  grpc::CompletionQueue queue;
  const auto call =
      stub.PrepareCall(&client, "/txl.v1.GenerationService/Generate", &queue);
  call->StartCall(nullptr);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);
  client.TryCancel();
  grpc::Status status;
  call->Finish(&status, nullptr);
  queue.Next(&tag, &ok);
}

TEST(ConnectionGate, CutsTheConnectionOffThatOnlyResetsCalls) {
  FakeClock clock;  // all resets are of one second
  RpcWorldOptions options;
  options.clock = &clock;
  RpcWorld world(options);
  world.runner.Hold();
  grpc::ClientContext client;
  v1::GenerateRequest request;
  request.set_text("a");
  const auto stream = world.generation->Generate(&client, request);
  v1::GenerateResponse event;
  ASSERT_TRUE(stream->Read(&event));
  // More than enough: some may be lost on the way to a connection's end.
  for (int i = 0; i < 2 * kMostResets; ++i) ResetCall(world.channel);
  world.runner.Release();
  while (stream->Read(&event)) {
  }
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_TRUE(Answers(world));  // others are served, and so is it anew
  EXPECT_EQ(world.store->counts().created, 1);
}

// Keeps the connection that it is given, as gRPC would.
class KeepingAcceptor final : public ConnectionGate::Acceptor {
 public:
  explicit KeepingAcceptor(std::atomic<int>* fd) : fd_(*fd) {}
  void HandleNewConnection(NewConnectionParameters* connection) override {
    fd_ = connection->fd;
  }

 private:
  std::atomic<int>& fd_;
};

// The peer's name of a client's socket.
std::string PeerOf(int fd) {
  sockaddr_in address = {};
  socklen_t length = sizeof(address);
  EXPECT_EQ(getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length), 0);
  return absl::StrCat("ipv4:127.0.0.1:", ntohs(address.sin_port));
}

// A gate without gRPC, and one client of it.
class CutOff : public testing::Test {
 protected:
  void SetUp() override {
    auto gate = ConnectionGate::Listen("127.0.0.1:0", {});
    ASSERT_TRUE(gate.ok()) << gate.status();
    gate_ = *std::move(gate);
    gate_->Start(std::make_unique<KeepingAcceptor>(&accepted_));
    client_.emplace(gate_->address());
    client_->Open(1);
    ASSERT_TRUE(Eventually([&] { return accepted_ >= 0; }));
  }
  void TearDown() override { close(accepted_); }

  std::unique_ptr<ConnectionGate> gate_;
  std::atomic<int> accepted_ = -1;
  std::optional<Connections> client_;
};

// Hundreds of calls fit into what a client may have sent by then.
TEST_F(CutOff, LeavesNothingToRead) {
  const std::string calls(100'000, 'x');
  ASSERT_EQ(send(client_->last(), calls.data(), calls.size(), 0),
            static_cast<ssize_t>(calls.size()));
  char bytes[8];
  ASSERT_TRUE(Eventually(
      [&] { return recv(accepted_, bytes, sizeof(bytes), MSG_PEEK) > 0; }));
  gate_->CutOff(PeerOf(client_->last()));
  EXPECT_EQ(recv(accepted_, bytes, sizeof(bytes), 0), -1);
  EXPECT_EQ(errno, ECONNRESET);
  EXPECT_EQ(recv(client_->last(), bytes, sizeof(bytes), 0), -1);
  EXPECT_EQ(errno, ECONNRESET);
}

TEST_F(CutOff, SparesOthers) {
  const int first = accepted_.exchange(-1);
  client_->Open(1);
  ASSERT_TRUE(Eventually([&] { return accepted_ >= 0; }));
  gate_->CutOff("");
  gate_->CutOff(PeerOf(client_->last()));
  char byte;
  EXPECT_EQ(recv(first, &byte, 1, MSG_DONTWAIT), -1);
  EXPECT_EQ(errno, EAGAIN);
  close(first);
}

// gRPC has closed a connection; its descriptor's number is another socket's.
TEST_F(CutOff, SparesWhatHasItsDescriptorNow) {
  int pair[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
  ASSERT_EQ(dup2(pair[0], accepted_), accepted_);
  gate_->CutOff(PeerOf(client_->last()));
  char byte;
  EXPECT_EQ(recv(pair[1], &byte, 1, MSG_DONTWAIT), -1);
  EXPECT_EQ(errno, EAGAIN);
  close(pair[0]);
  close(pair[1]);
}

TEST(ListeningSockets, ListenOnAUnixSocketAndRemoveItsFile) {
  const std::string path =
      absl::StrCat(testing::TempDir(), "gate-", getpid(), ".sock");
  {
    auto sockets = ListeningSockets::Open("unix:" + path);
    ASSERT_TRUE(sockets.ok()) << sockets.status();
    EXPECT_EQ(sockets->address(), "unix:" + path);
    EXPECT_TRUE(std::filesystem::exists(path));
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(ListeningSockets, SayThePortAndWhatIsWrong) {
  auto sockets = ListeningSockets::Open("localhost:0");
  ASSERT_TRUE(sockets.ok()) << sockets.status();
  EXPECT_THAT(sockets->address(),
              testing::MatchesRegex("localhost:[1-9][0-9]*"));
  for (const char* address :
       {"nowhere", "unix:/no/such/folder/socket", "256.256.256.256:1"}) {
    const auto status = ListeningSockets::Open(address).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << address;
    EXPECT_THAT(status.message(), testing::HasSubstr(address));
  }
}

}  // namespace
}  // namespace txl
