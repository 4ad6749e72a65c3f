#pragma once

// The HTTP front: OpenAI's paths and ours over the methods of the API.

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/api/call_desk.h"
#include "server/http/endpoints.h"
#include "server/http/http_options.h"
#include "server/http/http_server.h"

namespace txl {

class HttpFront {
 public:
  // The desk outlives the front. Errors: as HttpServer.
  static absl::StatusOr<std::unique_ptr<HttpFront>> Start(HttpOptions options,
                                                          HttpApi api);
  // REQUIRES: Shutdown was called.
  ~HttpFront() = default;

  // HOST:PORT with the real port.
  const std::string& address() const { return server_->address(); }
  void Shutdown(absl::Duration timeout) { server_->Shutdown(timeout); }

 private:
  HttpFront() = default;

  HttpApi api_;
  std::unique_ptr<HttpServer> server_;
};

}  // namespace txl
