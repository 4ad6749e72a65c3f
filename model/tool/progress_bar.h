#pragma once

// How far a long command is, on standard error: on a terminal one line that is
// redrawn, elsewhere a line for each tenth.

#include <atomic>
#include <chrono>
#include <string>

#include "absl/strings/string_view.h"

namespace txl {

struct Progress {
  double share = 0;    // done, in [0, 1]
  double done = 0;     // in units
  double seconds = 0;  // since the start
  std::string unit;    // "tokens"
  std::string note;    // behind the line; may be empty
};

// "[#####---------------]  25%  1200 tokens/s  0:42 left  1.6375 nats"; without
// rate and time before anything is done.
std::string ProgressLine(const Progress& progress);

// Starts the clock at construction; ends its line at destruction.
class ProgressBar {
 public:
  explicit ProgressBar(std::string unit);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  void Update(double share, double done, absl::string_view note);

 private:
  const std::string unit_;
  const bool on_terminal_;
  const std::chrono::steady_clock::time_point start_;
  double last_drawn_ = -1;  // seconds (terminal) or share
  bool line_open_ = false;
};

// SIGINT and SIGTERM as a flag, so that long commands end at a safe border.

// Installs the handlers on the first call; a second signal then ends the
// process at once, as by default.
const std::atomic<bool>& InterruptFlag();
// Whether one came since then.
bool WasInterrupted();

}  // namespace txl
