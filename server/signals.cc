#include "server/signals.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "server/base/log.h"
#include "server/exit_code.h"

namespace txl {

struct SignalWaiter::State {
  sigset_t signals;
  std::atomic<bool> serving{false};
  absl::Notification requested;
  absl::Mutex mutex;
  std::function<void()> hangup ABSL_GUARDED_BY(mutex);

  void Loop() {
    while (true) {
      int signal = 0;
      sigwait(&signals, &signal);
      if (signal == SIGHUP) {
        absl::MutexLock lock(&mutex);
        // A terminal that closes ends nothing.
        Log(LogSeverity::kInfo, "hangup", {{"signal", "SIGHUP"}});
        if (hangup != nullptr) hangup();
        continue;
      }
      if (signal != SIGTERM && signal != SIGINT) {
        Log(LogSeverity::kInfo, "ignored",
            {{"signal", absl::StrCat("SIG", sigabbrev_np(signal))}});
        continue;
      }
      if (!serving.load()) _exit(kExitDrained);
      if (requested.HasBeenNotified()) {
        Log(LogSeverity::kWarning, "exit", {{"forced", true}});
        FlushLog(kLastFlush);
        _exit(kExitForced);
      }
      requested.Notify();
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

void SignalWaiter::OnHangup(std::function<void()> act) {
  absl::MutexLock lock(&state_->mutex);
  state_->hangup = std::move(act);
}

void SignalWaiter::WaitForRequest() { state_->requested.WaitForNotification(); }

}  // namespace txl
