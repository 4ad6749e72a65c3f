#pragma once

// One connection of the HTTP front: reads a request, gives it to the handler,
// writes what the handler answers, reads the next one. All on the front's one
// thread.
//
//   kReading -> kHandling -> kAnswering -> kEnding -> kReading
//      |                                      ^ |
//      +------------- refused ----------------+ +-> kLingering -> kDropping
//
// An answer that is not a stream skips kAnswering. Every phase can end in
// kClosed.

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "server/base/byte_budget.h"
#include "server/http/event_stream.h"
#include "server/http/guard.h"
#include "server/http/http_message.h"
#include "server/http/http_options.h"

namespace txl {

class Connection;

// What all connections share. But for the counts, the front's thread's.
struct HttpShared {
  HttpOptions options;
  HttpHandlers handlers;
  std::map<std::string, int64_t> per_peer;  // connections of an address
  std::set<Connection*> open;
  bool stopping = false;
  // A buffer for bytes of any connection that are read to be discarded.
  std::vector<char> dropped = std::vector<char>(16 << 10);
  // Outlive the server in the hands of who looks at them.
  struct Counts {
    std::atomic<int64_t> open{0};
    std::atomic<int64_t> refused{0};
  };
  std::shared_ptr<Counts> counts = std::make_shared<Counts>();
  std::atomic<int64_t> exchanges{0};  // requests whose handlers are not done
  boost::asio::io_context io{1};      // last: what it holds uses the others
};

class Connection final : public std::enable_shared_from_this<Connection> {
 public:
  using Socket = HttpStream::Socket;

  // `tls` null: without TLS. `shared` outlives the connection. The caller
  // counts it in, it counts itself out.
  Connection(Socket socket, std::string host, HttpShared* shared,
             SSL_CTX* tls = nullptr);
  ~Connection();

  void Start();
  // No request runs: the connection may go.
  bool idle() const { return !Runs(number_); }
  // Closes it, whatever is going on. The client of a running request has left.
  void Close();

 private:
  friend class ConnectionExchange;
  using Parser =
      boost::beast::http::request_parser<boost::beast::http::string_body>;

  enum class Phase {
    kReading,    // waits for a request, or reads it
    kHandling,   // the handler has the request, and has not answered
    kAnswering,  // a part of the answer is in the queue
    kEnding,     // all of it is
    kLingering,  // the last answer is out, and the client is being told so
    kDropping,   // it has been told; what it still sends is dropped
    kClosed,
  };

  // Request `number` is at its handler, or its answer is being sent.
  bool Runs(int64_t number) const;
  // The handler of request `number` may add to its answer.
  bool TakesAnswer(int64_t number) const;

  void WaitForNext();
  // Reads some bytes of the next request into the empty buffer, or learns that
  // the client has left, whichever comes first.
  void ReadAhead();
  void ReadHead();
  void OnHead(boost::system::error_code error);
  // Gives the request its id and trace, even if it is refused later.
  void Name(const RequestHead& head);
  // False: it was refused.
  bool TakeHead(const RequestHead& head);
  void ReadBody();
  // Reads on in a body of chunks, for which room is taken as it comes.
  void ReadChunks();
  void OnChunks(boost::system::error_code error, size_t bytes);
  void OnBody(boost::system::error_code error);
  // False: there is none, and the request was refused.
  bool HoldBody(int64_t bytes);
  void Handle();
  void Watch();
  void WatchBehindBytes();
  // A refusal of what the handler never sees; the connection ends with it.
  void Refuse(HttpReply reply);
  // The head of an answer, of a stream where it has no length.
  std::string Head(const HttpReply& reply, std::optional<size_t> length);
  void Write(std::string bytes, std::function<void(bool)> sent);
  void WriteNext();
  // Runs what a handler wants done for a request. Where it throws, its client
  // is told, if nothing was sent yet, and the connection ends.
  void Run(int64_t number, const std::function<void()>& task);
  // The answer is whole: the next request, or the end.
  void EndAnswer();
  // Reads and drops what still comes.
  void ReadAway();
  void SetDeadline(absl::Duration after);
  RequestHead ParsedHead() const;

  HttpStream stream_;
  const std::string host_;
  const std::string peer_;
  const std::string local_address_;
  HttpShared* const shared_;
  boost::asio::steady_timer deadline_;
  boost::asio::steady_timer watch_;
  Phase phase_ = Phase::kReading;
  bool timed_out_ = false;  // the deadline has passed
  bool reading_ = false;    // a read ahead is under way
  bool writing_ = false;    // a write is under way
  std::optional<PeerCertificate> certificate_;
  boost::beast::flat_buffer buffer_;
  std::optional<Parser> parser_;
  HttpRequest request_;  // that is being read
  ByteHold body_hold_;
  int64_t held_bytes_ = 0;   // of the body, for which there is room
  int64_t chunk_bytes_ = 0;  // read of a body of chunks, with what is around
  int64_t number_ = 0;       // of the last request that was read
  bool keep_alive_ = false;  // the client's wish, as far as it is granted
  bool http_1_0_ = false;    // the client speaks it: it knows no chunks
  std::string request_id_;
  TraceContext trace_;
  std::string allowed_origin_;  // one of the options'
  std::function<void()> left_;
  struct Piece {
    std::string bytes;
    std::function<void(bool)> sent;
    int64_t request = 0;
  };
  std::deque<Piece> pieces_;
};

// What a handler has of a connection while its request runs. It outlives its
// request in the hands of handlers; then all of it does nothing.
class ConnectionExchange final : public Exchange {
 public:
  // `number`: of the request on its connection. Keeps `hold` until it ends.
  ConnectionExchange(std::shared_ptr<Connection> connection, int64_t number,
                     HttpRequest request, ByteHold hold);
  ~ConnectionExchange() override;

  const HttpRequest& request() const override { return request_; }
  void Reply(HttpReply reply) override;
  void StartStream(HttpReply head) override;
  void Send(std::string bytes, std::function<void(bool)> sent) override;
  void EndStream(std::string last) override;
  void Cut() override;
  void OnLeave(std::function<void()> left) override;
  void Post(std::function<void()> task) override;
  void After(absl::Duration delay, std::function<void()> task) override;

 private:
  std::string Chunk(const std::string& bytes) const;
  bool TakesAnswer() const { return connection_->TakesAnswer(number_); }

  std::shared_ptr<Connection> connection_;
  HttpShared* const shared_;
  const int64_t number_;
  const HttpRequest request_;
  const ByteHold hold_;
};

// Sets a socket: it sends at once, keeps little of what is not read, and gives
// up on a client that acknowledges nothing.
void SetTransport(boost::asio::ip::tcp::socket& socket);

// "http:HOST:PORT" with the client's port.
std::string PeerOf(const boost::asio::ip::tcp::socket& socket,
                   const std::string& host);

// The address that the connection came in on, "" of one that has ended.
std::string LocalAddressOf(const boost::asio::ip::tcp::socket& socket);

}  // namespace txl
