#include "server/signals.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "server/base/log.h"

namespace txl {

struct SignalWaiter::State {
  sigset_t signals;
  std::atomic<bool> serving{false};
  absl::Notification requested;
  absl::Mutex mutex;
  std::function<bool()> reload ABSL_GUARDED_BY(mutex);

  absl::Mutex request_mutex;

  // False: it has been requested before.
  bool Request() {
    absl::MutexLock lock(&request_mutex);
    if (requested.HasBeenNotified()) return false;
    requested.Notify();
    return true;
  }

  // Whether there was something to read again.
  bool Reload() {
    absl::MutexLock lock(&mutex);
    return reload != nullptr && reload();
  }

  void Loop() {
    while (true) {
      int signal = 0;
      sigwait(&signals, &signal);
      if (signal == SIGHUP && Reload()) continue;
      if (signal != SIGTERM && signal != SIGINT) {
        // A terminal that closes ends nothing.
        Log(LogSeverity::kInfo, "ignored",
            {{"signal", absl::StrCat("SIG", sigabbrev_np(signal))}});
        continue;
      }
      if (!serving.load()) _exit(kExitDrained);
      if (Request()) continue;
      Log(LogSeverity::kWarning, "exit", {{"forced", true}});
      FlushLog(kLastFlush);
      _exit(kExitForced);
    }
  }
};

SignalWaiter::SignalWaiter() : state_(new State) {
  signal(SIGPIPE, SIG_IGN);  // a closed standard output must not end us
  sigemptyset(&state_->signals);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2}) {
    sigaddset(&state_->signals, signal);
  }
  // Threads that are started later inherit the mask.
  pthread_sigmask(SIG_BLOCK, &state_->signals, nullptr);
  std::thread([state = state_] { state->Loop(); }).detach();
}

void SignalWaiter::StartServing() { state_->serving.store(true); }

void SignalWaiter::OnReload(std::function<bool()> reload) {
  absl::MutexLock lock(&state_->mutex);
  state_->reload = std::move(reload);
}

void SignalWaiter::RequestDrain() { state_->Request(); }

void SignalWaiter::WaitForRequest() { state_->requested.WaitForNotification(); }

}  // namespace txl
