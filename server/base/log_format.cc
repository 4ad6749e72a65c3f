#include "server/base/log_format.h"

#include <atomic>
#include <nlohmann/json.hpp>
#include <variant>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace txl {
namespace {

using Json = nlohmann::ordered_json;

std::atomic<LogFormat> g_format{LogFormat::kJson};

bool IsPlain(absl::string_view text) {
  for (const char c : text) {
    if (!absl::ascii_isalnum(c) && !absl::StrContains("._-+:/[]", c)) {
      return false;
    }
  }
  return !text.empty();
}

struct Shown {
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(const std::string& text) const {
    return IsPlain(text) ? text
                         : absl::StrCat("\"", absl::CHexEscape(text), "\"");
  }
  template <typename Number>
  std::string operator()(Number value) const {
    return absl::StrCat(value);
  }
};

}  // namespace

LogValue::LogValue(const char* text) : value_(std::string(text)) {}
LogValue::LogValue(std::string text) : value_(std::move(text)) {}
LogValue::LogValue(absl::string_view text) : value_(std::string(text)) {}
LogValue::LogValue(const LogValue&) = default;
LogValue::LogValue(LogValue&&) noexcept = default;
LogValue& LogValue::operator=(const LogValue&) = default;
LogValue& LogValue::operator=(LogValue&&) noexcept = default;
LogValue::~LogValue() = default;

absl::string_view LogSeverityName(LogSeverity severity) {
  switch (severity) {
    case LogSeverity::kDebug:
      return "DEBUG";
    case LogSeverity::kInfo:
      return "INFO";
    case LogSeverity::kWarning:
      return "WARNING";
    case LogSeverity::kError:
      return "ERROR";
  }
  return "ERROR";
}

absl::StatusOr<LogSeverity> ParseLogSeverity(absl::string_view name) {
  const std::string upper = absl::AsciiStrToUpper(name);
  for (const LogSeverity severity :
       {LogSeverity::kDebug, LogSeverity::kInfo, LogSeverity::kWarning,
        LogSeverity::kError}) {
    if (upper == LogSeverityName(severity)) return severity;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "log level \"", name, "\" is none of debug, info, warning, error"));
}

std::string FormatLogLine(absl::Time time, LogSeverity severity,
                          absl::string_view event, const LogFields& fields) {
  Json json_fields = Json::object();
  for (const auto& [name, value] : fields) {
    Json& json = json_fields[name];
    std::visit([&json](const auto& plain) { json = plain; }, value.value());
  }
  const Json line = {{"time", absl::FormatTime("%Y-%m-%dT%H:%M:%E6SZ", time,
                                               absl::UTCTimeZone())},
                     {"severity", std::string(LogSeverityName(severity))},
                     {"event", std::string(event)},
                     {"fields", std::move(json_fields)}};
  return line.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void SetLogFormat(LogFormat format) {
  g_format.store(format, std::memory_order_relaxed);
}

std::string FormatLogText(absl::Time time, LogSeverity severity,
                          absl::string_view event, const LogFields& fields) {
  std::string line =
      absl::StrCat(absl::FormatTime("%H:%M:%E3S", time, absl::LocalTimeZone()),
                   " ", LogSeverityName(severity), " ", event);
  for (const auto& [name, value] : fields) {
    absl::StrAppend(&line, " ", name, "=", std::visit(Shown(), value.value()));
  }
  return line;
}

std::string FormatLog(absl::Time time, LogSeverity severity,
                      absl::string_view event, const LogFields& fields) {
  return g_format.load(std::memory_order_relaxed) == LogFormat::kText
             ? FormatLogText(time, severity, event, fields)
             : FormatLogLine(time, severity, event, fields);
}

}  // namespace txl
