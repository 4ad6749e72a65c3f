#pragma once

// What every path of the front works with: the API behind it, and the reading
// of bodies.

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "server/api/call_desk.h"
#include "server/http/http_error.h"
#include "server/http/http_message.h"
#include "server/http/http_options.h"

namespace txl {

struct HttpApi {
  CallDesk* desk = nullptr;
  // The text of GET /metrics.
  std::function<std::string()> metrics;
  HttpOptions options;
};

// Calls `then` on the front's thread with what `read` makes of the request; an
// error is the answer.
template <typename T>
void ReadBody(CallDesk* desk, const std::shared_ptr<Exchange>& exchange,
              std::function<absl::StatusOr<T>(const HttpRequest&)> read,
              std::function<void(T)> then) {
  const auto go_on = [exchange,
                      then = std::move(then)](absl::StatusOr<T> made) {
    if (!made.ok()) return exchange->Reply(ErrorReply(made.status()));
    then(*std::move(made));
  };
  if (exchange->request().body.size() <= kInlineBody) {
    return go_on(read(exchange->request()));
  }
  desk->context().turns.work->Run(
      exchange->request().peer,
      [exchange, read = std::move(read), go_on](const absl::Status& status) {
        const auto made = std::make_shared<absl::StatusOr<T>>(
            status.ok() ? read(exchange->request())
                        : absl::StatusOr<T>(status));
        exchange->Post([go_on, made] { go_on(std::move(*made)); });
      });
}

}  // namespace txl
