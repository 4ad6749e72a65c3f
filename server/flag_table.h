#pragma once

// Flags as a table: one entry gives a command line option (CLI11), an
// environment variable and a key of the configuration file. Settings that few
// users need are keys of the file's table [tuning] alone.
//
// CLI11 can read environment and files itself, but takes the file before the
// environment; here a file's value is taken last, through the same conversion
// and the same checks as the flag.

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "program/flag_checks.h"

namespace txl {

inline constexpr int64_t kMaxConfigBytes = 1 << 20;
inline constexpr char kTuning[] = "Tuning";

class FlagTable {
 public:
  explicit FlagTable(const std::string& description);

  // Flags from here on stand under this title; those of kTuning are keys of the
  // file's table [tuning] alone.
  void Group(const std::string& title) { group_ = title; }
  // Former settings: where one of them is still set, the error says so.
  void Constants(std::vector<std::string> names) {
    constants_ = std::move(names);
  }

  // `target` holds the default and outlives the table. Names without dashes.
  CLI::Option* Text(const std::string& name, std::string* target,
                    const std::string& help);
  // One of `names`, in any case.
  void Choice(const std::string& name, std::string* target,
              const std::vector<std::string>& names, const std::string& help);
  // Whole numbers in [low, high]; program/flag_checks.h says how they are read.
  template <typename Int>
  void Number(const std::string& name, Int* target, int64_t low, int64_t high,
              const std::string& help);
  // "64KiB", "1GiB", or a plain number.
  void Bytes(const std::string& name, int64_t* target, int64_t low,
             int64_t high, const std::string& help);
  // A size, as Bytes reads it, or "auto", which leaves the value absent.
  void BytesOrAuto(const std::string& name, std::optional<int64_t>* target,
                   int64_t low, int64_t high, const std::string& help);
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
  // A switch of the command line and the environment, not of the file.
  void Switch(const std::string& name, bool* target, const std::string& help);

  // Command line and environment. InvalidArgument naming the flag or the
  // variable, also a TXL_ variable that is not a setting;
  // Cancelled with the text when one was asked for: help, the version, a
  // completion script, the manual page.
  absl::Status Parse(std::vector<std::string> arguments);
  // Values for flags that neither the command line nor the environment set.
  // Texts must be strings; numbers and truth values may be. Also values for
  // [tuning]. InvalidArgument naming the key, also one that is not a setting,
  // or the file if it is not a regular one, is above kMaxConfigBytes or is not
  // UTF-8.
  absl::Status ApplyFile(const std::string& path);
  // InvalidArgument naming the flag, where it has no value.
  absl::Status CheckRequired(const std::string& name) const;

  // Whether the command line, the environment or the file gave it a value.
  bool Has(const std::string& name) const;

  // The values as a configuration file.
  std::string ToToml() const;

  // For documents.
  const CLI::App& flags() const { return flags_; }
  const CLI::App& tuning() const { return tuning_; }

 private:
  using Show = std::function<std::string()>;

  CLI::App& app() { return group_ == kTuning ? tuning_ : flags_; }
  CLI::Option* Add(const std::string& name, CLI::Option* option, Show show);
  absl::Status CheckEnvironment() const;
  // Null: `settings` have no such key.
  CLI::Option* FindKey(const CLI::App& settings, absl::string_view key) const;
  // What is wrong with a flag, variable or key that `settings` does not have,
  // and whose names `name_of` writes alike; empty ones do not count.
  std::string Unknown(
      absl::string_view wanted, const CLI::App& settings,
      const std::function<std::string(const CLI::Option*)>& name_of) const;

  CLI::App flags_;
  CLI::App tuning_;
  std::string group_;
  std::vector<std::string> constants_;
  // Setting and its value as TOML, in the order of definition.
  std::vector<std::pair<CLI::Option*, Show>> entries_;
};

// TXL_SESSION_TTL of "session-ttl".
std::string EnvironmentName(const std::string& flag);

template <typename Int>
void FlagTable::Number(const std::string& name, Int* target, int64_t low,
                       int64_t high, const std::string& help) {
  // Through int64, so that a number too big for Int is out of range, not
  // wrapped.
  auto* option = app().add_option_function<int64_t>(
      "--" + name,
      [target](int64_t value) { *target = static_cast<Int>(value); }, help);
  option->transform(WholeBetween(low, high, std::numeric_limits<Int>::max()))
      ->type_name("")
      ->default_str(std::to_string(*target));
  Add(name, option, [target] { return std::to_string(*target); });
}

// Misspelt names of settings, and variables that are not settings.

// "WANTED: no such setting", with the nearest name as a question.
std::string NoSuchSetting(absl::string_view wanted,
                          const std::vector<std::string>& names);

// Whether a variable TXL_... is for something else than this program: others of
// the project (TXL_SERVER is txl's; TXL_PROXY_, TXL_TEST_ and the like are the
// deployments', the scripts' and the tests'), or one that Kubernetes makes of a
// service, or Docker of a linked container, whose name begins with txl.
bool IsForeignVariable(absl::string_view name, absl::string_view value);

}  // namespace txl
