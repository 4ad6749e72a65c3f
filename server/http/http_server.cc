#include "server/http/http_server.h"

#include <netinet/tcp.h>
#include <sys/socket.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <exception>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "model/base/status_macros.h"
#include "server/api/work_pool.h"
#include "server/base/clock.h"
#include "server/base/log.h"
#include "server/http/connection.h"
#include "server/http/http_error.h"
#include "server/tls/certificate_watch.h"

namespace txl {
namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
namespace {

constexpr absl::Duration kPollInterval = absl::Milliseconds(5);
// When the machine has no descriptor left, accepting at once fails again.
constexpr absl::Duration kAcceptPause = absl::Milliseconds(100);

absl::StatusOr<tcp::endpoint> Resolve(asio::io_context& io,
                                      const std::string& listen) {
  const size_t colon = listen.rfind(':');
  std::string host = listen.substr(0, colon);
  if (colon == std::string::npos || host.empty() ||
      colon + 1 == listen.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", listen, "\" is not HOST:PORT"));
  }
  if (host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  error_code error;
  const auto found =
      tcp::resolver(io).resolve(host, listen.substr(colon + 1), error);
  if (error || found.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", listen, "\": ", error.message()));
  }
  return found.begin()->endpoint();
}

// An answer to one connection too many, but for its first line and its Date.
std::string TooManyConnections(absl::Duration retry) {
  const HttpReply reply = ErrorReply(OverloadedError(
      "too many connections of this address, or of all", retry));
  std::string head = "Content-Type: application/json\r\nConnection: close\r\n";
  for (const auto& [name, value] : reply.headers) {
    absl::StrAppend(&head, name, ": ", value, "\r\n");
  }
  return absl::StrCat(head, "Content-Length: ", reply.body.size(), "\r\n\r\n",
                      reply.body);
}

}  // namespace

class HttpServer::Impl {
 public:
  Impl(HttpOptions options, HttpHandlers handlers)
      : work_(shared_.io.get_executor()),
        acceptor_(shared_.io),
        pause_(shared_.io) {
    too_many_ = TooManyConnections(options.retry_after);
    shared_.options = std::move(options);
    shared_.handlers = std::move(handlers);
  }
  ~Impl() {
    shared_.io.stop();
    if (thread_.joinable()) thread_.join();
  }

  absl::Status Listen() {
    TXL_ASSIGN_OR_RETURN(const tcp::endpoint endpoint,
                         Resolve(shared_.io, shared_.options.listen));
    error_code error;
    acceptor_.open(endpoint.protocol(), error);
    if (!error) acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor_.bind(endpoint, error);
    if (!error)
      acceptor_.listen(asio::socket_base::max_listen_connections, error);
    if (error) {
      return absl::UnavailableError(absl::StrCat(
          "cannot listen on ", shared_.options.listen, ": ", error.message()));
    }
    const tcp::endpoint bound = acceptor_.local_endpoint(error);
    const size_t colon = shared_.options.listen.rfind(':');
    address_ = absl::StrCat(shared_.options.listen.substr(0, colon), ":",
                            bound.port());
    Accept();
    thread_ = std::thread([this] { Run(); });
    return absl::OkStatus();
  }

  const std::string& address() const { return address_; }
  std::function<ConnectionCounts()> Counts() const {
    return [counts = shared_.counts, limit = shared_.options.connections] {
      return ConnectionCounts{counts->open, limit, counts->refused};
    };
  }

  void Shutdown(absl::Duration timeout) {
    Clock& clock = *Clock::Real();
    const absl::Duration end = clock.Monotonic() + timeout;
    asio::post(shared_.io, [this] {
      shared_.stopping = true;
      error_code ignored;
      acceptor_.close(ignored);
      CloseAll(/*idle_only=*/true);
    });
    while (shared_.exchanges > 0 && clock.Monotonic() < end) {
      absl::SleepFor(kPollInterval);
    }
    asio::post(shared_.io, [this] { CloseAll(/*idle_only=*/false); });
    while (shared_.exchanges > 0) absl::SleepFor(kPollInterval);
  }

 private:
  void Run() {
    while (!shared_.io.stopped()) {
      try {
        shared_.io.run();
      } catch (const std::exception& error) {
        // One request's memory was not to be had; others go on.
        Log(LogSeverity::kError, "http", {{"error", error.what()}});
      }
    }
  }

  void Accept() {
    acceptor_.async_accept([this](error_code error, tcp::socket socket) {
      if (!acceptor_.is_open()) return;
      if (error) return AcceptLater();
      Accept();
      Take(std::move(socket));
    });
  }

  void AcceptLater() {
    pause_.expires_after(absl::ToChronoNanoseconds(kAcceptPause));
    pause_.async_wait([this](error_code error) {
      if (!error) Accept();
    });
  }

  void Take(tcp::socket socket) {
    error_code error;
    const tcp::endpoint peer = socket.remote_endpoint(error);
    if (error) return;
    const std::string host = peer.address().to_string();
    int64_t& of_peer = shared_.per_peer[host];
    if (of_peer >= shared_.options.connections_per_peer ||
        shared_.counts->open >= shared_.options.connections) {
      if (of_peer == 0) shared_.per_peer.erase(host);
      return TurnAway(std::move(socket));
    }
    const CertificateWatch* certificates = shared_.options.certificates;
    const auto tls =
        certificates == nullptr ? nullptr : certificates->Current()->context;
    // Counted only once it is there: its state may not find memory.
    const auto connection = std::make_shared<Connection>(
        std::move(socket), host, &shared_, tls.get());
    ++of_peer;
    ++shared_.counts->open;
    connection->Start();
  }

  // Says that there are too many, without reading what is asked: in plain
  // text alone, for a handshake is work.
  void TurnAway(tcp::socket socket) {
    ++shared_.counts->refused;
    if (shared_.options.certificates != nullptr) return;
    const auto kept = std::make_shared<tcp::socket>(std::move(socket));
    const auto bytes = std::make_shared<const std::string>(absl::StrCat(
        "HTTP/1.1 429 Too Many Requests\r\nDate: ", HttpDate(absl::Now()),
        "\r\n", too_many_));
    asio::async_write(*kept, asio::buffer(*bytes),
                      [kept, bytes](error_code, size_t) {
                        error_code ignored;
                        kept->shutdown(tcp::socket::shutdown_send, ignored);
                      });
  }

  void CloseAll(bool idle_only) {
    const std::set<Connection*> open = shared_.open;
    for (Connection* connection : open) {
      if (!idle_only || connection->idle()) {
        connection->shared_from_this()->Close();
      }
    }
  }

  std::string too_many_;
  HttpShared shared_;
  // Calls whose clients have all left end on the thread, too.
  const asio::executor_work_guard<asio::io_context::executor_type> work_;
  tcp::acceptor acceptor_;
  asio::steady_timer pause_;
  std::string address_;
  std::thread thread_;
};

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(
    HttpOptions options, HttpHandlers handlers) {
  auto impl = std::make_unique<Impl>(std::move(options), std::move(handlers));
  TXL_RETURN_IF_ERROR(impl->Listen());
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpServer::~HttpServer() = default;

const std::string& HttpServer::address() const { return impl_->address(); }
std::function<ConnectionCounts()> HttpServer::Counts() const {
  return impl_->Counts();
}
void HttpServer::Shutdown(absl::Duration timeout) { impl_->Shutdown(timeout); }

}  // namespace txl
