#pragma once

// The bytes of a connection, with TLS or without: a stream as Boost.Asio and
// Boost.Beast know it (AsyncReadStream, AsyncWriteStream).

#include <openssl/types.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <functional>
#include <optional>
#include <utility>

#include "server/tls/peer_certificate.h"

namespace txl {

// One read and one write at a time, from one thread.
class HttpStream {
 public:
  using Socket = boost::asio::ip::tcp::socket;
  using executor_type = Socket::executor_type;
  using Done = std::function<void(boost::system::error_code)>;

  // `context` null: without TLS.
  HttpStream(Socket socket, SSL_CTX* context);
  HttpStream(const HttpStream&) = delete;
  HttpStream& operator=(const HttpStream&) = delete;

  executor_type get_executor() { return socket_.get_executor(); }
  // Bytes as they are on the wire.
  Socket& socket() { return socket_; }

  bool has_tls() const { return tls_.has_value(); }
  // REQUIRES: has_tls(). Before everything else.
  void Handshake(Done done);
  // Of a handshake that is done; absent as in PeerCertificateOf.
  std::optional<PeerCertificate> peer_certificate();
  // Tells the client that nothing more is sent. Then what still comes is read
  // from socket(), and is nobody's.
  void EndWriting(std::function<void()> done);

  template <typename Buffers, typename Handler>
  void async_read_some(const Buffers& buffers, Handler&& handler) {
    if (tls_.has_value()) {
      tls_->async_read_some(buffers, std::forward<Handler>(handler));
    } else {
      socket_.async_read_some(buffers, std::forward<Handler>(handler));
    }
  }
  template <typename Buffers, typename Handler>
  void async_write_some(const Buffers& buffers, Handler&& handler) {
    if (tls_.has_value()) {
      tls_->async_write_some(buffers, std::forward<Handler>(handler));
    } else {
      socket_.async_write_some(buffers, std::forward<Handler>(handler));
    }
  }

 private:
  Socket socket_;
  std::optional<boost::asio::ssl::stream<Socket&>> tls_;
};

}  // namespace txl
