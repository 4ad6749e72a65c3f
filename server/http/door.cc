#include "server/http/door.h"

#include "server/access/key_ring.h"

namespace txl {
namespace {

absl::Status Refuse(CallDesk& desk, const PathRule& rule,
                    const HttpRequest& head, const Caller& caller,
                    const absl::Status& status) {
  const ServiceContext& context = desk.context();
  CallRecord record = StartRecord(rule.name, context.clock, context.metrics);
  record.lines = &desk.lines();
  record.peer = head.peer;
  record.trace = head.trace;
  record.request_id = head.request_id;
  record.tenant = caller.tenant;
  record.key = caller.name;
  EndRecord(record, status);
  return status;
}

// Of somebody who is not known.
Caller Stranger() { return {"", "", Role::kUser}; }

}  // namespace

absl::StatusOr<Caller> LetInPath(
    CallDesk& desk, const PathRule& rule, const HttpRequest& head,
    const std::vector<std::string>& authorization) {
  const KeyRing* const keys = desk.context().keys;
  if (keys == nullptr || rule.open) return Caller();
  absl::StatusOr<Caller> caller = keys->Identify(
      {authorization,
       head.certificate.value_or(PeerCertificate()).common_name});
  if (!caller.ok()) {
    return Refuse(desk, rule, head, Stranger(), caller.status());
  }
  if (rule.roles.empty()) return absl::NotFoundError("there is no such path");
  const absl::Status status = CheckRole(*caller, rule.roles);
  if (!status.ok()) return Refuse(desk, rule, head, *caller, status);
  return caller;
}

}  // namespace txl
