#pragma once

// The HTTP front: OpenAI's paths and ours over the methods of the API. What it
// answers, path by path, and the server that listens.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/api/call_desk.h"
#include "server/http/guard.h"
#include "server/http/http_api.h"
#include "server/http/http_message.h"
#include "server/http/http_options.h"
#include "server/http/http_server.h"

namespace txl {

PathRule RuleOf(const std::string& path);

// Whether who asks may: LetInPath by the path's rule. A browser's question
// whether it may ask needs no key.
absl::Status LetInHttp(const HttpApi& api,
                       const std::vector<std::string>& authorization,
                       HttpRequest* head);

// Answers a request. `api` outlives it.
void AnswerHttp(const HttpApi& api, const std::shared_ptr<Exchange>& exchange);

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
