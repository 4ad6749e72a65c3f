#include "server/base/periodic.h"

#include <algorithm>
#include <utility>

namespace txl {
namespace {

// So that now and an interval make a time.
constexpr absl::Duration kLongest = absl::Hours(24 * 365);

}  // namespace

Periodic::Periodic(absl::Duration interval, std::function<void()> act)
    : interval_(absl::ToChronoNanoseconds(std::min(interval, kLongest))),
      act_(std::move(act)),
      thread_([this] { Loop(); }) {}

Periodic::~Periodic() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void Periodic::Loop() {
  while (true) {
    {
      std::unique_lock<std::mutex> lock(mutex_);
      if (changed_.wait_for(lock, interval_, [this] { return stopping_; })) {
        return;
      }
    }
    act_();
  }
}

}  // namespace txl
