#include "server/flag_table.h"

#include <toml++/toml.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "model/base/regular_file.h"
#include "program/command_line.h"
#include "server/setting_names.h"

namespace txl {
namespace {

std::string TomlText(const std::string& text) {
  std::ostringstream out;
  out << toml::value<std::string>(text);
  return out.str();
}

// A value of the file as its flag would be written.
std::optional<std::string> FlagText(const toml::node& node, bool is_switch) {
  if (const auto* truth = node.as_boolean(); truth != nullptr && is_switch) {
    return truth->get() ? "true" : "false";
  }
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* number = node.as_integer()) {
    return absl::StrCat(number->get());
  }
  if (const auto* number = node.as_floating_point()) {
    return absl::StrCat(number->get());
  }
  return std::nullopt;
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
  Text(name, target, help)->check(OneOf(names));
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
        (void)absl::SimpleAtod(text, target);  // checked below
      },
      help);
  option->check(CLI::Validator(
      [low, high](const std::string& text) -> std::string {
        double value = 0;
        if (!absl::SimpleAtod(text, &value)) {
          return absl::StrCat("\"", text, "\" is no number");
        }
        if (value >= low && value <= high) return "";
        return absl::StrCat(text, " is not in ", low, "..", high);
      },
      absl::StrCat(low, "..", high)));
  option->type_name("")->default_str(absl::StrCat(*target));
  Add(name, option, [target] { return TomlText(absl::StrCat(*target)); });
}

void FlagTable::Bool(const std::string& name, bool* target,
                     const std::string& help) {
  Add(name, app_.add_flag("--" + name, *target, help),
      [target] { return *target ? "true" : "false"; });
}

void FlagTable::Switch(const std::string& name, bool* target,
                       const std::string& help) {
  CLI::Option* option = app_.add_flag("--" + name, *target, help);
  option->envname(EnvironmentName(name));
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
    const bool is_switch = option->get_items_expected_min() == 0;
    const std::optional<std::string> text = FlagText(node, is_switch);
    if (!text.has_value()) {
      return absl::InvalidArgumentError(
          absl::StrCat(where, ": must be ",
                       is_switch ? "true or false" : "a string or a number"));
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
