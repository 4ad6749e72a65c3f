#pragma once

// Ctrl-C as an event: SIGINT ends what runs, not the program.

#include <atomic>
#include <thread>

#include "client/canceller.h"

namespace txl::cli {

// A descriptor that becomes readable with SIGINT. The first call installs the
// handler, for the rest of the process.
int InterruptFd();
// Forgets an interrupt that has come. True: there was one.
bool TakeInterrupt();

// While it lives, an interrupt cancels.
class CancelOnInterrupt {
 public:
  // `canceller` outlives the watch.
  explicit CancelOnInterrupt(Canceller* canceller);
  ~CancelOnInterrupt();
  CancelOnInterrupt(const CancelOnInterrupt&) = delete;
  CancelOnInterrupt& operator=(const CancelOnInterrupt&) = delete;

  // It did.
  bool interrupted() const { return interrupted_; }

 private:
  int stop_fd_;
  std::atomic<bool> interrupted_{false};
  std::thread thread_;
};

}  // namespace txl::cli
