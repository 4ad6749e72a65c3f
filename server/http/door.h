#pragma once

// Who is let in over HTTP, from the head of a request alone.

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/access/caller.h"
#include "server/access/role.h"
#include "server/api/call_desk.h"
#include "server/http/http_message.h"

namespace txl {

// What records call a path that nothing is known of.
inline constexpr char kUnknownPath[] = "unknown";

// Who may ask for a path. Without a rule there is no path.
struct PathRule {
  bool open = false;  // to everybody: nothing of anybody is there
  RoleSet roles = {};
  // What records call the path, without the session that it may name; a
  // literal.
  const char* name = kUnknownPath;
};

// Who asks, and may; without keys everybody. A refusal is recorded as that of a
// call. Errors: UNAUTHENTICATED, PERMISSION_DENIED, and NOT_FOUND of a path
// without a rule.
absl::StatusOr<Caller> LetInPath(CallDesk& desk, const PathRule& rule,
                                 const HttpRequest& head,
                                 const std::vector<std::string>& authorization);

}  // namespace txl
