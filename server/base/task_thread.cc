#include "server/base/task_thread.h"

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

}  // namespace txl
