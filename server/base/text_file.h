#pragma once

#include <filesystem>
#include <string>

namespace txl {

// The whole content of a file, of /proc and /sys too, whose sizes say nothing.
// Empty where it cannot be read.
std::string ReadTextFile(const std::filesystem::path& file);

}  // namespace txl
