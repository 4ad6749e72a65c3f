#include "model/tool/interrupt.h"

#include <csignal>

namespace txl {
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
