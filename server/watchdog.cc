#include "server/watchdog.h"

#include <unistd.h>

#include <utility>

#include "absl/time/clock.h"
#include "server/base/log.h"

namespace txl {

bool ShouldServe(ServerPhase phase, absl::Duration stall,
                 absl::Duration stall_limit) {
  return phase == ServerPhase::kReady && stall < stall_limit;
}

HealthWatch::HealthWatch(HealthWatchOptions options)
    : options_(std::move(options)), thread_([this] { Loop(); }) {}

HealthWatch::~HealthWatch() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  thread_.join();
}

void HealthWatch::Loop() {
  bool serving = false;
  absl::MutexLock lock(&mutex_);
  while (!mutex_.AwaitWithTimeout(absl::Condition(&stopping_),
                                  options_.interval)) {
    const absl::Duration stall = options_.stall();
    const bool serve =
        ShouldServe(options_.phase(), stall, options_.stall_limit);
    if (serve == serving) continue;
    serving = serve;
    options_.set_serving(serve);
    Log(serve ? LogSeverity::kInfo : LogSeverity::kWarning, "health",
        {{"serving", serve}, {"stall_seconds", absl::ToDoubleSeconds(stall)}});
  }
}

void ExitAfter(absl::Duration timeout) {
  std::thread([timeout] {
    absl::SleepFor(timeout);
    Log(LogSeverity::kWarning, "exit", {{"forced", true}});
    _exit(0);
  }).detach();
}

}  // namespace txl
