#include "server/http/connection.h"

#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/buffers_to_string.hpp>
#include <chrono>
#include <sstream>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "server/base/digest.h"
#include "server/base/log.h"
#include "server/http/http_error.h"
#include "server/session/session_name.h"

namespace txl {
namespace http = boost::beast::http;
namespace asio = boost::asio;
using boost::system::error_code;
namespace {

// How long a client may send on when its connection's last answer is out.
constexpr absl::Duration kLinger = absl::Seconds(5);
constexpr size_t kReadAheadBytes = 2 << 10;
// Of one connection, not yet parsed: what stands before a chunk or behind the
// last one has to fit.
constexpr size_t kBufferBytes = 64 << 10;
// Of a body of chunks, for which room is taken at first.
constexpr int64_t kFirstChunkBytes = 16 << 10;

constexpr std::chrono::milliseconds kWatchInterval{250};
// Bytes that the kernel may hold for a client that does not read. Its default
// is megabytes, which would hide a stalled client for thousands of tokens.
constexpr int kUnsentBytes = 16 << 10;
// A client that acknowledges nothing for so long is gone.
constexpr int kUserTimeoutMs = 60'000;

// What a client sent is not HTTP; else its connection is broken.
bool IsOfHttp(const error_code& error) {
  const auto& category =
      http::make_error_code(http::error::bad_method).category();
  return error && error.category() == category &&
         error != http::error::end_of_stream &&
         error != http::error::partial_message;
}

HttpReply NotHttp(const error_code& error) {
  return PlainError(400, "MALFORMED_MESSAGE",
                    absl::StrCat("not HTTP: ", error.message()));
}

// The peer sends no more, or the connection is broken.
bool HasLeft(int fd) {
  pollfd state = {fd, POLLRDHUP, 0};
  return poll(&state, 1, 0) > 0;
}

}  // namespace

Connection::Connection(Socket socket, std::string host, HttpShared* shared,
                       SSL_CTX* tls)
    : stream_(std::move(socket), tls),
      host_(std::move(host)),
      peer_(PeerOf(stream_.socket(), host_)),
      local_address_(LocalAddressOf(stream_.socket())),
      shared_(shared),
      deadline_(shared->io),
      watch_(shared->io),
      buffer_(kBufferBytes) {
  shared_->open.insert(this);
}

Connection::~Connection() {
  shared_->open.erase(this);
  --shared_->counts->open;
  const auto peer = shared_->per_peer.find(host_);
  if (--peer->second == 0) shared_->per_peer.erase(peer);
}

bool Connection::Runs(int64_t number) const {
  return number == number_ &&
         (phase_ == Phase::kHandling || phase_ == Phase::kAnswering ||
          phase_ == Phase::kEnding);
}

bool Connection::TakesAnswer(int64_t number) const {
  return Runs(number) && phase_ != Phase::kEnding;
}

void Connection::Start() {
  SetTransport(stream_.socket());
  if (!stream_.has_tls()) return ReadHead();
  SetDeadline(shared_->options.header_timeout);
  stream_.Handshake([self = shared_from_this()](error_code error) {
    if (error || self->phase_ == Phase::kClosed) return self->Close();
    self->certificate_ = self->stream_.peer_certificate();
    self->ReadHead();
  });
}

void Connection::SetDeadline(absl::Duration after) {
  timed_out_ = false;
  deadline_.expires_after(absl::ToChronoNanoseconds(after));
  deadline_.async_wait([weak = weak_from_this()](error_code error) {
    const auto self = weak.lock();
    if (error || self == nullptr || self->phase_ == Phase::kClosed) return;
    self->timed_out_ = true;
    // What is being written is not read; what is being read is refused.
    if (self->writing_) return self->Close();
    error_code ignored;
    self->stream_.socket().cancel(ignored);
  });
}

void Connection::WaitForNext() {
  if (shared_->stopping) return Close();
  if (buffer_.size() > 0) return ReadHead();
  SetDeadline(shared_->options.idle_timeout);
  if (!reading_) ReadAhead();
}

void Connection::ReadAhead() {
  reading_ = true;
  stream_.async_read_some(
      buffer_.prepare(kReadAheadBytes),
      [self = shared_from_this()](error_code error, size_t bytes) {
        self->reading_ = false;
        self->buffer_.commit(bytes);
        if (error) return self->Close();
        switch (self->phase_) {
          case Phase::kReading:
            return self->ReadHead();
          case Phase::kDropping:
            return self->ReadAway();
          case Phase::kLingering:
          case Phase::kClosed:
            return;
          case Phase::kHandling:
          case Phase::kAnswering:
          case Phase::kEnding:
            return self->WatchBehindBytes();
        }
      });
}

void Connection::ReadHead() {
  parser_.emplace();
  parser_->header_limit(static_cast<uint32_t>(shared_->options.header_bytes));
  parser_->body_limit(static_cast<uint64_t>(shared_->options.body_bytes));
  SetDeadline(shared_->options.header_timeout);
  http::async_read_header(
      stream_, buffer_, *parser_,
      [self = shared_from_this()](error_code error, size_t) {
        self->OnHead(error);
      });
}

RequestHead Connection::ParsedHead() const {
  RequestHead head;
  const auto& message = parser_->get();
  head.method = std::string(message.method_string());
  head.target = std::string(message.target());
  head.http_1_0 = message.version() < 11;
  head.local_address = local_address_;
  for (const auto& field : message.base()) {
    head.fields.emplace_back(
        absl::AsciiStrToLower(std::string(field.name_string())),
        std::string(field.value()));
  }
  return head;
}

void Connection::OnHead(error_code error) {
  if (phase_ == Phase::kClosed) return;
  const RequestHead head = error ? RequestHead() : ParsedHead();
  Name(head);
  http_1_0_ = head.http_1_0;
  allowed_origin_.clear();
  if (error && timed_out_) {
    return Refuse(
        PlainError(408, "REQUEST_TIMEOUT", "the head did not arrive in time"));
  }
  if (error == http::error::header_limit) {
    return Refuse(
        PlainError(431, "HEADERS_TOO_LARGE",
                   absl::StrCat("a head may have ",
                                shared_->options.header_bytes, " bytes")));
  }
  if (error == http::error::body_limit) {
    return Refuse(BodyTooLarge(shared_->options.body_bytes));
  }
  if (IsOfHttp(error)) return Refuse(NotHttp(error));
  if (error) return Close();
  if (TakeHead(head)) ReadBody();
}

void Connection::Name(const RequestHead& head) {
  request_id_ = absl::StrFormat("req-%016x", RandomBits());
  std::vector<std::string> traces;
  for (const auto& [name, value] : head.fields) {
    if (name == "x-request-id" && ValidateSessionId(value).ok()) {
      request_id_ = value;
    }
    if (name == kTraceparent) traces.push_back(value);
  }
  trace_ = StartTrace(traces, shared_->options.trace_rate);
  request_ = HttpRequest();
  request_.peer = peer_;
  request_.certificate = certificate_;
  request_.request_id = request_id_;
  request_.trace = trace_;
}

bool Connection::TakeHead(const RequestHead& head) {
  if (auto refusal = CheckHead(head, shared_->options)) {
    Refuse(*std::move(refusal));
    return false;
  }
  request_.method = head.method;
  std::vector<std::string> authorization;
  for (const auto& [name, value] : head.fields) {
    request_.headers[name] = value;
    if (name == "authorization") authorization.push_back(value);
  }
  for (const std::string& origin : shared_->options.origins) {
    if (origin == request_.header("origin")) allowed_origin_ = origin;
  }
  if (!ParseTarget(head.target, &request_)) {
    Refuse(PlainError(400, "MALFORMED_MESSAGE", "the target is not a path"));
    return false;
  }
  const absl::Status let_in =
      shared_->handlers.let_in(&request_, authorization);
  if (!let_in.ok()) Refuse(ErrorReply(let_in));
  return let_in.ok();
}

bool Connection::HoldBody(int64_t bytes) {
  body_hold_.Release();
  absl::StatusOr<ByteHold> hold = shared_->handlers.hold_body(bytes);
  if (!hold.ok()) {
    Refuse(ErrorReply(hold.status()));
    return false;
  }
  body_hold_ = *std::move(hold);
  held_bytes_ = bytes;
  return true;
}

void Connection::ReadBody() {
  const auto length =
      static_cast<int64_t>(parser_->content_length().value_or(0));
  if (!HoldBody(parser_->chunked() ? kFirstChunkBytes : length)) return;
  keep_alive_ = parser_->get().keep_alive();
  if (absl::EqualsIgnoreCase(std::string(parser_->get()[http::field::expect]),
                             "100-continue")) {
    Write("HTTP/1.1 100 Continue\r\n\r\n", nullptr);
  }
  SetDeadline(shared_->options.body_timeout);
  chunk_bytes_ = 0;
  if (parser_->chunked()) return ReadChunks();
  http::async_read(stream_, buffer_, *parser_,
                   [self = shared_from_this()](error_code error, size_t) {
                     self->OnBody(error);
                   });
}

void Connection::ReadChunks() {
  parser_->eager(true);  // as many chunks at a time as have come
  http::async_read_some(
      stream_, buffer_, *parser_,
      [self = shared_from_this()](error_code error, size_t bytes) {
        self->OnChunks(error, bytes);
      });
}

void Connection::OnChunks(error_code error, size_t bytes) {
  if (phase_ == Phase::kClosed) return;
  if (error || parser_->is_done()) return OnBody(error);
  const int64_t most = shared_->options.body_bytes;
  // A body may cost as much again in what stands around its chunks.
  chunk_bytes_ += static_cast<int64_t>(bytes);
  if (chunk_bytes_ > 2 * most) return Refuse(BodyTooLarge(most));
  // What is read next has room before it is read.
  const auto body = static_cast<int64_t>(parser_->get().body().size());
  const auto next = body + static_cast<int64_t>(kBufferBytes);
  if (next > held_bytes_ && held_bytes_ < most &&
      !HoldBody(std::min(2 * next, most))) {
    return;
  }
  ReadChunks();
}

void Connection::OnBody(error_code error) {
  if (phase_ == Phase::kClosed) return;
  if (error && timed_out_) {
    return Refuse(
        PlainError(408, "REQUEST_TIMEOUT", "the body did not arrive in time"));
  }
  if (error == http::error::body_limit) {
    return Refuse(BodyTooLarge(shared_->options.body_bytes));
  }
  if (IsOfHttp(error)) return Refuse(NotHttp(error));
  if (error) return Close();
  // A body of chunks had room to grow.
  const auto bytes = static_cast<int64_t>(parser_->get().body().size());
  if (bytes < held_bytes_ && !HoldBody(bytes)) return;
  Handle();
}

void Connection::Handle() {
  deadline_.cancel();
  request_.body = std::move(parser_->get().body());
  phase_ = Phase::kHandling;
  const auto exchange = std::make_shared<ConnectionExchange>(
      shared_from_this(), ++number_, std::move(request_),
      std::move(body_hold_));
  Watch();
  Run(number_, [&] { shared_->handlers.handle(exchange); });
}

void Connection::Run(int64_t number, const std::function<void()>& task) {
  try {
    return task();
  } catch (const std::exception& error) {
    Log(LogSeverity::kError, "http_handler",
        {{"peer", peer_}, {"error", error.what()}});
  }
  if (!Runs(number)) return;
  if (phase_ != Phase::kHandling) return Close();
  const auto left = std::exchange(left_, nullptr);
  Refuse(PlainError(500, "INTERNAL", "the server failed to answer this"));
  if (left != nullptr) left();
}

// Without a read that waits nobody would notice that a client has left whose
// answer has not begun or stands still.
void Connection::Watch() {
  buffer_.size() > 0 ? WatchBehindBytes() : ReadAhead();
}

// The next request is here already and waits; behind it only the connection's
// own state tells whether the client is still there.
void Connection::WatchBehindBytes() {
  watch_.expires_after(kWatchInterval);
  watch_.async_wait([self = shared_from_this(),
                     number = number_](error_code error) {
    if (error || !self->Runs(number)) return;
    HasLeft(self->stream_.socket().native_handle()) ? self->Close()
                                                    : self->WatchBehindBytes();
  });
}

void Connection::Refuse(HttpReply reply) {
  if (shared_->handlers.refused) {
    shared_->handlers.refused(request_, reply.error);
  }
  keep_alive_ = false;
  ++number_;
  phase_ = Phase::kEnding;
  SetDeadline(shared_->options.answer_timeout);
  Write(Head(reply, reply.body.size()) + reply.body, nullptr);
}

std::string Connection::Head(const HttpReply& reply,
                             std::optional<size_t> length) {
  if (shared_->stopping) keep_alive_ = false;
  // Before HTTP/1.1 the end of a stream is that of its connection.
  if (!length.has_value() && http_1_0_) keep_alive_ = false;
  http::response<http::empty_body> head;
  head.version(11);
  head.result(static_cast<unsigned>(reply.status));
  head.set(http::field::date, HttpDate(absl::Now()));
  head.set(http::field::content_type, reply.content_type);
  head.set("x-request-id", request_id_);
  head.set(kTraceparent, TraceparentOf(trace_));
  head.set("x-content-type-options", "nosniff");
  if (!allowed_origin_.empty()) {
    head.set(http::field::access_control_allow_origin, allowed_origin_);
    head.set(http::field::access_control_expose_headers,
             "x-txl-seed, x-txl-session, x-request-id, traceparent, "
             "retry-after, retry-after-ms");
    head.set(http::field::vary, "Origin");
  }
  for (const auto& [name, value] : reply.headers) head.set(name, value);
  head.keep_alive(keep_alive_);
  // Where it is not what is usual, it has to be said.
  if (keep_alive_ && http_1_0_) head.set(http::field::connection, "keep-alive");
  const bool bodiless = reply.status == 204 || reply.status == 304;
  if (length.has_value()) {
    if (!bodiless) head.content_length(*length);
  } else if (!http_1_0_) {
    head.chunked(true);
  }
  std::ostringstream bytes;
  bytes << head.base();
  return bytes.str();
}

void Connection::Write(std::string bytes, std::function<void(bool)> sent) {
  pieces_.push_back({std::move(bytes), std::move(sent), number_});
  if (!writing_) WriteNext();
}

void Connection::WriteNext() {
  writing_ = true;
  const auto piece = std::make_shared<Piece>(std::move(pieces_.front()));
  pieces_.pop_front();
  asio::async_write(
      stream_, asio::buffer(piece->bytes),
      [self = shared_from_this(), piece](error_code error, size_t) {
        self->writing_ = false;
        const bool ok = !error && self->phase_ != Phase::kClosed;
        if (!ok) self->Close();
        if (ok && !self->pieces_.empty()) self->WriteNext();
        if (piece->sent != nullptr) {
          self->Run(piece->request, [&] { piece->sent(ok); });
        }
        if (!self->writing_ && self->phase_ == Phase::kEnding) {
          self->EndAnswer();
        }
      });
}

void Connection::EndAnswer() {
  left_ = nullptr;
  watch_.cancel();
  deadline_.cancel();
  phase_ = keep_alive_ ? Phase::kReading : Phase::kLingering;
  if (keep_alive_) return WaitForNext();
  SetDeadline(kLinger);
  stream_.EndWriting([self = shared_from_this()] {
    if (self->timed_out_ || self->phase_ == Phase::kClosed) {
      return self->Close();
    }
    self->phase_ = Phase::kDropping;
    // One read at a time: of two the second would never hear of the end.
    if (!self->reading_) self->ReadAway();
  });
}

// A socket that is closed with something unread takes its answer back.
void Connection::ReadAway() {
  if (phase_ == Phase::kClosed) return;
  stream_.socket().async_read_some(
      asio::buffer(shared_->dropped),
      [self = shared_from_this()](error_code error, size_t) {
        error ? self->Close() : self->ReadAway();
      });
}

void Connection::Close() {
  if (std::exchange(phase_, Phase::kClosed) == Phase::kClosed) return;
  error_code ignored;
  stream_.socket().close(ignored);
  deadline_.cancel();
  watch_.cancel();
  for (Piece& piece : std::exchange(pieces_, {})) {
    if (piece.sent == nullptr) continue;
    asio::post(shared_->io,
               [self = shared_from_this(), sent = std::move(piece.sent)] {
                 self->Run(0, [&] { sent(false); });
               });
  }
  if (const auto left = std::exchange(left_, nullptr)) left();
}

ConnectionExchange::ConnectionExchange(std::shared_ptr<Connection> connection,
                                       int64_t number, HttpRequest request,
                                       ByteHold hold)
    : connection_(std::move(connection)),
      shared_(connection_->shared_),
      number_(number),
      request_(std::move(request)),
      hold_(std::move(hold)) {
  ++shared_->exchanges;
}
ConnectionExchange::~ConnectionExchange() {
  // The last one to hold it may be any thread.
  asio::post(shared_->io, [c = std::move(connection_)] {});
  --shared_->exchanges;
}

void ConnectionExchange::Reply(HttpReply reply) {
  if (!TakesAnswer()) return;
  if (!reply.error.ok() && !has_calls() && shared_->handlers.refused) {
    shared_->handlers.refused(request_, reply.error);
  }
  connection_->SetDeadline(shared_->options.answer_timeout);
  std::string bytes = connection_->Head(reply, reply.body.size());
  if (request_.method != "HEAD") bytes += reply.body;
  connection_->phase_ = Connection::Phase::kEnding;
  connection_->Write(std::move(bytes), nullptr);
}

void ConnectionExchange::StartStream(HttpReply head) {
  if (!TakesAnswer()) return;
  std::string bytes = connection_->Head(head, std::nullopt);
  connection_->phase_ = Connection::Phase::kAnswering;
  connection_->Write(std::move(bytes), nullptr);
}

void ConnectionExchange::Send(std::string bytes,
                              std::function<void(bool)> sent) {
  if (!TakesAnswer()) {
    return Post([sent = std::move(sent)] { sent(false); });
  }
  connection_->Write(Chunk(bytes), std::move(sent));
}

void ConnectionExchange::EndStream(std::string last) {
  if (!TakesAnswer()) return;
  std::string bytes = last.empty() ? "" : Chunk(last);
  if (!connection_->http_1_0_) {
    bytes += boost::beast::buffers_to_string(http::make_chunk_last());
  }
  connection_->SetDeadline(shared_->options.answer_timeout);
  connection_->phase_ = Connection::Phase::kEnding;
  connection_->Write(std::move(bytes), nullptr);
}

void ConnectionExchange::Cut() {
  if (TakesAnswer()) connection_->Close();
}

void ConnectionExchange::OnLeave(std::function<void()> left) {
  if (TakesAnswer()) connection_->left_ = std::move(left);
}

void ConnectionExchange::Post(std::function<void()> task) {
  asio::post(shared_->io,
             [connection = connection_, number = number_,
              task = std::move(task)] { connection->Run(number, task); });
}

void ConnectionExchange::After(absl::Duration delay,
                               std::function<void()> task) {
  const auto timer = std::make_shared<asio::steady_timer>(shared_->io);
  timer->expires_after(absl::ToChronoNanoseconds(delay));
  // A connection that has ended does not wait for it.
  timer->async_wait([timer, weak = connection_->weak_from_this(),
                     number = number_,
                     task = std::move(task)](error_code error) {
    if (error) return;
    const auto connection = weak.lock();
    connection != nullptr ? connection->Run(number, task) : task();
  });
}

std::string ConnectionExchange::Chunk(const std::string& bytes) const {
  if (connection_->http_1_0_) return bytes;
  return boost::beast::buffers_to_string(http::make_chunk(asio::buffer(bytes)));
}

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
