#include "server/watchdog.h"

#include <unistd.h>

#include <thread>
#include <utility>

#include "absl/time/clock.h"
#include "server/base/log.h"
#include "server/exit_code.h"

namespace txl {

bool ShouldServe(ServerPhase phase, absl::Duration stall,
                 absl::Duration stall_limit) {
  return phase == ServerPhase::kReady && stall < stall_limit;
}

HealthWatch::HealthWatch(HealthWatchOptions options)
    : options_(std::move(options)),
      thread_(options_.interval, [this] { Check(); }) {}

void HealthWatch::Check() {
  const absl::Duration stall = options_.stall();
  const bool serve = ShouldServe(options_.phase(), stall, options_.stall_limit);
  if (serve == serving_) return;
  serving_ = serve;
  options_.set_serving(serve);
  Log(serve ? LogSeverity::kInfo : LogSeverity::kWarning, "health",
      {{"serving", serve}, {"stall_seconds", absl::ToDoubleSeconds(stall)}});
}

void ExitAfter(absl::Duration timeout) {
  std::thread([timeout] {
    absl::SleepFor(timeout);
    Log(LogSeverity::kWarning, "exit", {{"forced", true}});
    FlushLog(kLastFlush);
    _exit(kExitForced);
  }).detach();
}

}  // namespace txl
