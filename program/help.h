#pragma once

// Help texts that people can read, the same facts for completion and manual
// pages, and emphasis where a person reads.

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace txl {

// Whether what is written to the descriptor may carry colours: it is a terminal
// that knows them (TERM), and NO_COLOR is not set (https://no-color.org).
bool WantsColor(int fd);

enum class Emphasis { kTitle, kError, kWarning };

// The text with the terminal's codes around it; unchanged without `color`.
std::string Emphasize(absl::string_view text, Emphasis emphasis, bool color);

// One flag, or one argument without dashes, as help shows it.
struct FlagFacts {
  std::string names;        // "-h,--help"
  std::string value;        // "0..1", "poisson|constant", "FILE"; empty: none
  std::string description;  // with default, variable, and what it goes with
  // The values where they are a few names.
  std::vector<std::string> choices;
  bool takes_file = false;
};

FlagFacts FactsOf(const CLI::Option& option);

// The listed flags or arguments of a command, in the order of their groups:
// title and members. Flags of the group "" are not listed.
struct FlagGroup {
  std::string title;
  std::vector<const CLI::Option*> options;
};
std::vector<FlagGroup> GroupsOf(const CLI::App& command);
// The command's listed subcommands.
std::vector<const CLI::App*> CommandsOf(const CLI::App& command);

// CLI11's help with FlagFacts, descriptions broken at 80 columns, and bold
// titles if `color`. Commands that are added later inherit it.
class HelpFormatter final : public CLI::Formatter {
 public:
  explicit HelpFormatter(bool color) : color_(color) {}

  std::string make_group(std::string group, bool is_positional,
                         std::vector<const CLI::Option*> options) const final;
  std::string make_option(const CLI::Option* option,
                          bool is_positional) const final;
  std::string make_subcommand(const CLI::App* command) const final;
  std::string make_description(const CLI::App* command) const final;

 private:
  std::string Entry(const std::string& name, const std::string& text) const;

  const bool color_;
};

// Shell completion and a manual page, made of what --help shows
// (completion.cc).

// "bash", "zsh", "fish".
const std::vector<std::string>& CompletionShells();

// A script for one of them, to be sourced: it completes commands, flags, the
// names that a flag takes, and files. Pure.
std::string CompletionScript(const CLI::App& program, const std::string& shell);

// A page of section 1 in the macros of man(7). Pure.
std::string ManPage(const CLI::App& program);

}  // namespace txl
