#include "program/flag_checks.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <limits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "program/nearest_name.h"

namespace txl {
namespace {

// A bound as people write it: StrCat would round to six digits.
std::string Plain(double number) {
  const auto whole = static_cast<int64_t>(number);
  return static_cast<double>(whole) == number ? absl::StrCat(whole)
                                              : absl::StrCat(number);
}

CLI::Validator NumberThat(std::function<bool(double)> holds,
                          const std::string& description,
                          const std::string& must_be) {
  return CLI::Validator(
      [holds = std::move(holds), must_be](std::string& text) -> std::string {
        double value = 0;
        if (!absl::SimpleAtod(text, &value)) {
          return absl::StrCat("'", text, "' is no number");
        }
        return holds(value) ? "" : absl::StrCat(text, " is not ", must_be);
      },
      description);
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
        if (text.empty() ||
            text.find_first_not_of("+-0123456789") != std::string::npos) {
          return absl::StrCat("'", text, "' is no whole number");
        }
        int64_t value = 0;
        const bool fits = absl::SimpleAtoi(text, &value);
        if (fits && value >= low && value <= high) return "";
        return absl::StrCat(text, " is not in ", low, "..", high);
      },
      high < highest ? absl::StrCat(low, "..", high)
                     : absl::StrCat(">= ", low));
}

CLI::Validator OneOf(const std::vector<std::string>& names) {
  return CLI::Validator(
      [names](std::string& text) -> std::string {
        if (std::find(names.begin(), names.end(), text) != names.end()) {
          return "";
        }
        return absl::StrCat("'", text, "' is none of ",
                            absl::StrJoin(names, ", "),
                            DidYouMean(text, names));
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
        CLI::Validator in_bytes = CLI::AsSizeValue(/*kb_is_1000=*/false);
        int64_t bytes = 0;
        try {
          if (!in_bytes(text).empty() || !absl::SimpleAtoi(text, &bytes)) {
            return absl::StrCat("'", written, "' is no size like 64KiB");
          }
        } catch (const CLI::ValidationError&) {
          return absl::StrCat("'", written, "' is no size like 64KiB");
        }
        if (bytes >= low && bytes <= high) return "";
        return absl::StrCat(written, " is not ", bounded ? "in " : "", range);
      },
      absl::StrCat("SIZE, ", range));
}

}  // namespace txl
