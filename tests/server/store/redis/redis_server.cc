#include "tests/server/store/redis/redis_server.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"

namespace txl::testing {
namespace {

// Free now; who takes it first has it.
int FreePort() {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  EXPECT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size), 0);
  close(fd);
  return ntohs(address.sin_port);
}

}  // namespace

RedisServer::RedisServer(std::vector<std::string> flags)
    : flags_(std::move(flags)) {
  signal(SIGPIPE, SIG_IGN);  // as the server's programs do
  std::string folder = ::testing::TempDir() + "/redisXXXXXX";
  folder_ = mkdtemp(folder.data());
  for (int attempt = 0; attempt < 10; ++attempt) {
    port_ = FreePort();
    if (TryStart()) return;
  }
  ADD_FAILURE() << "redis-server does not start";
}

RedisServer::~RedisServer() {
  process_.reset();
  std::filesystem::remove_all(folder_);
}

std::string RedisServer::url() const {
  return absl::StrCat("redis://127.0.0.1:", port_);
}

void RedisServer::Kill() {
  process_->Signal(SIGKILL);
  process_->Wait();
}

void RedisServer::Start() {
  ASSERT_TRUE(TryStart()) << "redis-server does not start again";
}

bool RedisServer::TryStart() {
  std::vector<std::string> command = {"/usr/bin/env",  "redis-server",
                                      "--port",        absl::StrCat(port_),
                                      "--bind",        "127.0.0.1",
                                      "--dir",         folder_,
                                      "--appendonly",  "yes",
                                      "--appendfsync", "always",
                                      "--save",        ""};
  command.insert(command.end(), flags_.begin(), flags_.end());
  process_ = std::make_unique<Process>(command);
  const std::string ready = "Ready to accept connections";
  return process_->ReadUntil(ready).find(ready) != std::string::npos;
}

}  // namespace txl::testing
