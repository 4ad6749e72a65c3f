#pragma once

// What the front's transport asks of those who answer.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/base/byte_budget.h"
#include "server/http/exchange.h"

namespace txl {

struct HttpHandlers {
  // Whether who asks may, from the head alone, before room is taken for a body;
  // says in it who he is, as far as he is known. `authorization`: every such
  // field. An error is the answer.
  std::function<absl::Status(HttpRequest* head,
                             const std::vector<std::string>& authorization)>
      let_in;
  // Hears of the errors that are answered without a call of the API, which
  // would be recorded by itself. May be null.
  std::function<void(const HttpRequest&, const absl::Status&)> refused;
  // Called on the front's thread with every request that may be handled.
  std::function<void(std::shared_ptr<Exchange>)> handle;
  // Room for a body of so many bytes and what is made of it, before it is read.
  std::function<absl::StatusOr<ByteHold>(int64_t bytes)> hold_body;
};

}  // namespace txl
