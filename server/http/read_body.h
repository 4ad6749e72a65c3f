#pragma once

// Reading of bodies: small ones at once, larger ones on the pool, so that no
// other client waits for one.

#include <functional>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "server/api/call_desk.h"
#include "server/http/http_error.h"
#include "server/http/http_message.h"
#include "server/http/http_options.h"

namespace txl {

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
