#include "server/http/http_error.h"

#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/base/error.h"
#include "server/http/message_json.h"

namespace txl {
namespace {

using Json = nlohmann::json;

// The fields of the object stop.token_count begin with this.
constexpr absl::string_view kTokenCount = "stop.token_count.";

// From the '[' of an index on; empty: there is none.
std::string IndexOf(const std::string& field) {
  const size_t index = field.find('[');
  return index == std::string::npos ? "" : field.substr(index);
}

// The names that the body's fields have where ours are called otherwise.
std::string BareField(const std::string& field) {
  std::string bare = field.substr(0, field.find('['));
  if (bare == "input") return "text";
  if (const size_t dot = bare.rfind('.'); dot != std::string::npos) {
    const std::string owner = bare.substr(0, dot);
    bare = bare.substr(dot + 1);
    if (bare == "ids") bare = owner.substr(owner.rfind('.') + 1);
  }
  if (bare == "stop_texts") return "stop";
  if (bare == "ignore_end_token") return "ignore_eos";
  return bare;
}

// Of a server that ends: another one may be there by then.
constexpr absl::Duration kRetryElsewhere = absl::Seconds(1);

const char* TypeOf(int code) {
  switch (code) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 409:
      return "conflict_error";
    case 429:
      return "rate_limit_error";
    default:
      return code >= 500 ? "server_error" : "invalid_request_error";
  }
}

// Of an error of HTTP itself, for its record.
absl::StatusCode CodeOf(int code) {
  switch (code) {
    case 403:
      return absl::StatusCode::kPermissionDenied;
    case 404:
      return absl::StatusCode::kNotFound;
    case 405:
    case 501:
      return absl::StatusCode::kUnimplemented;
    case 408:
      return absl::StatusCode::kDeadlineExceeded;
    case 500:
      return absl::StatusCode::kInternal;
    case 503:
      return absl::StatusCode::kUnavailable;
    default:
      return absl::StatusCode::kInvalidArgument;
  }
}

// Whether the same request may succeed, where OpenAI's clients, which repeat
// 409, 429 and everything from 500 on by themselves, have to be told.
std::optional<bool> MayBeSentAgain(int code, const ErrorDetails& details) {
  switch (code) {
    case 409:
      return details.reason == "SESSION_BUSY" ||
             details.reason == "SESSION_MOVED";
    case 429:
      // A quota that the request alone is over: no time will come for it.
      if (!details.retry.has_value()) return false;
      return std::nullopt;
    case 504:  // the turn took longer than the server lets it
      return false;
    case 500:
      if (details.reason == "SESSION_DAMAGED") return false;
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

std::string Object(int code, const std::string& reason,
                   const std::string& message, const std::string& field) {
  const std::string bare = BareField(field);
  const std::string index = IndexOf(field);
  std::string place;  // that the bare field does not tell
  if (!index.empty()) place = absl::StrCat(bare, index, ": ");
  if (absl::StartsWith(field, kTokenCount)) {
    place = absl::StrCat("stop_token_count.", bare, ": ");
  }
  const Json error = {{"message", place + message},
                      {"type", TypeOf(code)},
                      {"param", field.empty() ? Json() : Json(bare)},
                      {"code", reason}};
  return DumpJson({{"error", error}});
}

}  // namespace

int HttpStatusOf(const absl::Status& status) {
  const std::string reason = ReasonOf(status);
  if (reason == "METHOD_NOT_ALLOWED") return 405;
  if (reason == "BODY_TOO_LARGE") return 413;
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return 200;
    case absl::StatusCode::kInvalidArgument:
      return 400;
    case absl::StatusCode::kUnauthenticated:
      return 401;
    case absl::StatusCode::kPermissionDenied:
      return 403;
    case absl::StatusCode::kNotFound:
      return 404;
    case absl::StatusCode::kUnimplemented:
      return 404;
    case absl::StatusCode::kAlreadyExists:
      return 409;
    case absl::StatusCode::kAborted:
      return 409;
    case absl::StatusCode::kFailedPrecondition:
      return 409;
    case absl::StatusCode::kResourceExhausted:
      return 429;
    case absl::StatusCode::kCancelled:
      return 499;
    case absl::StatusCode::kUnavailable:
      return 503;
    case absl::StatusCode::kDeadlineExceeded:
      return 504;
    default:
      return 500;
  }
}

std::string ErrorJson(const absl::Status& status) {
  return Object(HttpStatusOf(status), ReasonOf(status), ShownText(status),
                GetErrorDetails(status).field);
}

HttpReply ErrorReply(const absl::Status& status) {
  const ErrorDetails details = GetErrorDetails(status);
  HttpReply reply;
  reply.error = status;
  reply.status = HttpStatusOf(status);
  reply.body = ErrorJson(status);
  if (reply.status == 401) {
    reply.headers.emplace_back("www-authenticate", "Bearer");
  }
  if (const auto again = MayBeSentAgain(reply.status, details)) {
    reply.headers.emplace_back("x-should-retry", *again ? "true" : "false");
  }
  if (const auto at = details.metadata.find("position");
      at != details.metadata.end()) {
    reply.headers.emplace_back("x-txl-position", at->second);
  }
  if (details.retry.has_value() || reply.status == 503) {
    const absl::Duration retry = details.retry.value_or(kRetryElsewhere);
    // HTTP's own knows whole seconds.
    reply.headers.emplace_back("retry-after",
                               absl::StrCat(absl::ToInt64Seconds(
                                   absl::Ceil(retry, absl::Seconds(1)))));
    reply.headers.emplace_back("retry-after-ms",
                               absl::StrCat(absl::ToInt64Milliseconds(retry)));
  }
  return reply;
}

absl::Status AsOfInput(const absl::Status& status, absl::string_view name) {
  ErrorDetails details = GetErrorDetails(status);
  const std::string& field = details.field;
  if (field != "text" && field != "input" && field.rfind("tokens", 0) != 0 &&
      field.rfind("token_ids", 0) != 0) {
    return status;
  }
  details.field = absl::StrCat(name, IndexOf(field));
  return MakeError(status.code(), status.message(), details);
}

absl::Status InObject(const absl::Status& status, const char* owner) {
  ErrorDetails details = GetErrorDetails(status);
  if (details.field.empty()) return status;
  details.field = absl::StrCat(owner, ".", details.field);
  return MakeError(status.code(), status.message(), details);
}

absl::Status BrokenOffError() {
  ErrorDetails details;
  details.reason = "SERVER_DRAIN";
  return MakeError(absl::StatusCode::kUnavailable,
                   "the server is shutting down; the turn may be asked for "
                   "again",
                   details);
}

HttpReply BodyTooLarge(int64_t most_bytes) {
  return PlainError(413, "BODY_TOO_LARGE",
                    absl::StrCat("a body may have ", most_bytes, " bytes"));
}

HttpReply PlainError(int code, const std::string& reason,
                     const std::string& message) {
  HttpReply reply;
  ErrorDetails details;
  details.reason = reason;
  reply.error = MakeError(CodeOf(code), message, details);
  reply.status = code;
  reply.body = Object(code, reason, message, "");
  return reply;
}

}  // namespace txl
