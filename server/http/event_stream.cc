#include "server/http/event_stream.h"

#include <openssl/ssl.h>

#include <new>

#include "absl/strings/str_cat.h"

namespace txl {

std::shared_ptr<EventStream> EventStream::Start(
    std::shared_ptr<Exchange> exchange, EventStreamOptions options) {
  HttpReply head;
  head.content_type = "text/event-stream";
  head.headers = std::move(options.headers);
  head.headers.emplace_back("cache-control", "no-store");
  // Proxies would gather events otherwise.
  head.headers.emplace_back("x-accel-buffering", "no");
  exchange->StartStream(std::move(head));
  std::shared_ptr<EventStream> stream(
      new EventStream(std::move(exchange), options));
  if (stream->ping_ > absl::ZeroDuration()) stream->PingAfterSilence();
  return stream;
}

EventStream::EventStream(std::shared_ptr<Exchange> exchange,
                         const EventStreamOptions& options)
    : exchange_(std::move(exchange)),
      ids_(options.ids),
      skip_(options.skip),
      ping_(options.ids ? absl::ZeroDuration() : options.ping) {}

std::string EventStream::Event(const std::string& data) {
  if (++last_ <= skip_) return "";
  return ids_ ? absl::StrCat("id: ", last_, "\ndata: ", data, "\n\n")
              : absl::StrCat("data: ", data, "\n\n");
}

void EventStream::Send(const std::string& data,
                       std::function<void(bool)> sent) {
  std::string event = Event(data);
  if (event.empty()) {
    return exchange_->Post([sent = std::move(sent)] { sent(true); });
  }
  exchange_->Send(std::move(event), std::move(sent));
}

void EventStream::End(const std::string& data) {
  ended_ = true;
  const std::string last = data.empty() ? "" : Event(data);
  exchange_->EndStream(absl::StrCat(last, "data: [DONE]\n\n"));
}

void EventStream::Fail(const std::string& error) {
  ended_ = true;
  exchange_->EndStream(absl::StrCat("data: ", error, "\n\ndata: [DONE]\n\n"));
}

void EventStream::PingAfterSilence() {
  exchange_->After(ping_, [weak = weak_from_this(), then = last_] {
    const auto stream = weak.lock();
    if (stream == nullptr || stream->ended_) return;
    if (stream->last_ == then) {
      stream->exchange_->Send(": ping\n\n", [](bool) {});
    }
    stream->PingAfterSilence();
  });
}

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
