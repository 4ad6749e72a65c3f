#pragma once

// Checks of flag values whose descriptions people can read: --help shows what
// stands behind each, and an error says what must be. Bounds are included
// unless said otherwise.

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace txl {

CLI::Validator Between(double low, double high);  // "0..1"
CLI::Validator AtLeast(double low);               // ">= 0"
CLI::Validator Above(double low);                 // "> 0", not included

// The most that --threads of any program may name: LibTorch crashes with far
// more.
inline constexpr int kMaxThreads = 1024;

// A whole number, which becomes plain digits: "1..64", or
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

// A number in the form that CLI11 reads as it is meant: it takes 010 for eight,
// and -1 of an unsigned for the largest.
CLI::Validator PlainNumber(bool whole, bool may_be_negative);

// A number that 64 bits hold, in the digits that PlainNumber leaves. CLI11
// reads a larger number as the largest.
CLI::Validator In64Bits(bool may_be_negative);

// A flag with numbers between commas, "5,10,20", each of which passes `each`. A
// missing number, as in "5,,20", is an error: CLI11's own lists drop it.
template <typename Number>
CLI::Option* AddNumbers(CLI::App& app, const std::string& flag,
                        std::vector<Number>* numbers, const std::string& help,
                        const CLI::Validator& each = {}) {
  const auto read = [flag, numbers, each](const std::string& list) {
    numbers->clear();
    for (std::string item :
         std::vector<std::string>(absl::StrSplit(list, ','))) {
      std::string wrong = PlainNumber(std::is_integral_v<Number>,
                                      std::is_signed_v<Number>)(item);
      if (wrong.empty()) wrong = each(item);
      if (wrong.empty() && std::is_integral_v<Number>) {
        wrong = In64Bits(std::is_signed_v<Number>)(item);
      }
      if (wrong.empty() &&
          !CLI::detail::lexical_cast(item, numbers->emplace_back())) {
        wrong = item + " is too large";
      }
      if (!wrong.empty()) throw CLI::ValidationError(flag, wrong);
    }
  };
  return app.add_option_function<std::string>(flag, read, help)
      ->type_name("N,N,...");
}

// Numbers as settings have them: read alike in flags, environment variables and
// configuration files.

// A finite decimal number: "5", "+5", "0.5", "1e3". Absent for anything else:
// nothing, spaces around it, hexadecimal digits, "inf", "nan", and what a
// double cannot hold.
std::optional<double> FiniteNumber(absl::string_view text);

// A number as above that is whole, of any size, as plain digits without a plus
// sign or leading zeros: "1000" of "1e3", "8" of "08". Absent for others.
std::optional<std::string> WholeDigits(absl::string_view text);

}  // namespace txl
