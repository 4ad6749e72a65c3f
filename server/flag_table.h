#pragma once

// Flags as a table: one entry gives a command line option (CLI11), an
// environment variable and a key of the configuration file.
//
// CLI11 can read environment and files itself, but takes the file before the
// environment; here a file's value is taken last, through the same conversion
// and the same checks as the flag.

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "program/flag_checks.h"

namespace txl {

inline constexpr int64_t kMaxConfigBytes = 1 << 20;

class FlagTable {
 public:
  explicit FlagTable(const std::string& description);

  // Flags from here on stand under this title.
  void Group(const std::string& title) { group_ = title; }

  // `target` holds the default and outlives the table. Names without dashes.
  CLI::Option* Text(const std::string& name, std::string* target,
                    const std::string& help);
  // One of `names`, in any case.
  void Choice(const std::string& name, std::string* target,
              const std::vector<std::string>& names, const std::string& help);
  // Whole numbers in [low, high]; program/number_text.h says how they are read.
  template <typename Int>
  void Number(const std::string& name, Int* target, int64_t low, int64_t high,
              const std::string& help);
  // "64KiB", "1GiB", or a plain number.
  void Bytes(const std::string& name, int64_t* target, int64_t low,
             int64_t high, const std::string& help);
  // "90s", "1h30m", "0".
  void Duration(const std::string& name, absl::Duration* target,
                absl::Duration low, absl::Duration high,
                const std::string& help);
  // A number that need not be whole, in [low, high].
  void Real(const std::string& name, double* target, double low, double high,
            const std::string& help);
  // On where it is named; with a value, of the environment and the file too:
  // true, false, yes, no, on, off, 1 or 0.
  void Bool(const std::string& name, bool* target, const std::string& help);
  // A switch of the command line only.
  void Switch(const std::string& name, bool* target, const std::string& help);

  // Command line and environment. InvalidArgument naming the flag or the
  // variable, also a TXL_ variable that is no setting (setting_names.h);
  // Cancelled with the text when one was asked for: help, the version, a
  // completion script, the manual page.
  absl::Status Parse(std::vector<std::string> arguments);
  // Values for flags that neither the command line nor the environment set.
  // Texts have to be strings; numbers and truth values may be. InvalidArgument
  // naming the key, also for one that is no flag, or the file where it is no
  // regular one, above kMaxConfigBytes or not UTF-8.
  absl::Status ApplyFile(const std::string& path);
  // Flags that must have a value have one. InvalidArgument naming the flag.
  absl::Status CheckRequired(const std::vector<std::string>& names) const;

  // Whether the command line, the environment or the file gave it a value.
  bool Has(const std::string& name) const;

  // The values as a configuration file.
  std::string ToToml() const;

 private:
  CLI::Option* Add(const std::string& name, CLI::Option* option,
                   std::function<std::string()> show);
  absl::Status CheckEnvironment() const;
  // Names as `name` makes them of an option; no empty ones.
  std::vector<std::string> Names(
      const std::function<std::string(const CLI::Option*)>& name) const;

  CLI::App app_;
  std::string group_;
  // Flag and its value as TOML, in the order of definition.
  std::vector<std::pair<CLI::Option*, std::function<std::string()>>> entries_;
};

// TXL_SESSION_TTL of "session-ttl".
std::string EnvironmentName(const std::string& flag);

template <typename Int>
void FlagTable::Number(const std::string& name, Int* target, int64_t low,
                       int64_t high, const std::string& help) {
  // Through int64, so that a number too big for Int is out of range, not
  // wrapped.
  auto* option = app_.add_option_function<int64_t>(
      "--" + name,
      [target](int64_t value) { *target = static_cast<Int>(value); }, help);
  option->transform(WholeBetween(low, high, std::numeric_limits<Int>::max()))
      ->type_name("")
      ->default_str(std::to_string(*target));
  Add(name, option, [target] { return std::to_string(*target); });
}

}  // namespace txl
