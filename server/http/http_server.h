#pragma once

// The listening side of the HTTP front: connections, requests in and answers
// out, on one thread. What a request asks for is a handler's business.

#include <boost/asio/ip/tcp.hpp>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/http/http_message.h"
#include "server/http/http_options.h"
#include "server/metrics/server_status.h"

namespace txl {

class HttpServer {
 public:
  // Errors: InvalidArgument for no HOST:PORT, Unavailable when the address
  // cannot be listened on.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(
      HttpOptions options, HttpHandlers handlers);
  // REQUIRES: Shutdown was called.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // HOST:PORT with the real port.
  const std::string& address() const;
  // Tells its connections, also when the server is gone. Thread-safe.
  std::function<ConnectionCounts()> Counts() const;

  // Takes no more connections, waits for running requests until the deadline,
  // then cuts them off. Blocks until every one has ended.
  void Shutdown(absl::Duration timeout);

 private:
  class Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace txl
