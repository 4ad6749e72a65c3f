#include "model/tool/progress_bar.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <iostream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace txl {
namespace {

constexpr int kWidth = 20;  // marks of the bar
constexpr double kRedrawSeconds = 0.2;
constexpr double kShareOfALine = 0.1;  // where there is no terminal

}  // namespace

std::string ProgressLine(const Progress& progress) {
  const double share = std::clamp(progress.share, 0.0, 1.0);
  const int marks = static_cast<int>(share * kWidth);
  std::string line = absl::StrFormat("[%s%s] %3d%%", std::string(marks, '#'),
                                     std::string(kWidth - marks, '-'),
                                     static_cast<int>(share * 100));
  if (share > 0 && progress.seconds > 0) {
    const int64_t left = std::llround(progress.seconds * (1 - share) / share);
    absl::StrAppendFormat(&line, "  %.0f %s/s  %d:%02d left",
                          progress.done / progress.seconds, progress.unit,
                          left / 60, left % 60);
  }
  if (!progress.note.empty()) absl::StrAppend(&line, "  ", progress.note);
  return line;
}

ProgressBar::ProgressBar(std::string unit)
    : unit_(std::move(unit)),
      on_terminal_(isatty(STDERR_FILENO) == 1),
      start_(std::chrono::steady_clock::now()) {}

ProgressBar::~ProgressBar() {
  if (line_open_) std::cerr << "\n";
}

void ProgressBar::Update(double share, double done, absl::string_view note) {
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start_)
          .count();
  const double since =
      on_terminal_ ? seconds - last_drawn_ : share - std::max(last_drawn_, 0.0);
  if (since < (on_terminal_ ? kRedrawSeconds : kShareOfALine)) return;
  last_drawn_ = on_terminal_ ? seconds : share;
  const std::string line =
      ProgressLine({share, done, seconds, unit_, std::string(note)});
  if (on_terminal_) {
    std::cerr << "\r" << line << "\x1b[K" << std::flush;
    line_open_ = true;
  } else {
    std::cerr << line << "\n";
  }
}

namespace {

std::atomic<bool> interrupted = false;
static_assert(std::atomic<bool>::is_always_lock_free);

void OnSignal(int signal) {
  interrupted = true;
  std::signal(signal, SIG_DFL);
}

}  // namespace

const std::atomic<bool>& InterruptFlag() {
  static const bool installed = [] {
    std::signal(SIGINT, OnSignal);
    std::signal(SIGTERM, OnSignal);
    return true;
  }();
  static_cast<void>(installed);
  return interrupted;
}

bool WasInterrupted() { return interrupted; }

}  // namespace txl
