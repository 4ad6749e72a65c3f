#include "server/rpc/service_context.h"

namespace txl {

ServerStatus ReadStatus(const ServiceContext& context) {
  ServerStatus status;
  status.phase = context.lifecycle->phase();
  status.uptime = context.clock->Monotonic() - context.start;
  status.stall = context.scheduler->StallTime();
  status.sessions = context.store->counts();
  status.snapshot = context.metrics->Get();
  return status;
}

}  // namespace txl
