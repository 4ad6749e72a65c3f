#include "client/cli/line_reader.h"

#include <histedit.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <clocale>
#include <cstdint>
#include <cstdio>
#include <cwchar>
#include <iostream>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "client/text_check.h"

namespace txl::cli {
namespace {

constexpr int kHistoryLines = 1000;

// A terminal's "bracketed paste": asked for it, it marks what is pasted.
constexpr char kMarkPastes[] = "\x1b[?2004h";
constexpr char kUnmarkPastes[] = "\x1b[?2004l";
constexpr char kPasteStart[] = "\x1b[200~";
constexpr absl::string_view kPasteEnd = "\x1b[201~";

class PlainReader final : public LineReader {
 public:
  bool is_terminal() const override { return false; }

  Result Read(const std::string& /*prompt*/, std::string* line) override {
    if (!std::getline(std::cin, *line)) return Result::kEnd;
    if (first_) line->erase(0, line->size() - WithoutMark(*line).size());
    first_ = false;
    if (absl::EndsWith(*line, "\r")) line->pop_back();  // a file of Windows
    return Result::kLine;
  }

 private:
  bool first_ = true;  // line, before which a file may have a mark
};

class EditReader final : public LineReader {
 public:
  explicit EditReader(const std::string& history_file)
      : history_file_(history_file) {
    InterruptFd();
    // The API's text is UTF-8, also where the terminal's locale is not set.
    if (setlocale(LC_CTYPE, "") == nullptr || MB_CUR_MAX == 1) {
      setlocale(LC_CTYPE, "C.UTF-8");
    }
    edit_ = el_init("txl", stdin, stdout, stderr);
    history_ = history_init();
    HistEvent event;
    history(history_, &event, H_SETSIZE, kHistoryLines);
    history(history_, &event, H_SETUNIQUE, 1);
    if (!history_file_.empty()) {
      history(history_, &event, H_LOAD, history_file_.c_str());
    }
    el_set(edit_, EL_CLIENTDATA, this);
    el_set(edit_, EL_PROMPT, &Prompt);
    el_set(edit_, EL_EDITOR, "emacs");
    el_set(edit_, EL_HIST, history, history_);
    el_set(edit_, EL_GETCFN, &GetCharacter);
    // The wide form: the narrow one keeps copies of both texts for ever.
    el_wset(edit_, EL_ADDFN, L"txl-paste", L"Insert what is pasted", &Paste);
    el_set(edit_, EL_BIND, kPasteStart, "txl-paste", nullptr);
    el_source(edit_, nullptr);
  }

  ~EditReader() override {
    HistEvent event;
    if (!history_file_.empty()) {
      history(history_, &event, H_SAVE, history_file_.c_str());
    }
    history_end(history_);
    el_end(edit_);
  }

  bool is_terminal() const override { return true; }

  Result Read(const std::string& prompt, std::string* line) override {
    TakeInterrupt();
    interrupted_ = false;
    prompt_ = prompt;
    int length = 0;
    std::fputs(kMarkPastes, stdout);
    std::fflush(stdout);
    const char* text = el_gets(edit_, &length);
    std::fputs(kUnmarkPastes, stdout);
    std::fflush(stdout);
    if (interrupted_) {
      el_reset(edit_);
      std::fputs("\n", stdout);
      return Result::kInterrupted;
    }
    if (text == nullptr || length <= 0) return Result::kEnd;
    line->assign(text, length);
    while (!line->empty() && line->back() == '\n') line->pop_back();
    if (!line->empty()) {
      HistEvent event;
      history(history_, &event, H_ENTER, line->c_str());
    }
    return Result::kLine;
  }

 private:
  static EditReader* Self(EditLine* edit) {
    EditReader* self = nullptr;
    el_get(edit, EL_CLIENTDATA, &self);
    return self;
  }

  static const char* Prompt(EditLine* edit) {
    return Self(edit)->prompt_.c_str();
  }

  // Reads from the mark of a paste's start to that of its end.
  static unsigned char Paste(EditLine* edit, wint_t /*key*/) {
    std::string text;
    for (char byte = 0; !absl::EndsWith(text, kPasteEnd);) {
      if (read(STDIN_FILENO, &byte, 1) != 1) return CC_EOF;
      text.push_back(byte == '\r' ? '\n' : byte);  // as terminals send Enter
    }
    text.resize(text.size() - kPasteEnd.size());
    el_insertstr(edit, text.c_str());
    return CC_REFRESH;
  }

  // libedit draws for the width that it knows.
  void FollowResize() {
    winsize size = {};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) return;
    if (columns_ != 0 && size.ws_col != columns_) el_resize(edit_);
    columns_ = size.ws_col;
  }

  // Next character of the terminal; an interrupt ends the line, whichever
  // thread the signal was delivered to.
  static int GetCharacter(EditLine* edit, wchar_t* character) {
    EditReader* self = Self(edit);
    self->FollowResize();
    std::string bytes;
    while (true) {
      pollfd fds[] = {{STDIN_FILENO, POLLIN, 0}, {InterruptFd(), POLLIN, 0}};
      if (poll(fds, 2, -1) < 0 && errno != EINTR) return -1;
      if (TakeInterrupt()) {
        self->interrupted_ = true;
        return 0;
      }
      char byte = 0;
      if ((fds[0].revents & (POLLIN | POLLHUP)) == 0) continue;
      if (read(STDIN_FILENO, &byte, 1) != 1) return 0;
      bytes.push_back(byte);
      std::mbstate_t state = {};
      const size_t used =
          std::mbrtowc(character, bytes.data(), bytes.size(), &state);
      if (used == static_cast<size_t>(-2)) continue;  // incomplete
      if (used != static_cast<size_t>(-1)) return 1;
      bytes.clear();  // no character: dropped
    }
  }

  std::string prompt_;
  const std::string history_file_;
  EditLine* edit_ = nullptr;
  History* history_ = nullptr;
  bool interrupted_ = false;
  int columns_ = 0;  // of the terminal, at the last key
};

}  // namespace

std::unique_ptr<LineReader> LineReader::Create(
    const std::string& history_file) {
  if (!isatty(STDIN_FILENO)) return std::make_unique<PlainReader>();
  return std::make_unique<EditReader>(history_file);
}

namespace {

int interrupt_fd = -1;

void Notify(int fd) {
  const uint64_t one = 1;
  const ssize_t written = write(fd, &one, sizeof(one));
  (void)written;  // a full counter is readable too
}

// Only what is safe in a handler: one write, errno kept.
void OnSignal(int /*signal*/) {
  const int saved = errno;
  Notify(interrupt_fd);
  errno = saved;
}

int Install() {
  interrupt_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  struct sigaction action = {};
  action.sa_handler = OnSignal;
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  return interrupt_fd;
}

}  // namespace

int InterruptFd() {
  static const int fd = Install();
  return fd;
}

bool TakeInterrupt() {
  uint64_t count = 0;
  return read(InterruptFd(), &count, sizeof(count)) == sizeof(count);
}

CancelOnInterrupt::CancelOnInterrupt(Canceller* canceller)
    : stop_fd_(eventfd(0, EFD_CLOEXEC)) {
  const int interrupt = InterruptFd();
  thread_ = std::thread([this, canceller, interrupt] {
    pollfd fds[] = {{interrupt, POLLIN, 0}, {stop_fd_, POLLIN, 0}};
    while (poll(fds, 2, -1) < 0 && errno == EINTR) {
    }
    if (!TakeInterrupt()) return;
    interrupted_ = true;
    canceller->Cancel();
  });
}

CancelOnInterrupt::~CancelOnInterrupt() {
  Notify(stop_fd_);
  thread_.join();
  close(stop_fd_);
}

}  // namespace txl::cli
