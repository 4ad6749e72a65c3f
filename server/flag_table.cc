#include "server/flag_table.h"

#include <toml++/toml.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "model/base/regular_file.h"
#include "program/command_line.h"
#include "program/number_text.h"
#include "server/setting_names.h"

namespace txl {
namespace {

std::string TomlText(const std::string& text) {
  std::ostringstream out;
  out << toml::value<std::string>(text);
  return out.str();
}

// Shortest digits that are the same number.
std::string ShortestText(double number) {
  std::string text(32, '\0');
  const auto end =
      std::to_chars(text.data(), text.data() + text.size(), number);
  text.resize(static_cast<size_t>(end.ptr - text.data()));
  return text;
}

bool IsText(const CLI::Option* option) {
  return absl::StartsWith(option->get_type_name(), "TEXT");
}

bool IsSwitch(const CLI::Option* option) {
  return option->get_items_expected_min() == 0;
}

// A value of the file as its flag would be written. A number is no text: 0o660
// would be another number.
std::optional<std::string> FlagText(const toml::node& node,
                                    const CLI::Option* option) {
  if (const auto* text = node.as_string()) return text->get();
  if (IsText(option)) return std::nullopt;
  if (const auto* truth = node.as_boolean();
      truth != nullptr && IsSwitch(option)) {
    return truth->get() ? "true" : "false";
  }
  if (const auto* number = node.as_integer()) {
    return absl::StrCat(number->get());
  }
  if (const auto* number = node.as_floating_point()) {
    return ShortestText(number->get());
  }
  return std::nullopt;
}

// What FlagText takes.
const char* ValueOf(const CLI::Option* option) {
  if (IsText(option)) return "a string";
  return IsSwitch(option) ? "true or false" : "a string or a number";
}

// A truth value as CLI11 reads it: it takes -3 for false, too.
CLI::Validator Truth() {
  return CLI::Validator(
      [](std::string& text) -> std::string {
        for (const auto& [value, names] :
             {std::pair("true", std::vector{"true", "yes", "on", "1"}),
              std::pair("false", std::vector{"false", "no", "off", "0"})}) {
          for (const char* name : names) {
            if (!absl::EqualsIgnoreCase(text, name)) continue;
            text = value;
            return "";
          }
        }
        return absl::StrCat("'", text,
                            "' is none of true, false, yes, no, on, off, 1, 0");
      },
      "");
}

std::string FlagName(const CLI::Option* option) {
  return option->get_lnames().front();
}

}  // namespace

std::string EnvironmentName(const std::string& flag) {
  std::string name = "TXL_" + flag;
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) {
    return c == '-' ? '_' : static_cast<char>(std::toupper(c));
  });
  return name;
}

FlagTable::FlagTable(const std::string& description)
    : app_(description, "txl-server") {
  SetUpProgram(app_);
  app_.footer(
      "txl-server store --help: checks and repairs the sessions of "
      "--data-dir\ntxl-server keys --help: makes and revokes the keys of "
      "--keys");
}

CLI::Option* FlagTable::Add(const std::string& name, CLI::Option* option,
                            std::function<std::string()> show) {
  option->envname(EnvironmentName(name));
  if (!group_.empty()) option->group(group_);
  entries_.emplace_back(option, std::move(show));
  return option;
}

CLI::Option* FlagTable::Text(const std::string& name, std::string* target,
                             const std::string& help) {
  auto* option = app_.add_option("--" + name, *target, help);
  option->capture_default_str();
  return Add(name, option, [target] { return TomlText(*target); });
}

void FlagTable::Choice(const std::string& name, std::string* target,
                       const std::vector<std::string>& names,
                       const std::string& help) {
  Text(name, target, help)->transform(OneOf(names));
}

void FlagTable::Bytes(const std::string& name, int64_t* target, int64_t low,
                      int64_t high, const std::string& help) {
  auto* option = app_.add_option_function<int64_t>(
      "--" + name, [target](int64_t value) { *target = value; }, help);
  option->transform(SizeBetween(low, high))
      ->type_name("")
      ->default_str(FormatSize(*target));
  Add(name, option, [target] { return std::to_string(*target); });
}

void FlagTable::Duration(const std::string& name, absl::Duration* target,
                         absl::Duration low, absl::Duration high,
                         const std::string& help) {
  auto* option = app_.add_option_function<std::string>(
      "--" + name,
      [target](const std::string& text) {
        absl::ParseDuration(text, target);  // checked below
      },
      help);
  option->check(CLI::Validator(
      [low, high](const std::string& text) -> std::string {
        absl::Duration value;
        if (!absl::ParseDuration(text, &value)) {
          return absl::StrCat("\"", text, "\" is no duration like 90s or 1h");
        }
        if (value >= low && value <= high) return "";
        return absl::StrCat(text, " is not in ", absl::FormatDuration(low),
                            " to ", absl::FormatDuration(high));
      },
      "DURATION"));
  option->type_name("")->default_str(absl::FormatDuration(*target));
  Add(name, option,
      [target] { return TomlText(absl::FormatDuration(*target)); });
}

void FlagTable::Real(const std::string& name, double* target, double low,
                     double high, const std::string& help) {
  auto* option = app_.add_option_function<std::string>(
      "--" + name,
      [target](const std::string& text) {
        *target = FiniteNumber(text).value_or(*target);  // checked below
      },
      help);
  option->check(CLI::Validator(
      [low, high](const std::string& text) -> std::string {
        const std::optional<double> value = FiniteNumber(text);
        if (!value.has_value()) {
          return absl::StrCat("\"", text, "\" is no number");
        }
        if (*value >= low && *value <= high) return "";
        return absl::StrCat(text, " is not in ", low, "..", high);
      },
      absl::StrCat(low, "..", high)));
  option->type_name("")->default_str(absl::StrCat(*target));
  Add(name, option, [target] { return TomlText(absl::StrCat(*target)); });
}

void FlagTable::Bool(const std::string& name, bool* target,
                     const std::string& help) {
  Add(name, app_.add_flag("--" + name, *target, help)->transform(Truth()),
      [target] { return *target ? "true" : "false"; });
}

void FlagTable::Switch(const std::string& name, bool* target,
                       const std::string& help) {
  CLI::Option* option = app_.add_flag("--" + name, *target, help);
  option->transform(Truth())->envname(EnvironmentName(name));
  if (!group_.empty()) option->group(group_);
}

absl::Status FlagTable::Parse(std::vector<std::string> arguments) {
  std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants them
  try {
    app_.parse(std::move(arguments));
  } catch (const CLI::CallForHelp&) {
    return absl::CancelledError(app_.help());
  } catch (const CLI::CallForVersion& text) {
    return absl::CancelledError(
        absl::StrCat(absl::StripSuffix(text.what(), "\n"), "\n"));
  } catch (const CLI::ExtrasError& error) {
    const std::vector<std::string> unknown = app_.remaining();
    return absl::InvalidArgumentError(
        unknown.empty()
            ? error.what()
            : NoSuchSetting(unknown.front(), Names([](const auto* option) {
                              return "--" + FlagName(option);
                            })));
  } catch (const CLI::ParseError& error) {
    return absl::InvalidArgumentError(error.what());
  }
  return CheckEnvironment();
}

std::vector<std::string> FlagTable::Names(
    const std::function<std::string(const CLI::Option*)>& name) const {
  std::vector<std::string> names;
  for (const CLI::Option* option : app_.get_options()) {
    if (std::string text = name(option); !text.empty()) names.push_back(text);
  }
  return names;
}

absl::Status FlagTable::CheckEnvironment() const {
  const std::vector<std::string> names =
      Names([](const CLI::Option* option) { return option->get_envname(); });
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(*variable, absl::MaxSplits('=', 1));
    const auto& [name, value] = parts;
    if (!absl::StartsWith(name, "TXL_") || IsForeignVariable(name, value) ||
        std::find(names.begin(), names.end(), name) != names.end()) {
      continue;
    }
    return absl::InvalidArgumentError(NoSuchSetting(name, names));
  }
  return absl::OkStatus();
}

absl::Status FlagTable::ApplyFile(const std::string& path) {
  const absl::StatusOr<std::string> text =
      ReadRegularFile(path, kMaxConfigBytes);
  if (!text.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--config: ", text.status().message()));
  }
  toml::table table;
  try {
    table = toml::parse(*text, path);
  } catch (const toml::parse_error& error) {
    return absl::InvalidArgumentError(
        absl::StrCat("--config: ", path, ":", error.source().begin.line, ": ",
                     std::string(error.description())));
  }
  for (const auto& [toml_key, node] : table) {
    const std::string key(toml_key.str());
    const auto entry =
        std::find_if(entries_.begin(), entries_.end(),
                     [&](const auto& e) { return FlagName(e.first) == key; });
    const std::string where = absl::StrCat("--config: ", path, ": ", key);
    if (entry == entries_.end() || key == "config") {
      return absl::InvalidArgumentError(
          absl::StrCat("--config: ", path, ": ",
                       NoSuchSetting(key, Names([](const CLI::Option* option) {
                                       return FlagName(option);
                                     }))));
    }
    CLI::Option* option = entry->first;
    const std::optional<std::string> text = FlagText(node, option);
    if (!text.has_value()) {
      return absl::InvalidArgumentError(
          absl::StrCat(where, ": must be ", ValueOf(option)));
    }
    if (option->count() > 0) continue;
    try {
      option->add_result(*text);
      option->run_callback();
    } catch (const CLI::ParseError& error) {
      return absl::InvalidArgumentError(where + ": " + error.what());
    }
  }
  return absl::OkStatus();
}

absl::Status FlagTable::CheckRequired(
    const std::vector<std::string>& names) const {
  for (const std::string& name : names) {
    if (!Has(name)) {
      return absl::InvalidArgumentError(
          absl::StrCat("--", name, " is required (or ", EnvironmentName(name),
                       ", or ", name, " in the file of --config)"));
    }
  }
  return absl::OkStatus();
}

bool FlagTable::Has(const std::string& name) const {
  return app_.get_option("--" + name)->count() > 0;
}

std::string FlagTable::ToToml() const {
  std::string text;
  for (const auto& [option, show] : entries_) {
    const std::string name = FlagName(option);
    if (name != "config") absl::StrAppend(&text, name, " = ", show(), "\n");
  }
  return text;
}

}  // namespace txl
