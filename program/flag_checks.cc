#include "program/flag_checks.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <limits>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "program/nearest_name.h"

namespace txl {
namespace {

// A bound as people write it: StrCat would round to six digits.
std::string Plain(double number) {
  const auto whole = static_cast<int64_t>(number);
  return static_cast<double>(whole) == number ? absl::StrCat(whole)
                                              : absl::StrCat(number);
}

template <typename Low, typename High>
std::string NotIn(const std::string& written, Low low, High high) {
  return absl::StrCat(written, " is not in ", low, "..", high);
}

CLI::Validator NumberThat(std::function<bool(double)> holds,
                          const std::string& description,
                          const std::string& must_be) {
  return CLI::Validator(
      [holds = std::move(holds), must_be](std::string& text) -> std::string {
        const std::optional<double> value = FiniteNumber(text);
        if (!value.has_value()) {
          return absl::StrCat("'", text, "' is not a number");
        }
        return holds(*value) ? "" : absl::StrCat(text, " is not ", must_be);
      },
      description);
}

// Bytes of "64KiB", "1.5 GB" or a plain number. Absent: it is no size, or more
// than an int64 holds.
std::optional<int64_t> SizeOf(absl::string_view text) {
  constexpr absl::string_view kPowers = "bkmgtpe";
  constexpr double kTooMany = 9223372036854775808.0;  // 2^63
  const size_t end = text.find_last_of("0123456789.") + 1;
  const std::string unit = absl::AsciiStrToLower(
      absl::StripLeadingAsciiWhitespace(text.substr(end)));
  if (unit.empty() && end < text.size()) return std::nullopt;
  size_t power = 0;
  if (!unit.empty()) {
    power = kPowers.find(unit[0]);
    const std::string rest = unit.substr(1);
    const bool known =
        power == 0 ? rest.empty()
                   : rest.empty() || rest == "b" || rest == "i" || rest == "ib";
    if (power == absl::string_view::npos || !known) return std::nullopt;
  }
  const absl::string_view number = text.substr(0, end);
  int64_t whole = 0;
  if (const auto digits = WholeDigits(number);
      digits.has_value() && power == 0) {
    if (absl::SimpleAtoi(*digits, &whole)) return whole;
    return std::nullopt;
  }
  const std::optional<double> value = FiniteNumber(number);
  if (!value.has_value()) return std::nullopt;
  // A power of two: exact.
  const double bytes = std::ldexp(*value, 10 * static_cast<int>(power));
  if (std::abs(bytes) >= kTooMany || std::trunc(bytes) != bytes) {
    return std::nullopt;
  }
  return static_cast<int64_t>(bytes);
}

}  // namespace

CLI::Validator Between(double low, double high) {
  return NumberThat(
      [low, high](double value) { return value >= low && value <= high; },
      absl::StrCat(Plain(low), "..", Plain(high)),
      absl::StrCat("in ", Plain(low), "..", Plain(high)));
}

CLI::Validator AtLeast(double low) {
  return NumberThat([low](double value) { return value >= low; },
                    absl::StrCat(">= ", Plain(low)),
                    absl::StrCat("at least ", Plain(low)));
}

CLI::Validator Above(double low) {
  return NumberThat([low](double value) { return value > low; },
                    absl::StrCat("> ", Plain(low)),
                    absl::StrCat("above ", Plain(low)));
}

CLI::Validator WholeBetween(int64_t low, int64_t high, int64_t highest) {
  return CLI::Validator(
      [low, high](std::string& text) -> std::string {
        const std::string written = text;
        const std::optional<std::string> digits = WholeDigits(text);
        if (!digits.has_value()) {
          return absl::StrCat("'", written, "' is not a whole number");
        }
        text = *digits;
        int64_t value = 0;
        const bool fits = absl::SimpleAtoi(text, &value);
        if (fits && value >= low && value <= high) return "";
        return NotIn(written, low, high);
      },
      high < highest ? absl::StrCat(low, "..", high)
                     : absl::StrCat(">= ", low));
}

CLI::Validator OneOf(const std::vector<std::string>& names) {
  return CLI::Validator(
      [names](std::string& text) -> std::string {
        for (const std::string& name : names) {
          if (!absl::EqualsIgnoreCase(name, text)) continue;
          text = name;
          return "";
        }
        return absl::StrCat("'", text, "' is not one of ",
                            absl::StrJoin(names, ", "),
                            DidYouMean(absl::AsciiStrToLower(text), names));
      },
      absl::StrJoin(names, "|"));
}

CLI::Validator NumberedNames(
    const std::vector<std::pair<std::string, int64_t>>& names) {
  std::vector<std::string> known;
  for (const auto& [name, value] : names) known.push_back(name);
  CLI::Validator check = OneOf(known);
  return CLI::Validator(
      [names, check](std::string& text) -> std::string {
        const std::string error = check(text);
        for (const auto& [name, value] : names) {
          if (name == text) {
            text = absl::StrCat(value);
            break;
          }
        }
        return error;
      },
      absl::StrJoin(known, "|"));
}

std::string FormatSize(int64_t bytes) {
  constexpr const char* kUnits[] = {"", "KiB", "MiB", "GiB", "TiB", "PiB"};
  size_t unit = 0;
  while (unit + 1 < std::size(kUnits) && bytes != 0 && bytes % 1024 == 0) {
    bytes /= 1024;
    ++unit;
  }
  return absl::StrCat(bytes, kUnits[unit]);
}

CLI::Validator SizeBetween(int64_t low, int64_t high) {
  const bool bounded = high < std::numeric_limits<int64_t>::max();
  const std::string range =
      bounded ? absl::StrCat(FormatSize(low), "..", FormatSize(high))
              : absl::StrCat(">= ", FormatSize(low));
  return CLI::Validator(
      [low, high, bounded, range](std::string& text) -> std::string {
        const std::string written = text;
        const std::optional<int64_t> bytes = SizeOf(text);
        if (!bytes.has_value()) {
          return absl::StrCat("'", written, "' is not a size like 64KiB");
        }
        text = absl::StrCat(*bytes);
        if (*bytes >= low && *bytes <= high) return "";
        return absl::StrCat(written, " is not ", bounded ? "in " : "", range);
      },
      absl::StrCat("SIZE, ", range));
}

CLI::Validator PlainNumber(bool whole, bool may_be_negative) {
  return CLI::Validator(
      [whole, may_be_negative](std::string& text) -> std::string {
        if (!whole) {
          return FiniteNumber(text).has_value()
                     ? ""
                     : absl::StrCat("'", text, "' is not a number");
        }
        const std::optional<std::string> digits = WholeDigits(text);
        if (!digits.has_value()) {
          return absl::StrCat("'", text, "' is not a whole number");
        }
        if (!may_be_negative && digits->front() == '-') {
          return absl::StrCat(text, " is negative");
        }
        text = *digits;
        return "";
      },
      "");
}

CLI::Validator In64Bits(bool may_be_negative) {
  return CLI::Validator(
      [may_be_negative](const std::string& digits) -> std::string {
        int64_t number = 0;
        uint64_t natural = 0;
        if (may_be_negative ? absl::SimpleAtoi(digits, &number)
                            : absl::SimpleAtoi(digits, &natural)) {
          return "";
        }
        return may_be_negative
                   ? NotIn(digits, std::numeric_limits<int64_t>::min(),
                           std::numeric_limits<int64_t>::max())
                   : NotIn(digits, 0, std::numeric_limits<uint64_t>::max());
      },
      "");
}

std::optional<double> FiniteNumber(absl::string_view text) {
  double value = 0;
  if (text.find_first_not_of("+-.0123456789eE") != absl::string_view::npos ||
      !absl::SimpleAtod(text, &value) || !std::isfinite(value)) {
    return std::nullopt;
  }
  return value;
}

std::optional<std::string> WholeDigits(absl::string_view text) {
  absl::string_view digits = text;
  const bool negative = absl::ConsumePrefix(&digits, "-");
  if (!negative) absl::ConsumePrefix(&digits, "+");
  if (!digits.empty() &&
      std::all_of(digits.begin(), digits.end(), absl::ascii_isdigit)) {
    const size_t first = digits.find_first_not_of('0');
    if (first == absl::string_view::npos) return "0";
    return absl::StrCat(negative ? "-" : "", digits.substr(first));
  }
  const std::optional<double> value = FiniteNumber(text);
  if (!value.has_value() || std::trunc(*value) != *value) return std::nullopt;
  return *value == 0 ? "0" : absl::StrFormat("%.0f", *value);
}

}  // namespace txl
