#pragma once

// Lines from a person (with editing and history) or from a file.

#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "client/canceller.h"

namespace txl::cli {

class LineReader {
 public:
  enum class Result {
    kLine,         // *line is set, without its line end, \n or \r\n
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

// Ctrl-C as an event: SIGINT ends what runs, not the program.

// A descriptor that becomes readable with SIGINT. The first call installs the
// handler, for the rest of the process.
int InterruptFd();
// Forgets an interrupt that has come. True: there was one.
bool TakeInterrupt();

// While it lives, an interrupt cancels.
class CancelOnInterrupt {
 public:
  // `canceller` outlives the watch.
  explicit CancelOnInterrupt(Canceller* canceller);
  ~CancelOnInterrupt();
  CancelOnInterrupt(const CancelOnInterrupt&) = delete;
  CancelOnInterrupt& operator=(const CancelOnInterrupt&) = delete;

  // It did.
  bool interrupted() const { return interrupted_; }

 private:
  int stop_fd_;
  std::atomic<bool> interrupted_{false};
  std::thread thread_;
};

}  // namespace txl::cli
