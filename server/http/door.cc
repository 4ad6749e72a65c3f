#include "server/http/door.h"

#include "model/base/status_macros.h"
#include "server/access/key_ring.h"

namespace txl {

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
  return CheckRole(head->caller, rule.roles);
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
