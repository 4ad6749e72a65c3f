#include "tests/server/settings_reference.h"

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "program/help.h"
#include "server/flag_table.h"
#include "server/flags.h"

namespace txl {
namespace {

// What --help says, with its flags as code.
std::string Cell(const std::string& text) {
  const std::string escaped =
      absl::StrReplaceAll(text, {{"|", ", "}, {"<", "&lt;"}});
  std::vector<std::string> words = absl::StrSplit(escaped, ' ');
  for (std::string& word : words) {
    const size_t flag = word.find("--");
    if (flag == std::string::npos) continue;
    const size_t end =
        word.find_first_not_of("abcdefghijklmnopqrstuvwxyz-", flag);
    word.insert(end == std::string::npos ? word.size() : end, "`");
    word.insert(flag, "`");
  }
  return absl::StrJoin(words, " ");
}

std::string Table(const FlagGroup& group, const std::string& prefix) {
  std::string table = "| setting | default | values | |\n|-|-|-|-|\n";
  for (const CLI::Option* option : group.options) {
    const std::string given = option->get_default_str();
    absl::StrAppend(&table, "| `", prefix, option->get_lnames().front(), "` | ",
                    given.empty() ? "–" : Cell(given), " | ",
                    Cell(FactsOf(*option).value), " | ",
                    Cell(option->get_description()), " |\n");
  }
  return table;
}

}  // namespace

std::string MakeSettingsReference() {
  ServerFlags flags;
  FlagTable settings("");
  AddServerFlags(&flags, &settings);
  std::string text =
      "# Settings of txl-server\n\n"
      "[operating.md](operating.md#settings) says where they can be set. "
      "Generated from the flags by `build/bin/txl-settings-reference`.\n";
  for (const FlagGroup& group : GroupsOf(settings.flags())) {
    if (group.title == "Options") continue;  // of every program
    absl::StrAppend(&text, "\n## ", group.title, "\n\n", Table(group, "--"));
  }
  for (const FlagGroup& group : GroupsOf(settings.tuning())) {
    absl::StrAppend(&text, "\n## ", group.title,
                    "\n\nKeys of the table `[tuning]` in the file of "
                    "`--config`. They are not flags or variables.\n\n",
                    Table(group, ""));
  }
  return text;
}

}  // namespace txl
