#include "program/command_line.h"

#include <unistd.h>

#include <cstdio>
#include <iostream>
#include <memory>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "program/flag_checks.h"
#include "program/help.h"
#include "program/nearest_name.h"
#include "program/version.h"

namespace txl {
namespace {

// The command that the command line got to.
const CLI::App& LastCommand(const CLI::App& program) {
  const CLI::App* command = &program;
  while (!command->get_subcommands().empty()) {
    command = command->get_subcommands().back();
  }
  return *command;
}

std::string PathOf(const CLI::App& command) {
  const std::string name = command.get_name();
  const CLI::App* parent = command.get_parent();
  return parent == nullptr ? name : absl::StrCat(PathOf(*parent), " ", name);
}

std::vector<std::string> FlagNames(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      names.push_back("--" + name);
    }
  }
  return names;
}

std::vector<std::string> CommandNames(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::App* sub : CommandsOf(command)) {
    names.push_back(sub->get_name());
  }
  return names;
}

// Whether the command or one below it has the flag.
bool Takes(const CLI::App& command, const std::string& flag) {
  return absl::c_linear_search(FlagNames(command), flag) ||
         absl::c_any_of(CommandsOf(command),
                        [&](const CLI::App* sub) { return Takes(*sub, flag); });
}

// What CLI11 says of a value that it cannot convert. Of numbers these are the
// ones that their flag's type is too narrow for, and narrow ones have 32 bits.
std::string NotConverted(const CLI::App& command, absl::string_view error) {
  const std::pair<std::string, std::string> said =
      absl::StrSplit(absl::StripPrefix(error, "Could not convert: "),
                     absl::MaxSplits(" = ", 1));
  const CLI::Option* option = command.get_option_no_throw(said.first);
  const std::string type = option == nullptr ? "" : option->get_type_name();
  const bool natural = absl::StartsWith(type, "UINT");
  if (!natural && !absl::StartsWith(type, "INT")) return std::string(error);
  return absl::StrCat(said.first, ": ", said.second, " is not in ",
                      natural ? "0..4294967295" : "-2147483648..2147483647");
}

// What CLI11 says of a flag, whose name it begins with.
const CLI::Option* OptionOf(const CLI::App& command, const std::string& said) {
  return command.get_option_no_throw(said.substr(0, said.find(':')));
}

// A value of a variable is said to be the variable's.
std::string NamingVariable(const CLI::App& command, const std::string& said) {
  const CLI::Option* option = OptionOf(command, said);
  if (option == nullptr || option->get_envname().empty() ||
      absl::c_linear_search(command.parse_order(), option)) {
    return said;
  }
  return absl::StrCat(option->get_envname(), ": ", said);
}

// More values than a flag takes are those of a flag that stands there again.
std::string NotOnce(const CLI::App& command, const std::string& said) {
  const CLI::Option* option = OptionOf(command, said);
  const size_t count = option == nullptr ? 0 : option->count();
  if (count < 2 || option->get_items_expected_max() != 1) return said;
  return absl::StrCat(option->get_name(), ": is given ",
                      count == 2 ? "twice" : absl::StrCat(count, " times"));
}

}  // namespace

void SetUpProgram(CLI::App& program) {
  ReadOwnVariables(program);
  program.formatter(std::make_shared<HelpFormatter>(WantsColor(STDOUT_FILENO)));
  program.set_version_flag("--version",
                           absl::StrCat(program.get_name(), " ", kVersion),
                           "Print the version and exit");
  program
      .add_option_function<std::string>(
          "--completion",
          [&program](const std::string& shell) {
            throw CLI::CallForVersion(CompletionScript(program, shell),
                                      CLI::ExitCodes::Success);
          },
          absl::StrCat("Print completion for a shell: source <(",
                       program.get_name(), " --completion bash)"))
      ->type_name("SHELL")
      ->transform(OneOf(CompletionShells()));
  program
      .add_flag_callback("--man-page",
                         [&program] {
                           throw CLI::CallForVersion(ManPage(program),
                                                     CLI::ExitCodes::Success);
                         })
      ->group("");
}

void ReadOwnVariables(CLI::App& program) { program.immediate_callback(); }

std::string UsageError(const CLI::App& program, const CLI::ParseError& error) {
  const CLI::App& command = LastCommand(program);
  const std::vector<std::string> left = program.remaining(/*recurse=*/true);
  const std::vector<std::string> commands = CommandNames(command);
  const bool required = dynamic_cast<const CLI::RequiredError*>(&error);
  if (left.empty() && required && command.get_require_subcommand_min() > 0) {
    return absl::StrCat("a command is missing: ",
                        absl::StrJoin(commands, ", "));
  }
  if (dynamic_cast<const CLI::ConversionError*>(&error)) {
    return NamingVariable(command, NotConverted(command, error.what()));
  }
  if (dynamic_cast<const CLI::ValidationError*>(&error)) {
    return NamingVariable(command, error.what());
  }
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error)) {
    return NotOnce(command, error.what());
  }
  const bool extra = dynamic_cast<const CLI::ExtrasError*>(&error);
  if (left.empty() || !(required || extra)) return error.what();
  const std::string& first = left.front();
  if (absl::StartsWith(first, "-")) {
    const std::string flag = first.substr(0, first.find('='));
    if (Takes(command, flag)) {
      return absl::StrCat(
          flag, ": comes after the command",
          commands.empty()
              ? absl::StrCat(", as in '", PathOf(command), " ", flag, "'")
              : "");
    }
    return absl::StrCat(first, ": no such flag",
                        DidYouMean(first, FlagNames(command)));
  }
  if (!commands.empty()) {
    return absl::StrCat(first, ": no such command",
                        DidYouMean(first, commands));
  }
  if (required) return error.what();
  return absl::StrCat("not understood: ", absl::StrJoin(left, " "));
}

void ReadPlainNumbers(CLI::App& command) {
  for (CLI::Option* option : command.get_options()) {
    const std::string type = option->get_type_name();
    const bool natural = absl::StartsWith(type, "UINT");
    if (natural || absl::StartsWith(type, "INT")) {
      // Behind the checks of the flag itself, which have narrower ranges.
      option->transform(PlainNumber(/*whole=*/true, !natural))
          ->check(In64Bits(!natural));
    } else if (absl::StartsWith(type, "FLOAT")) {
      option->transform(PlainNumber(/*whole=*/false, true));
    }
  }
  for (CLI::App* sub : command.get_subcommands([](CLI::App*) { return true; }))
    ReadPlainNumbers(*sub);
}

std::optional<int> ParseCommandLine(CLI::App& program, int argc, char** argv,
                                    int usage_exit) {
  ReadPlainNumbers(program);
  try {
    program.parse(argc, argv);
  } catch (const CLI::Success& asked) {
    program.exit(asked);
    if (std::cout.flush()) return 0;
    std::fprintf(stderr, "%s: standard output cannot be written\n",
                 program.get_name().c_str());
    return kExitLostOutput;
  } catch (const CLI::ParseError& error) {
    const std::string path = PathOf(LastCommand(program));
    std::fprintf(
        stderr, "%s %s\nTry '%s --help'.\n",
        Emphasize(path + ":", Emphasis::kError, WantsColor(STDERR_FILENO))
            .c_str(),
        UsageError(program, error).c_str(), path.c_str());
    return usage_exit;
  }
  return std::nullopt;
}

void AddUnknownFlag(CLI::App& command, std::string* word) {
  command
      .add_option("--unknown", *word,
                  "text without a symbol: leave it out, or take the unknown "
                  "symbol [default: the symbol where the vocabulary has one, "
                  "else refused]")
      ->transform(OneOf({kSkipUnknown, kUnknownSymbol}));
}

}  // namespace txl
