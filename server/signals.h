#pragma once

// SIGTERM and SIGINT as a request to drain; the second one ends the process
// with kExitForced. SIGHUP asks to look at files again; SIGUSR1 and SIGUSR2 are
// ignored, with a line in the log.

#include <functional>
#include <thread>

#include "absl/synchronization/notification.h"

namespace txl {

// Make one at the start of main, before any other thread.
class SignalWaiter {
 public:
  SignalWaiter();

  // From now on the first signal is a request (WaitForRequest); before, it ends
  // the process with status 0, because nothing is served yet.
  void StartServing();
  // What SIGHUP does, on the signals' thread; before, and with null, nothing.
  // Returns when no earlier one runs.
  void OnHangup(std::function<void()> act);
  void WaitForRequest();

 private:
  struct State;
  State* const state_;  // never deleted: the thread outlives main
};

}  // namespace txl
