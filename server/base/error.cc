#include "server/base/error.h"

#include <nlohmann/json.hpp>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"

namespace txl {
namespace {

// gRPC's trailers are limited to 8 KiB in all.
constexpr size_t kMaxShownBytes = 512;

constexpr absl::string_view kPayloadUrl = "txl.v1/ErrorDetails";
constexpr char kReason[] = "reason";
constexpr char kField[] = "field";
constexpr char kRetry[] = "retry_nanoseconds";
constexpr char kMetadata[] = "metadata";

// What reaches a client must be UTF-8: bad bytes become U+FFFD.
std::string Dump(const nlohmann::json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

absl::Status MakeError(absl::StatusCode code, absl::string_view message,
                       const ErrorDetails& details) {
  absl::Status status(code, message);
  nlohmann::json json = {{kReason, details.reason},
                         {kField, details.field},
                         {kMetadata, details.metadata}};
  if (details.retry.has_value()) {
    json[kRetry] = absl::ToInt64Nanoseconds(*details.retry);
  }
  status.SetPayload(kPayloadUrl, absl::Cord(Dump(json)));
  return status;
}

ErrorDetails GetErrorDetails(const absl::Status& status) {
  ErrorDetails details;
  const absl::optional<absl::Cord> payload = status.GetPayload(kPayloadUrl);
  if (!payload.has_value()) return details;
  // Only MakeError writes this payload, so its shape is known.
  const nlohmann::json json = nlohmann::json::parse(std::string(*payload));
  details.reason = json.at(kReason).get<std::string>();
  details.field = json.at(kField).get<std::string>();
  details.metadata =
      json.at(kMetadata).get<std::map<std::string, std::string>>();
  if (json.contains(kRetry)) {
    details.retry = absl::Nanoseconds(json.at(kRetry).get<int64_t>());
  }
  return details;
}

std::string ReasonOf(const absl::Status& status) {
  const ErrorDetails details = GetErrorDetails(status);
  return details.reason.empty() ? absl::StatusCodeToString(status.code())
                                : details.reason;
}

std::string ShownText(const absl::Status& status) {
  const bool foreign = GetErrorDetails(status).reason.empty() &&
                       (status.code() == absl::StatusCode::kInternal ||
                        status.code() == absl::StatusCode::kUnknown);
  return foreign ? "internal error"
                 : CutUtf8(std::string(status.message()), kMaxShownBytes);
}

std::string CutUtf8(const std::string& text, size_t bytes) {
  if (text.size() <= bytes) return text;
  size_t end = bytes;
  // A continuation byte is 10xxxxxx: step back to the character's first byte.
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) {
    --end;
  }
  return text.substr(0, end);
}

absl::Status MalformedError(absl::string_view message) {
  ErrorDetails details;
  details.reason = "MALFORMED_MESSAGE";
  return MakeError(absl::StatusCode::kInvalidArgument, message, details);
}

absl::Status FieldError(absl::string_view field, absl::string_view message) {
  ErrorDetails details;
  details.reason = "FIELD_INVALID";
  details.field = std::string(field);
  return MakeError(absl::StatusCode::kInvalidArgument, message, details);
}

absl::Status OverLimitError(absl::string_view field,
                            absl::string_view message) {
  ErrorDetails details;
  details.reason = "OVER_LIMIT";
  details.field = std::string(field);
  return MakeError(absl::StatusCode::kInvalidArgument, message, details);
}

absl::Status QuotaError(absl::string_view quota, absl::string_view limit,
                        ErrorDetails more) {
  more.reason = "QUOTA";
  more.metadata["quota"] = std::string(quota);
  return MakeError(
      absl::StatusCode::kResourceExhausted,
      absl::StrCat("over the tenant's quota ", quota, " = ", limit), more);
}

}  // namespace txl
