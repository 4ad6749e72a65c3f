#include "server/rpc/service_context.h"

#include "server/base/log.h"

namespace txl {

namespace {

MemoryUse ReadMemoryUse(const ServiceContext& context) {
  MemoryUse use;
  if (context.memory != nullptr) use.division = *context.memory;
  if (context.guard != nullptr) {
    use.resident_bytes = context.guard->resident_bytes();
    use.shedding = context.guard->Shedding();
  }
  if (context.requests != nullptr) {
    use.request_bytes = context.requests->used();
    use.requests_refused = context.requests->refused();
  }
  if (context.streams != nullptr) {
    use.stream_bytes = context.streams->used();
    use.streams_refused = context.streams->refused();
  }
  return use;
}

}  // namespace

ServerStatus ReadStatus(const ServiceContext& context) {
  ServerStatus status;
  status.phase = context.lifecycle->phase();
  status.uptime = context.clock->Monotonic() - context.start;
  status.stall = context.scheduler->StallTime();
  status.sessions = context.store->counts();
  status.memory = ReadMemoryUse(context);
  status.log_lines_dropped = LogLinesDropped();
  if (context.work != nullptr) status.work = context.work->counts();
  status.snapshot = context.metrics->Get();
  return status;
}

}  // namespace txl
