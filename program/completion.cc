#include <functional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "program/help.h"
#include "program/version.h"

namespace txl {
namespace {

using Path = std::vector<std::string>;  // "txl", "sessions", "list"
using Visit = std::function<void(const CLI::App&, const Path&)>;

// The program and every command, parents first.
void ForEachCommand(const CLI::App& command, Path path, const Visit& visit) {
  path.push_back(command.get_name());
  visit(command, path);
  for (const CLI::App* sub : CommandsOf(command)) {
    ForEachCommand(*sub, path, visit);
  }
}

void ForEachFlag(const CLI::App& command,
                 const std::function<void(const CLI::Option&)>& visit) {
  for (const FlagGroup& group : GroupsOf(command)) {
    for (const CLI::Option* option : group.options) {
      if (!option->get_positional()) visit(*option);
    }
  }
}

// What may stand after a flag, as bash's compgen wants it; empty: anything.
std::string BashValues(const FlagFacts& facts) {
  if (facts.takes_file) return "-f";
  if (facts.choices.empty()) return "";
  return absl::StrCat("-W \"", absl::StrJoin(facts.choices, " "), "\"");
}

// The words so far name a command ("path"); what completes the next one depends
// on it, and on the word before.
std::string BashScript(const CLI::App& program) {
  std::string steps;
  std::string values;
  std::string words;
  const auto visit = [&](const CLI::App& command, const Path& path) {
    const std::string here = absl::StrJoin(path, " ");
    std::vector<std::string> next;
    for (const CLI::App* sub : CommandsOf(command)) {
      absl::StrAppend(&steps, "      '", here, "|", sub->get_name(),
                      "') path='", here, " ", sub->get_name(), "' ;;\n");
      next.push_back(sub->get_name());
    }
    ForEachFlag(command, [&](const CLI::Option& option) {
      const FlagFacts facts = FactsOf(option);
      for (const std::string& name : option.get_lnames()) {
        next.push_back("--" + name);
        if (facts.value.empty()) continue;
        absl::StrAppend(&values, "    '", here, "|--", name,
                        "') COMPREPLY=($(compgen ", BashValues(facts),
                        " -- \"$current\")); return ;;\n");
      }
    });
    absl::StrAppend(&words, "    '", here, "') words='",
                    absl::StrJoin(next, " "), "' ;;\n");
  };
  ForEachCommand(program, {}, visit);
  return absl::StrReplaceAll(
      R"(_NAME() {
  local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}
  local path='NAME' words='' word
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$path|$word" in
@STEPS@    esac
  done
  case "$path|$before" in
@VALUES@  esac
  case "$path" in
@WORDS@  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _NAME NAME
)",
      {{"_NAME", "_" + absl::StrReplaceAll(program.get_name(), {{"-", "_"}})},
       {"NAME", program.get_name()},
       {"@STEPS@", steps},
       {"@VALUES@", values},
       {"@WORDS@", words}});
}

// Quotes text with the single quotes of fish.
std::string FishQuoted(const std::string& text) {
  return absl::StrCat(
      "'", absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"'", "\\'"}}), "'");
}

std::string FishScript(const CLI::App& program) {
  std::string script;
  const auto visit = [&](const CLI::App& command, const Path& path) {
    std::vector<std::string> conditions;
    for (size_t i = 1; i < path.size(); ++i) {
      conditions.push_back("__fish_seen_subcommand_from " + path[i]);
    }
    std::vector<std::string> subs;
    for (const CLI::App* sub : CommandsOf(command)) {
      subs.push_back(sub->get_name());
    }
    if (!subs.empty()) {
      conditions.push_back("not __fish_seen_subcommand_from " +
                           absl::StrJoin(subs, " "));
    }
    const std::string line = absl::StrCat(
        "complete -c ", path.front(),
        conditions.empty()
            ? ""
            : absl::StrCat(" -n '", absl::StrJoin(conditions, "; and "), "'"));
    for (const CLI::App* sub : CommandsOf(command)) {
      absl::StrAppend(&script, line, " -f -a ", sub->get_name(), " -d ",
                      FishQuoted(sub->get_description()), "\n");
    }
    ForEachFlag(command, [&](const CLI::Option& option) {
      const FlagFacts facts = FactsOf(option);
      for (const std::string& name : option.get_lnames()) {
        absl::StrAppend(
            &script, line, " -l ", name,
            facts.value.empty() ? ""
            : facts.takes_file  ? " -r"
                                : " -x",
            facts.choices.empty()
                ? ""
                : absl::StrCat(" -a '", absl::StrJoin(facts.choices, " "), "'"),
            " -d ", FishQuoted(option.get_description()), "\n");
      }
    });
  };
  ForEachCommand(program, {}, visit);
  return script;
}

// No line may begin with a control character of troff.
std::string Roff(const std::string& text) {
  const std::string escaped =
      absl::StrReplaceAll(text, {{"\\", "\\e"}, {"-", "\\-"}});
  return "\\&" + absl::StrReplaceAll(escaped, {{"\n", "\n.br\n\\&"}});
}

void AddOptions(const CLI::App& command, std::string* page) {
  for (const FlagGroup& group : GroupsOf(command)) {
    for (const CLI::Option* option : group.options) {
      const FlagFacts facts = FactsOf(*option);
      absl::StrAppend(page, ".TP\n\\fB", Roff(facts.names), "\\fR ",
                      option->get_positional() ? "" : Roff(facts.value), "\n",
                      Roff(facts.description), "\n");
    }
  }
}

}  // namespace

const std::vector<std::string>& CompletionShells() {
  static const auto& shells =
      *new std::vector<std::string>{"bash", "zsh", "fish"};
  return shells;
}

std::string CompletionScript(const CLI::App& program,
                             const std::string& shell) {
  if (shell == "fish") return FishScript(program);
  const std::string bash = BashScript(program);
  // zsh runs scripts for bash.
  return shell == "zsh" ? absl::StrCat("autoload -U +X compinit && compinit\n",
                                       "autoload -U +X bashcompinit && ",
                                       "bashcompinit\n", bash)
                        : bash;
}

std::string ManPage(const CLI::App& program) {
  std::string page = absl::StrCat(
      ".TH ", program.get_name(), " 1 \"\" \"", kVersion, "\"\n.SH NAME\n",
      program.get_name(), " \\- ", Roff(program.get_description()), "\n");
  ForEachCommand(program, {}, [&](const CLI::App& command, const Path& path) {
    if (path.size() == 1) {
      absl::StrAppend(&page, ".SH OPTIONS\n");
    } else {
      absl::StrAppend(&page, path.size() == 2 ? ".SH " : ".SS ",
                      absl::StrJoin(path, " "), "\n",
                      Roff(command.get_description()), "\n");
    }
    AddOptions(command, &page);
    if (!command.get_footer().empty()) {
      absl::StrAppend(&page, ".PP\n", Roff(command.get_footer()), "\n");
    }
  });
  return page;
}

}  // namespace txl
