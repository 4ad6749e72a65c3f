#include "program/number_text.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"

namespace txl {

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
