#pragma once

#include <filesystem>
#include <string>

namespace txl {

// The whole content of a file, of /proc and /sys too, whose sizes say nothing.
// Empty where it cannot be read.
std::string ReadTextFile(const std::filesystem::path& file);

// What tells one version of a file from another: a new file has another inode,
// one that was written over or has another mode another time of change. Empty
// where there is none.
std::string FileVersion(const std::filesystem::path& file);

}  // namespace txl
