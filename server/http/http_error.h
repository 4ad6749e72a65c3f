#pragma once

// The only place where errors become HTTP's: a status code, OpenAI's error
// object and what its clients need to know of a retry.

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/http/http_message.h"

namespace txl {

// The status code of an error that came before anything was sent.
int HttpStatusOf(const absl::Status& status);

// {"error": {"message", "type", "param", "code"}}: `code` is the reason,
// `param` the bare field ("top_p" of "sampling.top_p"), null where no field is
// named. Where in a list or an object within the body it is, the message says.
std::string ErrorJson(const absl::Status& status);

// The whole answer. Says how to send a key where one is needed, x-should-retry
// where OpenAI's clients would repeat blindly what cannot succeed, and
// retry-after and retry-after-ms where a retry makes sense.
HttpReply ErrorReply(const absl::Status& status);

// `status` with `name` as its field, if it is about the input of a turn or of a
// tokenizer's method.
absl::Status AsOfInput(const absl::Status& status, absl::string_view name);

// `status`, whose field is one of the object `owner`.
absl::Status InObject(const absl::Status& status, const char* owner);

// Error of a turn that ends because the server shuts down: SERVER_DRAIN.
absl::Status BrokenOffError();

// A body over the limit.
HttpReply BodyTooLarge(int64_t most_bytes);

// An error of HTTP itself with a status code of its own.
HttpReply PlainError(int code, const std::string& reason,
                     const std::string& message);

}  // namespace txl
