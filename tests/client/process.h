#pragma once

// Programs as subprocesses of a test.

#include <sys/types.h>

#include <string>
#include <vector>

namespace txl::testing {

struct Completed {
  int exit_code = 0;  // 128 + signal when a signal ended it
  std::string out;
  std::string err;
};

// Runs a program to its end.
Completed RunProgram(const std::vector<std::string>& argv,
                     const std::string& input = "");

// A running program whose standard output is read as it comes. Killed by the
// destructor unless it was waited for.
class Process {
 public:
  enum class Terminal {
    kNone,    // standard input is empty, output a pipe
    kPseudo,  // input and output are a pseudo-terminal
  };
  explicit Process(const std::vector<std::string>& argv,
                   Terminal terminal = Terminal::kNone);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  // Reads until `end` was seen or the output ends; returns what came up to and
  // including `end`.
  std::string ReadUntil(const std::string& end);
  std::string ReadLine() { return ReadUntil("\n"); }
  std::string ReadRest() { return ReadUntil(""); }

  void Type(const std::string& keys);  // REQUIRES: kPseudo
  // Waits until the program reads key by key: what is typed before a line
  // editor has taken the terminal over may be read as a cooked line.
  void AwaitLineEditor();  // REQUIRES: kPseudo
  void Signal(int signal);
  // Exit code as in Completed. Reads nothing.
  int Wait();
  pid_t pid() const { return pid_; }
  // Standard error so far; empty for kPseudo, where it is part of the output.
  std::string Err() const;

 private:
  pid_t pid_ = -1;
  int out_ = -1;  // to read from; for kPseudo also to write to
  int err_ = -1;
  std::string buffer_;
};

}  // namespace txl::testing
