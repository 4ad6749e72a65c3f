#include "server/signals.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "server/base/log.h"
#include "server/exit_code.h"

namespace txl {

struct SignalWaiter::State {
  sigset_t signals;
  std::atomic<bool> serving{false};
  absl::Notification requested;

  void Loop() {
    while (true) {
      int signal = 0;
      sigwait(&signals, &signal);
      if (signal != SIGTERM && signal != SIGINT) {
        // Nothing can be read again yet; a terminal that closes ends nothing.
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

void SignalWaiter::WaitForRequest() { state_->requested.WaitForNotification(); }

}  // namespace txl
