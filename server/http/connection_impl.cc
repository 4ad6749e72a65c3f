#include "server/http/connection_impl.h"

#include <boost/asio/post.hpp>
#include <boost/beast/core/buffers_to_string.hpp>
#include <utility>

namespace txl {
namespace http = boost::beast::http;
namespace asio = boost::asio;
using boost::system::error_code;

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
  if (!Runs()) return;
  if (!reply.error.ok() && !has_calls() && shared_->handlers.refused) {
    shared_->handlers.refused(request_, reply.error);
  }
  connection_->SetDeadline(shared_->options.answer_timeout);
  std::string bytes = connection_->Head(reply, reply.body.size());
  if (request_.method != "HEAD") bytes += reply.body;
  connection_->ending_ = true;
  connection_->begun_ = true;
  connection_->Write(std::move(bytes), nullptr);
}

void ConnectionExchange::StartStream(HttpReply head) {
  if (!Runs()) return;
  std::string bytes = connection_->Head(head, std::nullopt);
  connection_->begun_ = true;
  connection_->Write(std::move(bytes), nullptr);
}

void ConnectionExchange::Send(std::string bytes,
                              std::function<void(bool)> sent) {
  if (!Runs()) {
    return Post([sent = std::move(sent)] { sent(false); });
  }
  connection_->Write(Chunk(bytes), std::move(sent));
}

void ConnectionExchange::EndStream(std::string last) {
  if (!Runs()) return;
  std::string bytes = last.empty() ? "" : Chunk(last);
  if (!connection_->http_1_0_) {
    bytes += boost::beast::buffers_to_string(http::make_chunk_last());
  }
  connection_->SetDeadline(shared_->options.answer_timeout);
  connection_->ending_ = true;
  connection_->Write(std::move(bytes), nullptr);
}

void ConnectionExchange::Cut() {
  if (Runs()) connection_->Close();
}

void ConnectionExchange::OnLeave(std::function<void()> left) {
  if (Runs()) connection_->left_ = std::move(left);
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
bool ConnectionExchange::Runs() const {
  return !connection_->closed_ && !connection_->ending_ &&
         connection_->current_ == number_;
}

}  // namespace txl
