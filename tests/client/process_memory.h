#pragma once

// Memory of a process as the kernel counts it.

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace txl::testing {

// Bytes of memory of a process's own, from the text of its /proc/PID/status:
// anonymous pages, in memory or swapped out. Pages of files (the program,
// libraries, weights that are mapped) come and go as the kernel likes and do
// not count. -1 where the text does not say.
int64_t OwnBytesIn(const std::string& status);

// Now. Fails the test, and is -1, where the process is not there.
int64_t OwnBytes(pid_t pid);

}  // namespace txl::testing
