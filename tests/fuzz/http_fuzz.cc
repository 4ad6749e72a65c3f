// Any bytes as a request to the metrics endpoint, whose HTTP server is a
// library's: over a socket, as clients reach it. After each input a good
// request is answered.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>

#include "server/http/metrics_endpoint.h"

namespace txl {
namespace {

constexpr char kGood[] = "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n";

in_port_t Port() {
  // Never deleted: inputs come until the process ends.
  static const MetricsEndpoint* const endpoint = [] {
    auto started = MetricsEndpoint::Start("127.0.0.1:0", ExporterFacts(),
                                          [] { return ServerStatus(); });
    if (!started.ok()) std::abort();
    return started->release();
  }();
  const std::string& address = endpoint->address();
  return htons(static_cast<in_port_t>(
      std::atoi(address.substr(address.rfind(':') + 1).c_str())));
}

// What the endpoint says to these bytes, behind which nothing comes.
std::string Ask(const std::string& bytes) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) std::abort();
  const timeval limit = {5, 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = Port();
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address),
              sizeof(address)) != 0) {
    std::abort();
  }
  size_t sent = 0;
  while (sent < bytes.size()) {
    const ssize_t now =
        send(fd, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (now <= 0) break;  // it has heard enough
    sent += static_cast<size_t>(now);
  }
  shutdown(fd, SHUT_WR);
  std::string answer;
  char buffer[4096];
  ssize_t got;
  while ((got = recv(fd, buffer, sizeof(buffer), 0)) > 0) {
    answer.append(buffer, static_cast<size_t>(got));
  }
  close(fd);
  return answer;
}

}  // namespace
}  // namespace txl

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  txl::Ask(std::string(reinterpret_cast<const char*>(data), size));
  if (txl::Ask(txl::kGood).rfind("HTTP/1.1 200", 0) != 0) std::abort();
  return 0;
}
