#include "program/help.h"

#include <unistd.h>

#include <cstdlib>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace txl {
namespace {

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Select Graphic Rendition of ECMA-48.
const char* Code(Emphasis emphasis) {
  switch (emphasis) {
    case Emphasis::kTitle:
      return "\x1b[1m";
    case Emphasis::kError:
      return "\x1b[1;31m";
    case Emphasis::kWarning:
      return "\x1b[33m";
  }
  return "";
}

}  // namespace

bool WantsColor(int fd) {
  const std::string term = Variable("TERM");
  return Variable("NO_COLOR").empty() && !term.empty() && term != "dumb" &&
         isatty(fd) == 1;
}

std::string Emphasize(absl::string_view text, Emphasis emphasis, bool color) {
  if (!color) return std::string(text);
  return absl::StrCat(Code(emphasis), text, "\x1b[0m");
}

namespace {

constexpr size_t kColumns = 80;

// What CLI11 says of the value: its type, then of each check what it says, with
// ':' between. A check says more than the type does.
std::string ValueOf(const CLI::Option& option) {
  if (option.get_type_size() == 0) return "";
  const std::vector<std::string> parts =
      absl::StrSplit(option.get_type_name(), ':', absl::SkipEmpty());
  if (parts.empty()) return "";
  return absl::StrJoin(parts.begin() + (parts.size() > 1 ? 1 : 0), parts.end(),
                       ", ");
}

std::string NamesOf(const std::set<CLI::Option*>& options) {
  return absl::StrJoin(options, ", ", [](std::string* out, CLI::Option* o) {
    absl::StrAppend(out, o->get_name());
  });
}

std::string DescriptionOf(const CLI::Option& option) {
  std::string text = option.get_description();
  if (option.get_type_size() != 0 && !option.get_default_str().empty()) {
    absl::StrAppend(&text, " [default: ", option.get_default_str(), "]");
  }
  if (!option.get_envname().empty()) {
    absl::StrAppend(&text, " [$", option.get_envname(), "]");
  }
  if (!option.get_needs().empty()) {
    absl::StrAppend(&text, " [with ", NamesOf(option.get_needs()), "]");
  }
  if (!option.get_excludes().empty()) {
    absl::StrAppend(&text, " [not with ", NamesOf(option.get_excludes()), "]");
  }
  return text;
}

// The words of each line of `text` in lines of at most `width`.
std::vector<std::string> Wrap(const std::string& text, size_t width) {
  std::vector<std::string> lines;
  for (absl::string_view paragraph : absl::StrSplit(text, '\n')) {
    std::string line;
    for (absl::string_view word : absl::StrSplit(paragraph, ' ')) {
      if (!line.empty() && line.size() + 1 + word.size() > width) {
        lines.push_back(std::move(line));
        line.clear();
      }
      absl::StrAppend(&line, line.empty() ? "" : " ", word);
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace

FlagFacts FactsOf(const CLI::Option& option) {
  FlagFacts facts;
  facts.names = option.get_positional() ? option.get_name(true, false)
                                        : option.get_name(false, true);
  facts.value = ValueOf(option);
  facts.description = DescriptionOf(option);
  if (absl::StrContains(facts.value, '|')) {
    facts.choices = absl::StrSplit(facts.value, '|');
  }
  facts.takes_file = facts.value == "FILE";
  return facts;
}

std::vector<FlagGroup> GroupsOf(const CLI::App& command) {
  std::vector<FlagGroup> groups = {{"Arguments", {}}};
  for (const std::string& name : command.get_groups()) {
    groups.push_back({name, {}});
  }
  for (FlagGroup& group : groups) {
    const bool positional = &group == &groups.front();
    group.options = command.get_options([&](const CLI::Option* option) {
      return !option->get_group().empty() &&
             option->get_positional() == positional &&
             (positional || option->get_group() == group.title);
    });
  }
  std::erase_if(groups, [](const FlagGroup& group) {
    return group.title.empty() || group.options.empty();
  });
  return groups;
}

std::vector<const CLI::App*> CommandsOf(const CLI::App& command) {
  return command.get_subcommands([](const CLI::App* sub) {
    return !sub->get_name().empty() && !sub->get_group().empty();
  });
}

std::string HelpFormatter::Entry(const std::string& name,
                                 const std::string& text) const {
  std::string entry = absl::StrCat("  ", name);
  // A long name has its line to itself.
  bool fits = entry.size() < column_width_;
  for (const std::string& line : Wrap(text, kColumns - column_width_)) {
    const size_t used = fits ? entry.size() : column_width_;
    if (!fits) {
      absl::StrAppend(&entry, "\n", std::string(column_width_, ' '), line);
    } else {
      absl::StrAppend(&entry, std::string(column_width_ - used, ' '), line);
    }
    fits = false;
  }
  return entry + "\n";
}

std::string HelpFormatter::make_group(
    std::string group, bool is_positional,
    std::vector<const CLI::Option*> options) const {
  std::string text =
      absl::StrCat("\n",
                   Emphasize((is_positional ? "Arguments" : group) + ":",
                             Emphasis::kTitle, color_),
                   "\n");
  for (const CLI::Option* option : options) {
    text += make_option(option, is_positional);
  }
  return text;
}

std::string HelpFormatter::make_option(const CLI::Option* option,
                                       bool is_positional) const {
  const FlagFacts facts = FactsOf(*option);
  const bool several = option->get_expected_max() > 1000;
  return Entry(
      absl::StrCat(facts.names, facts.value.empty() || is_positional ? "" : " ",
                   is_positional ? "" : facts.value, several ? " ..." : ""),
      facts.description);
}

std::string HelpFormatter::make_subcommand(const CLI::App* command) const {
  return Entry(command->get_name(), command->get_description());
}

std::string HelpFormatter::make_description(const CLI::App* command) const {
  const std::string text = command->get_description();
  return text.empty() ? "" : text + "\n";
}

}  // namespace txl
