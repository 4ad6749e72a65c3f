#include "server/http/http_stream.h"

#include <openssl/ssl.h>

#include <new>

namespace txl {
namespace asio = boost::asio;
using boost::system::error_code;

HttpStream::HttpStream(Socket socket, SSL_CTX* context)
    : socket_(std::move(socket)) {
  if (context == nullptr) return;
  SSL* state = SSL_new(context);
  if (state == nullptr) throw std::bad_alloc();
  tls_.emplace(socket_, state);  // owns it
}

void HttpStream::Handshake(Done done) {
  tls_->async_handshake(asio::ssl::stream_base::server, std::move(done));
}

std::optional<PeerCertificate> HttpStream::peer_certificate() {
  if (!tls_.has_value()) return std::nullopt;
  return PeerCertificateOf(tls_->native_handle());
}

void HttpStream::EndWriting(std::function<void()> done) {
  const auto end = [this, done = std::move(done)](error_code) {
    error_code ignored;
    socket_.shutdown(Socket::shutdown_send, ignored);
    done();
  };
  if (!tls_.has_value()) return end({});
  tls_->async_shutdown(end);
}

}  // namespace txl
