#pragma once

// Server-sent events of one answer, as OpenAI's clients read them: `data:` and
// an empty line, nothing else; `id:` lines only where a client asked for them,
// for after one every empty line is an event to some parsers.

#include <openssl/types.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "server/http/http_message.h"
#include "server/tls/peer_certificate.h"

namespace txl {

struct EventStreamOptions {
  bool ids = false;  // number events from 1 on
  int64_t skip = 0;  // first events that the client has
  // A comment after so long a silence, not in streams with ids; 0: none.
  absl::Duration ping = absl::ZeroDuration();
  std::vector<std::pair<std::string, std::string>> headers;
};

class EventStream : public std::enable_shared_from_this<EventStream> {
 public:
  // Sends the head.
  static std::shared_ptr<EventStream> Start(std::shared_ptr<Exchange> exchange,
                                            EventStreamOptions options);

  // Sends an event; `sent` as Exchange::Send. `data` has no line break.
  void Send(const std::string& data, std::function<void(bool)> sent);
  // Sends `data`, if it is not empty, and "[DONE]", the end.
  void End(const std::string& data);
  // Sends `error` and the end. An error has no number and is never left out:
  // the event that it stands for is still to come, in another stream.
  void Fail(const std::string& error);

 private:
  EventStream(std::shared_ptr<Exchange> exchange,
              const EventStreamOptions& options);
  std::string Event(const std::string& data);
  void PingAfterSilence();

  const std::shared_ptr<Exchange> exchange_;
  const bool ids_;
  const int64_t skip_;
  const absl::Duration ping_;
  int64_t last_ = 0;
  bool ended_ = false;
};

// The bytes of a connection, with TLS or without: a stream as Boost.Asio and
// Boost.Beast know it (AsyncReadStream, AsyncWriteStream).

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
  // Certificate after a handshake. Absent as in PeerCertificateOf.
  std::optional<PeerCertificate> peer_certificate();
  // Tells the client that nothing more is sent. What still comes after that is
  // read from socket(), to be discarded.
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
