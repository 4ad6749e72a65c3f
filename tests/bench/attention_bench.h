#pragma once

// Attention of one layer over full memories: form, format of what is read,
// memory length, sessions.

#include "tests/bench/machine_peaks.h"

namespace txl {

// Registers "Attention/...". `peaks` outlives the benchmarks.
void RegisterAttention(const MachinePeaks& peaks);

}  // namespace txl
