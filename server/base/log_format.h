#pragma once

// What a log line says and how it is written: as JSON for programs, or as text
// for people at a terminal.

#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace txl {

enum class LogSeverity { kDebug, kInfo, kWarning, kError };

// "DEBUG", "INFO", "WARNING", "ERROR".
absl::string_view LogSeverityName(LogSeverity severity);
// The name in any case; else InvalidArgument that lists the names.
absl::StatusOr<LogSeverity> ParseLogSeverity(absl::string_view name);

// A field's value: truth, a number or text.
class LogValue {
 public:
  using Variant = std::variant<bool, int64_t, uint64_t, double, std::string>;

  // Implicit, so that a call reads {{"tokens", 12}, {"reason", "DRAINING"}}.
  template <typename T, std::enable_if_t<std::is_arithmetic_v<T>, int> = 0>
  LogValue(T value)  // NOLINT(google-explicit-constructor)
      : value_(Widen(value)) {}
  LogValue(const char* text);        // NOLINT(google-explicit-constructor)
  LogValue(std::string text);        // NOLINT(google-explicit-constructor)
  LogValue(absl::string_view text);  // NOLINT(google-explicit-constructor)

  // Not inline: inlined copies of a variant make GCC 12 warn in every caller.
  LogValue(const LogValue&);
  LogValue(LogValue&&) noexcept;
  LogValue& operator=(const LogValue&);
  LogValue& operator=(LogValue&&) noexcept;
  ~LogValue();

  const Variant& value() const { return value_; }

 private:
  template <typename T>
  static auto Widen(T value) {
    if constexpr (std::is_same_v<T, bool>) {
      return value;
    } else if constexpr (std::is_floating_point_v<T>) {
      return static_cast<double>(value);
    } else if constexpr (std::is_unsigned_v<T>) {
      return static_cast<uint64_t>(value);
    } else {
      return static_cast<int64_t>(value);
    }
  }

  Variant value_;
};

using LogFields = std::vector<std::pair<std::string, LogValue>>;

// The line without its end. Bytes that are not UTF-8 become U+FFFD, control
// characters are escaped, numbers that are not finite become null: the line is
// always one JSON object.
std::string FormatLogLine(absl::Time time, LogSeverity severity,
                          absl::string_view event, const LogFields& fields);

// The line without its end:
//   12:00:00.000 WARNING turn_failed reason=STEP_FAILED rows=3
// The time is local; text with anything but letters, digits and plain signs is
// quoted and escaped: the line is always one line of printable ASCII.
std::string FormatLogText(absl::Time time, LogSeverity severity,
                          absl::string_view event, const LogFields& fields);

enum class LogFormat { kJson, kText };

// Lines from now on have this format. At start: kJson. Thread-safe.
void SetLogFormat(LogFormat format);
// The line in the format that was set.
std::string FormatLog(absl::Time time, LogSeverity severity,
                      absl::string_view event, const LogFields& fields);

}  // namespace txl
