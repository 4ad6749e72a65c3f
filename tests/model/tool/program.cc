#include "tests/model/tool/program.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace txl {

std::string ReadTestFile(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

void WriteTestFile(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

std::string FreshTestFolder(const std::string& name) {
  // Tests run as processes of their own, several at a time.
  const std::string folder = testing::TempDir() + "/txl_model_test_" +
                             std::to_string(getpid()) + "_" + name;
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return folder;
}

namespace {

// Runs the program with its streams in files, then `after`, in a shell.
ProgramResult RunInShell(const std::string& arguments,
                         const std::string& after) {
  const std::string folder = FreshTestFolder(
      std::string("streams_") +
      testing::UnitTest::GetInstance()->current_test_info()->name());
  const std::string command = "cd " + folder + "; " + TXL_MODEL_PROGRAM + " " +
                              arguments + " >out 2>err </dev/null" + after;
  const int status = std::system(command.c_str());
  ProgramResult result;
  if (WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
  result.output = ReadTestFile(folder + "/out");
  result.errors = ReadTestFile(folder + "/err");
  return result;
}

}  // namespace

ProgramResult RunTxlModel(const std::string& arguments) {
  return RunInShell(arguments, "");
}

ProgramResult InterruptTxlModel(const std::string& arguments,
                                const std::string& wait_for) {
  return RunInShell(arguments,
                    " & pid=$!; while kill -0 $pid && ! grep -q '" + wait_for +
                        "' err; do sleep 0.02; done; kill -INT $pid; "
                        "wait $pid");
}

}  // namespace txl
