#pragma once

// SIGTERM and SIGINT as a request to drain; the second one ends the process
// with kExitForced. SIGHUP as a request to read files again. SIGUSR1 and
// SIGUSR2 are ignored, with a line in the log, as is SIGHUP while there is
// nothing to read.

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
  void WaitForRequest();
  // Acts like the first signal. Does nothing if a signal has come. Thread-safe.
  void RequestDrain();
  // Called, on a thread of its own, for every SIGHUP from now on; says whether
  // there was something to read. Null: nothing is called any more. Waits for a
  // call that runs.
  void OnReload(std::function<bool()> reload);

 private:
  struct State;
  State* const state_;  // never deleted: the thread outlives main
};

// Exit codes of txl-server, for supervisors (docs/operating.md).

enum ExitCode : int {
  kExitDrained = 0,      // SIGTERM, and every turn ended; or it only printed
  kExitCannotStart = 1,  // model, address, device, memory
  kExitUsage = 2,        // flags, variables, the configuration file
  kExitForced = 3,       // a second SIGTERM, or the drain's last limit
  kExitNotServing = 4,   // it could not serve any more: start it again
};

}  // namespace txl
