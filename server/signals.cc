#include "server/signals.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>

namespace txl {

struct SignalWaiter::State {
  sigset_t signals;
  std::atomic<bool> serving{false};
  absl::Notification requested;

  void Loop() {
    while (true) {
      int signal = 0;
      sigwait(&signals, &signal);
      if (!serving.load()) _exit(0);
      if (requested.HasBeenNotified()) _exit(1);
      requested.Notify();
    }
  }
};

SignalWaiter::SignalWaiter() : state_(new State) {
  signal(SIGPIPE, SIG_IGN);  // a closed standard output must not end us
  sigemptyset(&state_->signals);
  sigaddset(&state_->signals, SIGTERM);
  sigaddset(&state_->signals, SIGINT);
  // Threads that are started later inherit the mask.
  pthread_sigmask(SIG_BLOCK, &state_->signals, nullptr);
  std::thread([state = state_] { state->Loop(); }).detach();
}

void SignalWaiter::StartServing() { state_->serving.store(true); }

void SignalWaiter::WaitForRequest() { state_->requested.WaitForNotification(); }

}  // namespace txl
