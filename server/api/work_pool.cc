#include "server/api/work_pool.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"

namespace txl {
namespace {

// Where processors are short, running streams and gRPC's threads go first.
constexpr int kNice = 5;

void LowerPriority() {
  // On Linux the priority is the thread's own. It is a preference: that it
  // cannot be set harms nobody.
  (void)setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)),
                    kNice);
}

}  // namespace

int WorkThreads(int cores) { return std::clamp(cores / 2, 1, 8); }

absl::Status OverloadedError(absl::string_view message, absl::Duration retry) {
  ErrorDetails details;
  details.reason = "OVERLOADED";
  details.retry = retry;
  return MakeError(absl::StatusCode::kResourceExhausted, message, details);
}

WorkPool::WorkPool(const WorkPoolOptions& options, Clock* clock)
    : options_(options),
      clock_(clock),
      queue_(static_cast<size_t>(options.longest_queue)) {
  for (int i = 0; i < options.threads; ++i) {
    threads_.emplace_back([this] { Loop(); });
  }
}

WorkPool::~WorkPool() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  for (std::thread& thread : threads_) thread.join();
}

void WorkPool::Run(const std::string& peer, Task task) {
  std::optional<Waiting> dropped;
  {
    absl::MutexLock lock(&mutex_);
    dropped = queue_.Push(peer, {std::move(task), clock_->Monotonic()});
    if (dropped.has_value()) ++counts_.refused;
    counts_.queued = static_cast<int64_t>(queue_.size());
  }
  if (!dropped.has_value()) return;
  dropped->task(
      OverloadedError(absl::StrCat("more than ", options_.longest_queue,
                                   " requests wait to be read"),
                      options_.retry_after));
}

WorkCounts WorkPool::counts() const {
  absl::MutexLock lock(&mutex_);
  return counts_;
}

void WorkPool::Loop() {
  LowerPriority();
  const auto ready = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return stopping_ || !queue_.empty();
  };
  while (true) {
    std::optional<Waiting> next;
    bool late;
    {
      absl::MutexLock lock(&mutex_, absl::Condition(&ready));
      if (queue_.empty()) return;
      next = queue_.Pop();
      late = clock_->Monotonic() - next->since > options_.longest_wait;
      counts_.queued = static_cast<int64_t>(queue_.size());
      ++(late ? counts_.refused : counts_.running);
    }
    if (late) {
      next->task(OverloadedError(
          absl::StrCat("the request waited for more than ",
                       absl::FormatDuration(options_.longest_wait)),
          options_.retry_after));
      continue;
    }
    next->task(absl::OkStatus());
    next.reset();  // what it holds is let go before it counts as done
    absl::MutexLock lock(&mutex_);
    --counts_.running;
    ++counts_.done;
  }
}

}  // namespace txl
