#include "server/watchdog.h"

#include <unistd.h>

#include <thread>
#include <utility>

#include "absl/time/clock.h"
#include "server/base/log.h"
#include "server/signals.h"

namespace txl {

bool ShouldServe(ServerPhase phase, absl::Duration stall,
                 absl::Duration stall_limit) {
  return phase == ServerPhase::kReady && stall < stall_limit;
}

int HangCount(int before, absl::Duration stall, absl::Duration hang_limit) {
  const bool hangs = hang_limit > absl::ZeroDuration() && stall >= hang_limit;
  return hangs ? before + 1 : 0;
}

HealthWatch::HealthWatch(HealthWatchOptions options)
    : options_(std::move(options)),
      thread_(options_.interval, [this] { Check(); }) {}

void HealthWatch::Check() {
  const absl::Duration stall = options_.stall();
  hang_checks_ = HangCount(hang_checks_, stall, options_.hang_limit);
  if (hang_checks_ == kHangChecks) options_.hung(stall);
  const bool silent = options_.store_silent && options_.store_silent();
  const bool serve =
      ShouldServe(options_.phase(), stall, options_.stall_limit) && !silent;
  if (serve == serving_) return;
  serving_ = serve;
  options_.set_serving(serve);
  Log(serve ? LogSeverity::kInfo : LogSeverity::kWarning, "health",
      {{"serving", serve},
       {"stall_seconds", absl::ToDoubleSeconds(stall)},
       {"store_silent", silent}});
}

void GiveUp(absl::string_view cause, absl::string_view details, ExitCode code) {
  Log(LogSeverity::kError, "exit",
      {{"forced", true}, {"cause", cause}, {"details", details}});
  FlushLog(kLastFlush);
  _exit(code);
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
