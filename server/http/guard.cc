#include "server/http/guard.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "server/http/http_error.h"

namespace txl {
namespace {

int Count(const RequestHead& head, absl::string_view name) {
  return static_cast<int>(
      std::count_if(head.fields.begin(), head.fields.end(),
                    [&](const auto& field) { return field.first == name; }));
}

std::string Value(const RequestHead& head, absl::string_view name) {
  for (const auto& [key, value] : head.fields) {
    if (key == name) return value;
  }
  return "";
}

// "[::1]:80" -> "::1", "a.example:80" -> "a.example".
std::string HostOf(absl::string_view authority) {
  if (absl::ConsumePrefix(&authority, "[")) {
    return std::string(authority.substr(0, authority.find(']')));
  }
  return absl::AsciiStrToLower(authority.substr(0, authority.find(':')));
}

bool IsLoopbackName(const std::string& host) {
  return host == "localhost" || host == "127.0.0.1" || host == "::1";
}

// Of "http://localhost:8000", "localhost:8000".
std::string AuthorityOf(const std::string& origin) {
  const size_t scheme = origin.find("://");
  return scheme == std::string::npos ? "" : origin.substr(scheme + 3);
}

bool IsOwnOrigin(const std::string& origin, const std::string& host,
                 const HttpOptions& options) {
  const auto& listed = options.origins;
  if (std::find(listed.begin(), listed.end(), origin) != listed.end()) {
    return true;
  }
  return !AuthorityOf(origin).empty() && AuthorityOf(origin) == host;
}

bool IsJson(const std::string& content_type) {
  const std::vector<std::string> parts = absl::StrSplit(content_type, ';');
  return absl::EqualsIgnoreCase(absl::StripAsciiWhitespace(parts[0]),
                                "application/json");
}

std::optional<HttpReply> CheckBody(const RequestHead& head,
                                   const HttpOptions& options) {
  // A body's end is said in one way only: what two parsers end differently is
  // two requests to one of them.
  if (Count(head, "transfer-encoding") > 0) {
    return PlainError(411, "LENGTH_REQUIRED",
                      "a body needs Content-Length, not Transfer-Encoding");
  }
  if (Count(head, "content-length") > 1) {
    return PlainError(400, "MALFORMED_MESSAGE", "two Content-Length");
  }
  if (head.method != "POST") return std::nullopt;
  const std::string length = Value(head, "content-length");
  if (length.empty()) {
    return PlainError(411, "LENGTH_REQUIRED", "a POST needs Content-Length");
  }
  uint64_t bytes = 0;
  if (!absl::SimpleAtoi(length, &bytes)) {
    return PlainError(400, "MALFORMED_MESSAGE", "Content-Length is no number");
  }
  if (bytes > static_cast<uint64_t>(options.body_bytes)) {
    return PlainError(
        413, "BODY_TOO_LARGE",
        absl::StrCat("a body may have ", options.body_bytes, " bytes"));
  }
  if (!IsJson(Value(head, "content-type"))) {
    return PlainError(415, "UNSUPPORTED_MEDIA_TYPE",
                      "the body's Content-Type must be application/json");
  }
  return std::nullopt;
}

// The value of two hexadecimal digits; -1: they are none.
int HexByte(absl::string_view digits) {
  if (digits.size() < 2 || !absl::ascii_isxdigit(digits[0]) ||
      !absl::ascii_isxdigit(digits[1])) {
    return -1;
  }
  return static_cast<int>(
      std::stoi(std::string(digits.substr(0, 2)), nullptr, 16));
}

bool Decode(absl::string_view text, bool is_path, std::string* out) {
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+' && !is_path) {
      *out += ' ';
      continue;
    }
    if (text[i] != '%') {
      *out += text[i];
      continue;
    }
    const int byte = HexByte(text.substr(i + 1));
    if (byte < 0x20 || byte == 0x7F || (is_path && byte == '/')) return false;
    *out += static_cast<char>(byte);
    i += 2;
  }
  return true;
}

}  // namespace

bool IsOwnHost(const std::string& host, const std::vector<std::string>& hosts) {
  const std::string name = HostOf(host);
  if (name.empty()) return false;
  return IsLoopbackName(name) ||
         std::any_of(hosts.begin(), hosts.end(), [&](const std::string& own) {
           return absl::EqualsIgnoreCase(own, name) ||
                  absl::EqualsIgnoreCase(own, host);
         });
}

std::optional<HttpReply> CheckHead(const RequestHead& head,
                                   const HttpOptions& options) {
  if (options.any_host) return CheckBody(head, options);
  const std::string host = Value(head, "host");
  if (Count(head, "host") != 1 || !IsOwnHost(host, options.hosts)) {
    return PlainError(403, "PERMISSION_DENIED",
                      "the Host is none of this server's (--http-hosts)");
  }
  if (Count(head, "origin") > 0 &&
      !IsOwnOrigin(Value(head, "origin"), host, options)) {
    return PlainError(403, "PERMISSION_DENIED",
                      "the Origin may not send requests (--http-origins)");
  }
  return CheckBody(head, options);
}

bool ParseTarget(const std::string& target, HttpRequest* request) {
  if (!absl::StartsWith(target, "/")) return false;
  const absl::string_view whole = target;
  const size_t mark = whole.find('?');
  if (!Decode(whole.substr(0, mark), true, &request->path)) return false;
  if (mark == absl::string_view::npos) return true;
  for (const absl::string_view part :
       absl::StrSplit(whole.substr(mark + 1), '&', absl::SkipEmpty())) {
    const size_t equals = part.find('=');
    std::string key, value;
    if (!Decode(part.substr(0, equals), false, &key)) return false;
    if (equals != absl::string_view::npos &&
        !Decode(part.substr(equals + 1), false, &value)) {
      return false;
    }
    request->query[key] = value;
  }
  return true;
}

}  // namespace txl
