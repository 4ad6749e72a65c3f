#pragma once

// AdminService's Dump: the server's state as JSON, for a report of a bug.

#include <optional>
#include <string>

#include "server/api/service_context.h"
#include "server/scheduler/scheduler_report.h"

namespace txl {

// An object with "model", "status", "scheduler" and "store" (the proto has what
// they are). Nothing of it is text of a session, a token id or the name of a
// session or a tenant: instead of a name there are 16 hex digits of its
// SHA-256, for a session those of HashOf. `scheduler`: nothing where it did not
// answer, which is said.
std::string DumpJson(const ServiceContext& service,
                     const std::optional<SchedulerReport>& scheduler);

}  // namespace txl
