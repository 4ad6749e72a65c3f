#pragma once

// Runs the built txl-model as a user would.

#include <string>

namespace txl {

struct ProgramResult {
  int exit_code = -1;
  std::string output;  // standard output
  std::string errors;  // standard error
};

// `arguments` as in a shell.
ProgramResult RunTxlModel(const std::string& arguments);

// The same, sending SIGINT as soon as the errors hold `wait_for`.
ProgramResult InterruptTxlModel(const std::string& arguments,
                                const std::string& wait_for);

// A fresh folder for files of one test.
std::string FreshTestFolder(const std::string& name);

std::string ReadTestFile(const std::string& path);
void WriteTestFile(const std::string& path, const std::string& text);

}  // namespace txl
