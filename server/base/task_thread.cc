#include "server/base/task_thread.h"

#include <algorithm>
#include <utility>

namespace txl {

TaskThread::TaskThread() : thread_([this] { Loop(); }) {}

TaskThread::~TaskThread() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  thread_.join();
}

void TaskThread::Run(std::function<void()> task) {
  absl::MutexLock lock(&mutex_);
  tasks_.push_back(std::move(task));
}

void TaskThread::Loop() {
  const auto ready = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return stopping_ || !tasks_.empty();
  };
  while (true) {
    std::deque<std::function<void()>> tasks;
    {
      absl::MutexLock lock(&mutex_, absl::Condition(&ready));
      if (tasks_.empty()) return;
      tasks.swap(tasks_);
    }
    for (auto& task : tasks) {
      task();
      task = nullptr;  // what it holds is let go before the next one runs
    }
  }
}

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
