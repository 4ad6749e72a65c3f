#include "server/flag_table.h"

#include <toml++/toml.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <sstream>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "model/base/regular_file.h"
#include "model/base/status_macros.h"
#include "program/command_line.h"
#include "program/flag_checks.h"
#include "program/nearest_name.h"

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
        return absl::StrCat(
            "'", text, "' is not one of true, false, yes, no, on, off, 1, 0");
      },
      "");
}

std::string FlagName(const CLI::Option* option) {
  return option->get_lnames().front();
}

// "drain-timeout" of "--drain-timeout=5s", "TXL_DRAIN_TIMEOUT" and the key.
std::string SettingOf(absl::string_view written) {
  if (!absl::ConsumePrefix(&written, "--")) {
    absl::ConsumePrefix(&written, "TXL_");
  }
  return absl::StrReplaceAll(
      absl::AsciiStrToLower(written.substr(0, written.find('='))),
      {{"_", "-"}});
}

absl::StatusOr<toml::table> ReadToml(const std::string& path) {
  const absl::StatusOr<std::string> text =
      ReadRegularFile(path, kMaxConfigBytes);
  if (!text.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--config: ", text.status().message()));
  }
  try {
    return toml::parse(*text, path);
  } catch (const toml::parse_error& error) {
    return absl::InvalidArgumentError(
        absl::StrCat("--config: ", path, ":", error.source().begin.line, ": ",
                     std::string(error.description())));
  }
}

// `where`: the beginning of errors. A value that the option has stays.
absl::Status ApplyValue(const toml::node& node, CLI::Option* option,
                        const std::string& where) {
  const std::optional<std::string> text = FlagText(node, option);
  if (!text.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat(where, "must be ", ValueOf(option)));
  }
  if (option->count() > 0) return absl::OkStatus();
  try {
    option->add_result(*text);
    option->run_callback();
  } catch (const CLI::ParseError& error) {
    const std::string flag = absl::StrCat(option->get_name(), ": ");
    return absl::InvalidArgumentError(
        absl::StrCat(where, absl::StripPrefix(error.what(), flag)));
  }
  return absl::OkStatus();
}

}  // namespace

std::string EnvironmentName(const std::string& flag) {
  return absl::StrCat(
      "TXL_", absl::StrReplaceAll(absl::AsciiStrToUpper(flag), {{"-", "_"}}));
}

FlagTable::FlagTable(const std::string& description)
    : flags_(description, "txl-server") {
  SetUpProgram(flags_);
  tuning_.set_help_flag();
  flags_.footer(
      "txl-server store --help: checks and repairs the sessions of "
      "--data-dir\ntxl-server keys --help: makes and revokes the keys of "
      "--keys");
}

CLI::Option* FlagTable::Add(const std::string& name, CLI::Option* option,
                            Show show) {
  if (group_ != kTuning) option->envname(EnvironmentName(name));
  if (!group_.empty()) option->group(group_);
  entries_.emplace_back(option, std::move(show));
  return option;
}

CLI::Option* FlagTable::Text(const std::string& name, std::string* target,
                             const std::string& help) {
  auto* option = app().add_option("--" + name, *target, help);
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
  auto* option = app().add_option_function<int64_t>(
      "--" + name, [target](int64_t value) { *target = value; }, help);
  option->transform(SizeBetween(low, high))
      ->type_name("")
      ->default_str(FormatSize(*target));
  Add(name, option, [target] { return std::to_string(*target); });
}

void FlagTable::BytesOrAuto(const std::string& name,
                            std::optional<int64_t>* target, int64_t low,
                            int64_t high, const std::string& help) {
  const CLI::Validator size = SizeBetween(low, high);
  const auto show = [target] {
    return target->has_value() ? FormatSize(**target) : "auto";
  };
  auto* option = app().add_option_function<std::string>(
      "--" + name,
      [target](const std::string& text) {
        int64_t bytes = 0;
        *target = absl::SimpleAtoi(text, &bytes) ? std::optional(bytes)
                                                 : std::nullopt;
      },
      help);
  option->transform(CLI::Validator(
      [size](std::string& text) -> std::string {
        if (absl::EqualsIgnoreCase(text, "auto")) return "";
        const std::string error = size(text);
        return error.empty() ? "" : absl::StrCat(error, " or auto");
      },
      absl::StrCat("auto or ", size.get_description())));
  option->type_name("")->default_str(show());
  Add(name, option, [show] { return TomlText(show()); });
}

void FlagTable::Duration(const std::string& name, absl::Duration* target,
                         absl::Duration low, absl::Duration high,
                         const std::string& help) {
  auto* option = app().add_option_function<std::string>(
      "--" + name,
      [target](const std::string& text) {
        absl::ParseDuration(text, target);  // checked below
      },
      help);
  option->check(CLI::Validator(
      [low, high](const std::string& text) -> std::string {
        absl::Duration value;
        if (!absl::ParseDuration(text, &value)) {
          return absl::StrCat("\"", text,
                              "\" is not a duration like 90s or 1h");
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
  auto* option = app().add_option_function<std::string>(
      "--" + name,
      [target](const std::string& text) {
        *target = FiniteNumber(text).value_or(*target);  // checked below
      },
      help);
  option->check(Between(low, high))
      ->type_name("")
      ->default_str(absl::StrCat(*target));
  Add(name, option, [target] { return TomlText(absl::StrCat(*target)); });
}

void FlagTable::Bool(const std::string& name, bool* target,
                     const std::string& help) {
  Add(name, app().add_flag("--" + name, *target, help)->transform(Truth()),
      [target] { return *target ? "true" : "false"; });
}

void FlagTable::Switch(const std::string& name, bool* target,
                       const std::string& help) {
  CLI::Option* option = app().add_flag("--" + name, *target, help);
  option->transform(Truth())->envname(EnvironmentName(name));
  if (!group_.empty()) option->group(group_);
}

absl::Status FlagTable::Parse(std::vector<std::string> arguments) {
  std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants them
  try {
    flags_.parse(std::move(arguments));
  } catch (const CLI::CallForHelp&) {
    return absl::CancelledError(flags_.help());
  } catch (const CLI::CallForVersion& text) {
    return absl::CancelledError(
        absl::StrCat(absl::StripSuffix(text.what(), "\n"), "\n"));
  } catch (const CLI::ExtrasError& error) {
    const std::vector<std::string> unknown = flags_.remaining();
    return absl::InvalidArgumentError(
        unknown.empty() ? error.what()
                        : Unknown(unknown.front(), flags_, [](const auto* o) {
                            return "--" + FlagName(o);
                          }));
  } catch (const CLI::ParseError& error) {
    return absl::InvalidArgumentError(UsageError(flags_, error));
  }
  return CheckEnvironment();
}

std::string FlagTable::Unknown(
    absl::string_view wanted, const CLI::App& settings,
    const std::function<std::string(const CLI::Option*)>& name_of) const {
  const std::string name = SettingOf(wanted);
  if (FindKey(tuning_, name) != nullptr) {
    return absl::StrCat(wanted, ": is ", name,
                        " of the table [tuning] in the file of --config");
  }
  if (absl::c_linear_search(constants_, name)) {
    return absl::StrCat(wanted, ": is a constant now, it cannot be set");
  }
  std::vector<std::string> names;
  for (const CLI::Option* option : settings.get_options()) {
    if (std::string text = name_of(option); !text.empty()) {
      names.push_back(std::move(text));
    }
  }
  return NoSuchSetting(wanted, names);
}

absl::Status FlagTable::CheckEnvironment() const {
  const auto name_of = [](const auto* option) { return option->get_envname(); };
  const std::vector<const CLI::Option*> options = flags_.get_options();
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::pair<std::string, std::string> parts =
        absl::StrSplit(*variable, absl::MaxSplits('=', 1));
    const std::string& name = parts.first;
    if (absl::StartsWith(name, "TXL_") &&
        !IsForeignVariable(name, parts.second) &&
        !absl::c_any_of(options, [&](const auto* option) {
          return name_of(option) == name;
        })) {
      return absl::InvalidArgumentError(Unknown(name, flags_, name_of));
    }
  }
  return absl::OkStatus();
}

CLI::Option* FlagTable::FindKey(const CLI::App& settings,
                                absl::string_view key) const {
  const bool tuning = &settings == &tuning_;
  for (const auto& [option, show] : entries_) {
    if ((option->get_group() == kTuning) == tuning && FlagName(option) == key &&
        key != "config") {
      return option;
    }
  }
  return nullptr;
}

absl::Status FlagTable::ApplyFile(const std::string& path) {
  TXL_ASSIGN_OR_RETURN(const toml::table file, ReadToml(path));
  const std::string where = absl::StrCat("--config: ", path, ": ");
  const auto apply = [&](const CLI::App& settings, const std::string& prefix,
                         const auto& key, const toml::node& node) {
    const std::string name(key.str());
    CLI::Option* const option = FindKey(settings, name);
    return option == nullptr
               ? absl::InvalidArgumentError(absl::StrCat(
                     where, prefix, Unknown(name, settings, FlagName)))
               : ApplyValue(node, option,
                            absl::StrCat(where, prefix, name, ": "));
  };
  for (const auto& [key, node] : file) {
    const toml::table* const tuning =
        key.str() == "tuning" ? node.as_table() : nullptr;
    if (tuning == nullptr) {
      TXL_RETURN_IF_ERROR(apply(flags_, "", key, node));
      continue;
    }
    for (const auto& [inner, value] : *tuning) {
      TXL_RETURN_IF_ERROR(apply(tuning_, "tuning.", inner, value));
    }
  }
  return absl::OkStatus();
}

absl::Status FlagTable::CheckRequired(const std::string& name) const {
  return Has(name) ? absl::OkStatus()
                   : absl::InvalidArgumentError(absl::StrCat(
                         "--", name, " is required (or ", EnvironmentName(name),
                         ", or ", name, " in the file of --config)"));
}

bool FlagTable::Has(const std::string& name) const {
  return flags_.get_option("--" + name)->count() > 0;
}

std::string FlagTable::ToToml() const {
  std::string flags, tuning;
  for (const auto& [option, show] : entries_) {
    const std::string name = FlagName(option);
    if (name == "config") continue;
    absl::StrAppend(option->get_group() == kTuning ? &tuning : &flags, name,
                    " = ", show(), "\n");
  }
  return absl::StrCat(flags, "\n[tuning]\n", tuning);
}

namespace {

constexpr absl::string_view kForeignNames[] = {
    "TXL_SERVER",        // where txl finds it
    "TXL_KEY_FILE",      // its key
    "TXL_ADMIN",         // its administration
    "TXL_CERTIFICATES",  // compose.yaml
    "TXL_PUBLIC_PORT",
    "TXL_JOBS",  // building
    "TXL_IMAGE_TARGET",
};
constexpr absl::string_view kForeignPrefixes[] = {
    "TXL_PROXY_",                               // HAProxy's configuration
    "TXL_TEST_",   "TXL_CUT_",    "TXL_SOAK_",  // tests
    "TXL_FUZZ_",   "TXL_ATTACK_", "TXL_BENCH_",
    "TXL_DEVICE_",  // scripts
};

bool IsProtocol(absl::string_view text) {
  return text == "tcp" || text == "udp" || text == "sctp";
}

// "PORT_8080_TCP" at the end of the name, or before _ADDR, _PROTO, _PORT,
// _PORT_START and the like.
bool IsLinkOfPort(absl::string_view name) {
  constexpr absl::string_view kEnds[] = {"addr", "port", "proto", "start",
                                         "end"};
  std::vector<std::string> words =
      absl::StrSplit(absl::AsciiStrToLower(name), '_');
  for (int i = 0; i < 2; ++i) {
    if (absl::c_linear_search(kEnds, words.back())) words.pop_back();
    if (words.empty()) return false;
  }
  int port = 0;
  const size_t count = words.size();
  return count > 3 && IsProtocol(words[count - 1]) &&
         absl::SimpleAtoi(words[count - 2], &port) &&
         words[count - 3] == "port";
}

// Environment variables that Docker sets for a linked container, and Kubernetes
// for a service, whose name begins with txl:
// https://docs.docker.com/engine/network/links/
// https://kubernetes.io/docs/concepts/services-networking/service/
bool IsServiceLink(absl::string_view name, absl::string_view value) {
  const std::pair<absl::string_view, absl::string_view> address =
      absl::StrSplit(value, absl::MaxSplits("://", 1));
  return absl::EndsWith(name, "_SERVICE_HOST") ||
         absl::StrContains(name, "_SERVICE_PORT") || IsLinkOfPort(name) ||
         (absl::EndsWith(name, "_PORT") && !address.second.empty() &&
          IsProtocol(address.first)) ||
         (absl::EndsWith(name, "_NAME") && absl::StartsWith(value, "/")) ||
         absl::StrContains(name, "_ENV_");
}

}  // namespace

std::string NoSuchSetting(absl::string_view wanted,
                          const std::vector<std::string>& names) {
  if (absl::c_linear_search(names, wanted)) {
    return absl::StrCat(wanted, ": is a flag only, it cannot be set here");
  }
  return absl::StrCat(wanted, ": no such setting", DidYouMean(wanted, names));
}

bool IsForeignVariable(absl::string_view name, absl::string_view value) {
  return std::find(std::begin(kForeignNames), std::end(kForeignNames), name) !=
             std::end(kForeignNames) ||
         std::any_of(std::begin(kForeignPrefixes), std::end(kForeignPrefixes),
                     [name](absl::string_view prefix) {
                       return absl::StartsWith(name, prefix);
                     }) ||
         IsServiceLink(name, value);
}

}  // namespace txl
