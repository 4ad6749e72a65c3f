#include "server/http/guard.h"

#include <algorithm>
#include <boost/asio/ip/address.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "model/base/status_macros.h"
#include "server/access/key_ring.h"
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

// Addresses are equal however they are spelt; an IPv4 one that came in on a
// socket of both is "::ffff:127.0.0.1".
bool IsSameAddress(const std::string& a, const std::string& b) {
  const auto parse = [](const std::string& text, auto* address) {
    boost::system::error_code error;
    *address =
        boost::asio::ip::make_address(text.substr(0, text.find('%')), error);
    if (!error && address->is_v6() && address->to_v6().is_v4_mapped()) {
      *address = boost::asio::ip::make_address_v4(boost::asio::ip::v4_mapped,
                                                  address->to_v6());
    }
    return !error;
  };
  boost::asio::ip::address first, second;
  return parse(a, &first) && parse(b, &second) && first == second;
}

bool IsLoopbackName(const std::string& host) {
  return host == "localhost" || host == "127.0.0.1" ||
         IsSameAddress(host, "::1");
}

struct Target {
  std::optional<absl::string_view> authority;  // "host:port" of an absolute one
  absl::string_view rest;                      // "/path?query"
};

Target SplitTarget(absl::string_view target) {
  for (const absl::string_view scheme : {"http://", "https://"}) {
    if (!absl::StartsWithIgnoreCase(target, scheme)) continue;
    target.remove_prefix(scheme.size());
    const size_t end = std::min(target.find_first_of("/?#"), target.size());
    const absl::string_view rest = target.substr(end);
    return {target.substr(0, end), rest.empty() ? "/" : rest};
  }
  return {std::nullopt, target};
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

// A body's end is said in one way only: what two parsers end differently is two
// requests to one of them (RFC 9112, 6.3).
std::optional<HttpReply> CheckFraming(const RequestHead& head) {
  const int lengths = Count(head, "content-length");
  const int codings = Count(head, "transfer-encoding");
  if (lengths + codings > 1) {
    return PlainError(400, "MALFORMED_MESSAGE",
                      "more than one Content-Length or Transfer-Encoding");
  }
  if (codings == 0) return std::nullopt;
  if (head.http_1_0) {
    return PlainError(400, "MALFORMED_MESSAGE",
                      "HTTP/1.0 has no Transfer-Encoding");
  }
  if (!absl::EqualsIgnoreCase(Value(head, "transfer-encoding"), "chunked")) {
    HttpReply reply = PlainError(501, "UNSUPPORTED_TRANSFER_ENCODING",
                                 "the only Transfer-Encoding is chunked");
    reply.headers.emplace_back("x-should-retry", "false");
    return reply;
  }
  return std::nullopt;
}

std::optional<HttpReply> CheckLength(const std::string& length,
                                     const HttpOptions& options) {
  if (length.empty()) {
    return PlainError(411, "LENGTH_REQUIRED",
                      "a POST needs Content-Length or chunks");
  }
  uint64_t bytes = 0;
  if (!absl::SimpleAtoi(length, &bytes)) {
    return PlainError(400, "MALFORMED_MESSAGE",
                      "Content-Length is not a number");
  }
  if (bytes > static_cast<uint64_t>(options.body_bytes)) {
    return BodyTooLarge(options.body_bytes);
  }
  return std::nullopt;
}

std::optional<HttpReply> CheckBody(const RequestHead& head,
                                   const HttpOptions& options) {
  if (auto refusal = CheckFraming(head)) return refusal;
  if (head.method != "POST") return std::nullopt;
  if (Count(head, "transfer-encoding") == 0) {
    if (auto refusal = CheckLength(Value(head, "content-length"), options)) {
      return refusal;
    }
  }
  const std::string coding = Value(head, "content-encoding");
  if (!coding.empty() && !absl::EqualsIgnoreCase(coding, "identity")) {
    HttpReply reply = PlainError(415, "UNSUPPORTED_MEDIA_TYPE",
                                 "the body has a Content-Encoding: send it as "
                                 "it is");
    reply.headers.emplace_back("accept-encoding", "identity");
    return reply;
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
                  absl::EqualsIgnoreCase(own, host) || IsSameAddress(own, name);
         });
}

namespace {

// Beside --http-hosts a server has the name that it was told to listen on, and
// the address at which it was reached: no page can point a name of its own at
// it and have the browser send that.
bool IsHostOf(const std::string& host, const RequestHead& head,
              const HttpOptions& options) {
  return IsOwnHost(host, options.hosts) ||
         IsOwnHost(host, {HostOf(options.listen), head.local_address});
}

}  // namespace

std::optional<HttpReply> CheckHead(const RequestHead& head,
                                   const HttpOptions& options) {
  if (options.any_host) return CheckBody(head, options);
  // The authority of an absolute target goes before Host (RFC 9112, 3.2.2).
  const auto authority = SplitTarget(head.target).authority;
  const std::string host =
      authority.has_value() ? std::string(*authority) : Value(head, "host");
  // No browser speaks HTTP/1.0, which knows no Host.
  const int hosts = Count(head, "host");
  const bool nameless = head.http_1_0 && hosts == 0 && !authority.has_value();
  if (!nameless && (hosts != 1 || !IsHostOf(host, head, options))) {
    return PlainError(403, "PERMISSION_DENIED",
                      "the Host is not one of this server's (--http-hosts)");
  }
  if (Count(head, "origin") > 0 &&
      !IsOwnOrigin(Value(head, "origin"), host, options)) {
    return PlainError(403, "PERMISSION_DENIED",
                      "the Origin may not send requests (--http-origins)");
  }
  return CheckBody(head, options);
}

bool ParseTarget(const std::string& target, HttpRequest* request) {
  const Target parts = SplitTarget(target);
  const absl::string_view whole = parts.rest;
  const bool absolute = parts.authority.has_value();
  if (absolute && absl::StrContains(*parts.authority, '@')) return false;
  if (absolute && absl::StartsWith(whole, "?")) {
    request->path = "/";
  } else if (!absl::StartsWith(whole, "/") && whole != kWholeServer) {
    return false;
  }
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
    request->query.emplace_back(std::move(key), std::move(value));
  }
  return true;
}

absl::Status LetInPath(const CallDesk& desk, const PathRule& rule,
                       const std::vector<std::string>& authorization,
                       HttpRequest* head) {
  const KeyRing* const keys = desk.context().keys;
  if (keys != nullptr && rule.open) return absl::OkStatus();
  const Credentials credentials = {
      authorization, head->certificate.value_or(PeerCertificate()).common_name};
  TXL_ASSIGN_OR_RETURN(head->caller, Identify(keys, credentials));
  if (keys == nullptr) return absl::OkStatus();
  if (rule.roles.empty()) return absl::NotFoundError("there is no such path");
  return CheckRole(head->caller, rule.roles, rule.name);
}

void RecordRefusal(CallDesk& desk, const PathRule& rule,
                   const HttpRequest& request, const absl::Status& status) {
  CallRecord record =
      StartRecord(rule.name, desk.context().clock, desk.context().metrics);
  record.lines = &desk.lines();
  record.peer = request.peer;
  record.trace = request.trace;
  record.request_id = request.request_id;
  record.tenant = request.caller.tenant;
  record.key = request.caller.name;
  EndRecord(record, status);
}

}  // namespace txl
