#pragma once

// Memory by whole pages, for what is streamed through.

#include <cstddef>

namespace txl {

inline constexpr size_t kHugePage = size_t{2} << 20;

// `bytes` > 0 zeroed bytes, whose pages are taken from the system when they are
// first written. Huge ones are asked for: there are 512 times fewer to take,
// and to look up. Throws std::bad_alloc.
void* MapPages(size_t bytes);
void UnmapPages(void* memory, size_t bytes) noexcept;

}  // namespace txl
