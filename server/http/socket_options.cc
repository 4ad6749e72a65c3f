#include "server/http/socket_options.h"

#include <netinet/tcp.h>
#include <sys/socket.h>

#include "absl/strings/str_cat.h"

namespace txl {
namespace asio = boost::asio;
using boost::system::error_code;
namespace {

// What the kernel may hold of what a client does not read: with its usual
// megabytes nobody would notice for thousands of tokens.
constexpr int kUnsentBytes = 16 << 10;
// A client that acknowledges nothing for so long is gone.
constexpr int kUserTimeoutMs = 60'000;

}  // namespace

void SetTransport(asio::ip::tcp::socket& socket) {
  error_code ignored;
  socket.set_option(asio::ip::tcp::no_delay(true), ignored);
  const int fd = socket.native_handle();
  setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &kUnsentBytes,
             sizeof(kUnsentBytes));
  setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &kUserTimeoutMs,
             sizeof(kUserTimeoutMs));
}

std::string LocalAddressOf(const asio::ip::tcp::socket& socket) {
  error_code error;
  const auto end = socket.local_endpoint(error);
  return error ? "" : end.address().to_string();
}

std::string PeerOf(const asio::ip::tcp::socket& socket,
                   const std::string& host) {
  error_code ignored;
  const auto end = socket.remote_endpoint(ignored);
  return absl::StrCat("http:", host, ":", end.port());
}

}  // namespace txl
