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

  // libedit when standard input is a terminal, plain lines otherwise. The
  // prompt is shown on a terminal only. `history_file` may be empty: the
  // history then ends with the program.
  static std::unique_ptr<LineReader> Create(const std::string& prompt,
                                            const std::string& history_file);
  virtual ~LineReader() = default;
  virtual Result Read(std::string* line) = 0;
};

}  // namespace txl::cli
