#include "tests/end_to_end/cutting_proxy.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace txl::testing {
namespace {

constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();

sockaddr_in Loopback(uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

// What is under way is lost with it.
void CloseAtOnce(int socket) {
  const linger at_once{1, 0};
  setsockopt(socket, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
  close(socket);
}

}  // namespace

CuttingProxy::CuttingProxy(const std::string& server)
    : server_(server), wake_(eventfd(0, EFD_CLOEXEC)) {
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = Loopback(0);
  socklen_t length = sizeof(address);
  EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&address), length), 0);
  EXPECT_EQ(listen(listener_, 16), 0);
  getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &length);
  address_ = absl::StrCat("127.0.0.1:", ntohs(address.sin_port));
  thread_ = std::thread([this] { Run(); });
}

CuttingProxy::~CuttingProxy() {
  stopping_ = true;
  Wake();
  thread_.join();
  for (const Connection& connection : open_) Reset(connection);
  close(listener_);
  close(wake_);
}

void CuttingProxy::Cut() {
  cut_ = true;
  Wake();
}

void CuttingProxy::Wake() {
  const uint64_t one = 1;
  EXPECT_EQ(write(wake_, &one, sizeof(one)), ssize_t{sizeof(one)});
}

void CuttingProxy::Drain() {
  uint64_t wakes = 0;
  EXPECT_GT(read(wake_, &wakes, sizeof(wakes)), 0);
}

void CuttingProxy::Run() {
  while (!stopping_) {
    std::vector<pollfd> sockets = {{wake_, POLLIN, 0}, {listener_, POLLIN, 0}};
    for (const Connection& connection : open_) {
      sockets.push_back({connection.client, POLLIN, 0});
      sockets.push_back({connection.server, POLLIN, 0});
    }
    poll(sockets.data(), sockets.size(), -1);
    if (sockets[0].revents != 0) Drain();
    // After the drain: a Cut() from here on wakes the next poll.
    const bool cut = cut_.exchange(false);
    std::vector<Connection> still_open;
    for (size_t i = 0; i < open_.size(); ++i) {
      Connection& c = open_[i];
      bool lives = true;
      if (sockets[2 + 2 * i].revents != 0) {
        lives = Forward(c.client, c.server, kUnlimited) > 0;
      }
      if (lives && sockets[3 + 2 * i].revents != 0) {
        const int64_t count = Forward(c.server, c.client, c.bytes_left);
        c.bytes_left -= count;
        lives = count > 0 && c.bytes_left > 0;
      }
      if (lives && !cut) {
        still_open.push_back(c);
      } else {
        Reset(c);
      }
    }
    open_ = std::move(still_open);
    if (sockets[1].revents != 0) Accept();
  }
}

void CuttingProxy::Accept() {
  Connection connection;
  connection.client = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
  connection.server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  uint32_t port = 0;
  EXPECT_TRUE(absl::SimpleAtoi(server_.substr(server_.rfind(':') + 1), &port));
  const sockaddr_in address = Loopback(static_cast<uint16_t>(port));
  if (connect(connection.server, reinterpret_cast<const sockaddr*>(&address),
              sizeof(address)) == 0) {
    const int64_t longest = longest_;
    connection.bytes_left = longest == 0
                                ? kUnlimited
                                : 1 + static_cast<int64_t>(random_()) % longest;
    open_.push_back(connection);
  } else {
    Reset(connection);
  }
}

void CuttingProxy::Reset(const Connection& connection) {
  ++cuts_;
  CloseAtOnce(connection.client);
  CloseAtOnce(connection.server);
}

int64_t CuttingProxy::Forward(int from, int to, int64_t most) {
  char bytes[4096];
  const auto room = std::min<int64_t>(most, sizeof(bytes));
  const ssize_t count = recv(from, bytes, static_cast<size_t>(room), 0);
  if (count <= 0) return 0;
  const ssize_t sent =
      send(to, bytes, static_cast<size_t>(count), MSG_NOSIGNAL);
  return sent == count ? count : 0;
}

}  // namespace txl::testing
