#pragma once

// Who is let in over HTTP, from the head of a request alone, and what is kept
// of those who are not.

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "server/access/role.h"
#include "server/api/call_desk.h"
#include "server/http/http_message.h"

namespace txl {

// Who may ask for a path. Without a rule there is no path.
struct PathRule {
  bool open = false;  // to everybody: nothing of anybody is there
  RoleSet roles = {};
  // What records call the path, without a session that it may name; a literal.
  const char* name = "unknown";
};

// Finds who asks, where a key is needed, and whether he may; without keys
// everybody may. Errors: UNAUTHENTICATED, PERMISSION_DENIED, and NOT_FOUND of a
// path without a rule.
absl::Status LetInPath(const CallDesk& desk, const PathRule& rule,
                       const std::vector<std::string>& authorization,
                       HttpRequest* head);

// Records a request that made no call, as a call by the name of its path.
void RecordRefusal(CallDesk& desk, const PathRule& rule,
                   const HttpRequest& request, const absl::Status& status);

}  // namespace txl
