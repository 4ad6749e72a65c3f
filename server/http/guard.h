#pragma once

// Whether a request may be handled at all, from its head alone. Pure.
//
// The server listens for browsers too, and a browser sends what any page asks
// for. A page under a name that was pointed at loopback (DNS rebinding) is told
// by its Host; one of another origin by its Origin; and a form, which needs no
// permission of ours, by its content type.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "server/access/role.h"
#include "server/api/call_desk.h"
#include "server/http/http_message.h"
#include "server/http/http_options.h"

namespace txl {

// What the library's parser says of a head.
struct RequestHead {
  std::string method;
  std::string target;  // as sent
  // Every field in its order, names in lower case.
  std::vector<std::pair<std::string, std::string>> fields;
  bool http_1_0 = false;
  std::string local_address = {};  // that it came in on, "127.0.0.2"
};

// The refusal of a request; absent: it may be handled.
std::optional<HttpReply> CheckHead(const RequestHead& head,
                                   const HttpOptions& options);

// Whether `host` (a Host header) names loopback or one of `hosts`: a name, an
// address in any spelling, or either with its port.
bool IsOwnHost(const std::string& host, const std::vector<std::string>& hosts);

// The path of OPTIONS that asks for the server itself.
inline constexpr char kWholeServer[] = "*";

// Splits a target, "/path?query", "http://host/path?query" or "*", into a
// decoded path and its query. False: it is not one of them (no leading "/", a
// broken escape, an escaped "/", NUL or control character).
bool ParseTarget(const std::string& target, HttpRequest* request);

// Who is let in over HTTP, from the head of a request alone, and what is kept
// of those who are not.

// Who may ask for a path. Without a rule there is no path.
struct PathRule {
  bool open = false;  // to everybody: nothing of anybody is there
  RoleSet roles = {};
  // What records call the path, without a session that it may name; a literal.
  const char* name = "unknown";
};

// Identifies the caller, where a key is needed, and checks that they may ask;
// without keys every caller may. Errors: UNAUTHENTICATED, PERMISSION_DENIED,
// and NOT_FOUND of a path without a rule.
absl::Status LetInPath(const CallDesk& desk, const PathRule& rule,
                       const std::vector<std::string>& authorization,
                       HttpRequest* head);

// Records a request that made no call, as a call by the name of its path.
void RecordRefusal(CallDesk& desk, const PathRule& rule,
                   const HttpRequest& request, const absl::Status& status);

}  // namespace txl
