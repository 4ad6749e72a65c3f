#pragma once

// Help texts that people can read, and the same facts for completion and man
// pages.

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace txl {

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

}  // namespace txl
