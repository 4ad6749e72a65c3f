#pragma once

// Lines from a person (with editing and history) or from a file.

#include <memory>
#include <string>

namespace txl::cli {

class LineReader {
 public:
  enum class Result {
    kLine,         // *line is set, without its line end
    kInterrupted,  // Ctrl-C; what was typed is dropped
    kEnd,          // end of input
  };

  // libedit when standard input is a terminal, plain lines otherwise.
  // `history_file` may be empty: the history then ends with the program.
  static std::unique_ptr<LineReader> Create(const std::string& history_file);
  virtual ~LineReader() = default;
  // Whether a person types.
  virtual bool is_terminal() const = 0;
  // `prompt` is shown on a terminal only. What is pasted there is one line,
  // with the line ends that stand in it.
  virtual Result Read(const std::string& prompt, std::string* line) = 0;
};

}  // namespace txl::cli
