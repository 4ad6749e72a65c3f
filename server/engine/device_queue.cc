#include "server/engine/device_queue.h"

#include <utility>

namespace txl {

DeviceQueue::DeviceQueue() : thread_([this] { Loop(); }) {}

DeviceQueue::~DeviceQueue() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  thread_.join();
}

void DeviceQueue::Add(std::function<void()> task) {
  absl::MutexLock lock(&mutex_);
  tasks_.push_back(std::move(task));
}

void DeviceQueue::Loop() {
  const auto work_or_stop = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return !tasks_.empty() || stopping_;
  };
  while (true) {
    std::function<void()> task;
    {
      absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(&work_or_stop));
      if (tasks_.empty()) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    task();
  }
}

}  // namespace txl
