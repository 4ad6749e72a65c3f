#include "server/base/periodic.h"

#include <utility>

namespace txl {

Periodic::Periodic(absl::Duration interval, std::function<void()> act)
    : interval_(interval), act_(std::move(act)), thread_([this] { Loop(); }) {}

Periodic::~Periodic() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  thread_.join();
}

void Periodic::Loop() {
  while (true) {
    {
      absl::MutexLock lock(&mutex_);
      if (mutex_.AwaitWithTimeout(absl::Condition(&stopping_), interval_)) {
        return;
      }
    }
    act_();
  }
}

}  // namespace txl
