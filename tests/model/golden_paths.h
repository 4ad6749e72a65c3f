#pragma once

// The golden model directories that the clone carries.

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>

namespace txl {

inline constexpr std::array<const char*, 19> kGoldenCases = {
    "cpw",
    "hf-adaptive",
    "hf-prelnorm-tied-r",
    "kimi-adaptive-div1",
    "kimi-adaptive-div2",
    "kimi-char",
    "kimi-char-embproj",
    "kimi-prelnorm",
    "kimi-samelength-clamp",
    "kimi-shaw",
    "kimi-shaw-clamp",
    "labml-char",
    "musicautobot",
    "nvidia-2019",
    "nvidia-adaptive",
    "nvidia-div1",
    "ptb-blog",
    "sorter",
    "thu"};

// The folder tests/ of the clone; ctest sets the variable.
inline std::string TestData() {
  const char* data = std::getenv("TXL_TEST_DATA");
  return data == nullptr ? "tests" : data;
}

inline std::string GoldenDirectory(const std::string& name) {
  return TestData() + "/golden/" + name;
}

// A case's name as GoogleTest wants parameter names: without dashes.
inline std::string GoldenParamName(std::string name) {
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

}  // namespace txl
