#include "server/listener_watch.h"

#include <utility>

namespace txl {
namespace {

constexpr int kLeastFailures = 3;

}  // namespace

FailedAttempts WithAttempt(const FailedAttempts& before, bool ok,
                           absl::Duration began) {
  if (ok) return {};
  return {before.count + 1, before.count == 0 ? began : before.since};
}

bool IsDeaf(const FailedAttempts& failed, absl::Duration now,
            absl::Duration limit) {
  return failed.count >= kLeastFailures && now - failed.since >= limit;
}

ListenerWatch::ListenerWatch(ListenerWatchOptions options)
    : options_(std::move(options)),
      thread_(options_.interval, [this] { Attempt(); }) {}

void ListenerWatch::Attempt() {
  const absl::Duration began = options_.clock->Monotonic();
  const absl::Status status = options_.attempt();
  failed_ = WithAttempt(failed_, status.ok(), began);
  if (IsDeaf(failed_, options_.clock->Monotonic(), options_.limit)) {
    options_.deaf(status);
  }
}

}  // namespace txl
