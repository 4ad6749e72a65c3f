#pragma once

// What the host has left, and memory of its own by whole pages.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace txl {

// Bytes that this process can still take without swapping: what Linux says is
// available (proc(5), MemAvailable), or less where a cgroup, version 1 or 2,
// limits this process or a cgroup above it; pages of files that the cgroup can
// give back are not counted as used. `root`: of the file system. Nothing
// where it does not say, as outside Linux.
std::optional<int64_t> AvailableHostBytes(const std::string& root = "/");

// What a process that has `resident` bytes may take in all where the host has
// `available` bytes left: all but a sixteenth, for the kernel's part (sockets,
// page tables) and other programs. 4 GiB where nothing is known.
int64_t UsualMemoryLimit(std::optional<int64_t> available, int64_t resident);

// Bytes for slots on a host, or in LibTorch's care on a device, that has
// `available` bytes left and is still to pack `weight_bytes`: half of the rest,
// >= 0, since sessions without a slot, a step's tensors and other programs need
// memory as well. 1 GiB where nothing is known.
int64_t UsualSlotBytes(std::optional<int64_t> available, int64_t weight_bytes);

// Memory by whole pages, for what is streamed through.

inline constexpr size_t kHugePage = size_t{2} << 20;

// `bytes` > 0 zeroed bytes, whose pages are taken from the system when they are
// first written. `huge`: huge ones are asked for, of which there are 512 times
// fewer to take and to look up; not where only parts are written. Throws
// std::bad_alloc.
void* MapPages(size_t bytes, bool huge = true);
void UnmapPages(void* memory, size_t bytes) noexcept;

}  // namespace txl
