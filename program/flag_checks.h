#pragma once

// Checks of flag values whose descriptions people can read: --help shows what
// stands behind each, and an error says what must be. Bounds are included
// unless said otherwise.

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace txl {

CLI::Validator Between(double low, double high);  // "0..1"
CLI::Validator AtLeast(double low);               // ">= 0"
CLI::Validator Above(double low);                 // "> 0", not included

// A whole number, which becomes plain digits (number_text.h): "1..64", or
// ">= 1" where `high` is that of the flag's type.
CLI::Validator WholeBetween(int64_t low, int64_t high, int64_t highest);

// One of the names in any case, which becomes the name as it is listed, where
// the option takes it by transform: "poisson|constant".
CLI::Validator OneOf(const std::vector<std::string>& names);

// "64KiB" of 65536: the largest unit that divides it.
std::string FormatSize(int64_t bytes);
// A number of bytes, also with a unit in any case (64KiB, 2GB: powers of 1024
// both), which becomes the plain number: "SIZE, 1KiB..1TiB", or "SIZE, >= 1KiB"
// where every int64 above is good.
CLI::Validator SizeBetween(int64_t low, int64_t high);

// One of the names, which becomes its value: for enumerations.
CLI::Validator NumberedNames(
    const std::vector<std::pair<std::string, int64_t>>& names);
template <typename Enum>
CLI::Validator OneOf(const std::vector<std::pair<std::string, Enum>>& names) {
  std::vector<std::pair<std::string, int64_t>> numbered;
  for (const auto& [name, value] : names) {
    numbered.emplace_back(name, static_cast<int64_t>(value));
  }
  return NumberedNames(numbered);
}

}  // namespace txl
