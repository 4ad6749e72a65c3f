#pragma once

// SIGINT and SIGTERM as a flag, so that long commands end at a safe border.

#include <atomic>

namespace txl {

// Installs the handlers on the first call; a second signal then ends the
// process at once, as by default.
const std::atomic<bool>& InterruptFlag();
// Whether one came since then.
bool WasInterrupted();

}  // namespace txl
