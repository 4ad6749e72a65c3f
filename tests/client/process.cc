#include "tests/client/process.h"

#include <fcntl.h>
#include <pty.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <thread>

namespace txl::testing {
namespace {

std::vector<char*> Pointers(const std::vector<std::string>& argv) {
  std::vector<char*> pointers;
  for (const std::string& argument : argv) {
    pointers.push_back(const_cast<char*>(argument.c_str()));
  }
  pointers.push_back(nullptr);
  return pointers;
}

// Children get their descriptors by dup2 only.
int MemoryFile(const std::string& content) {
  const int fd = memfd_create("test", MFD_CLOEXEC);
  if (write(fd, content.data(), content.size()) !=
      static_cast<ssize_t>(content.size())) {
    abort();
  }
  lseek(fd, 0, SEEK_SET);
  return fd;
}

std::string ReadAll(int fd) {
  std::string text;
  char buffer[4096];
  off_t offset = 0;
  ssize_t got = 0;
  while ((got = pread(fd, buffer, sizeof(buffer), offset)) > 0) {
    text.append(buffer, got);
    offset += got;
  }
  return text;
}

pid_t Spawn(const std::vector<std::string>& argv, int in, int out, int err) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err, STDERR_FILENO);
  pid_t pid = -1;
  if (posix_spawn(&pid, argv[0].c_str(), &actions, nullptr,
                  Pointers(argv).data(), environ) != 0) {
    abort();
  }
  posix_spawn_file_actions_destroy(&actions);
  return pid;
}

int WaitFor(pid_t pid) {
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

Completed RunProgram(const std::vector<std::string>& argv,
                     const std::string& input) {
  const int in = MemoryFile(input);
  const int out = MemoryFile("");
  const int err = MemoryFile("");
  Completed completed;
  completed.exit_code = WaitFor(Spawn(argv, in, out, err));
  completed.out = ReadAll(out);
  completed.err = ReadAll(err);
  for (const int fd : {in, out, err}) close(fd);
  return completed;
}

Process::Process(const std::vector<std::string>& argv, Terminal terminal) {
  if (terminal == Terminal::kPseudo) {
    std::vector<char*> pointers = Pointers(argv);
    pid_ = forkpty(&out_, nullptr, nullptr, nullptr);
    if (pid_ == 0) {
      execv(pointers[0], pointers.data());
      _exit(127);
    }
    return;
  }
  int pipe_fds[2];
  if (pipe2(pipe_fds, O_CLOEXEC) != 0) abort();
  const int in = MemoryFile("");
  err_ = MemoryFile("");
  pid_ = Spawn(argv, in, pipe_fds[1], err_);
  out_ = pipe_fds[0];
  close(pipe_fds[1]);
  close(in);
}

Process::~Process() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    WaitFor(pid_);
  }
  close(out_);
  if (err_ >= 0) close(err_);
}

std::string Process::ReadUntil(const std::string& end) {
  while (true) {
    const size_t found = end.empty() ? std::string::npos : buffer_.find(end);
    if (found != std::string::npos) {
      std::string text = buffer_.substr(0, found + end.size());
      buffer_.erase(0, found + end.size());
      return text;
    }
    char bytes[4096];
    const ssize_t got = read(out_, bytes, sizeof(bytes));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return std::move(buffer_);  // a closed terminal is EIO
    buffer_.append(bytes, got);
  }
}

void Process::AwaitLineEditor() {
  termios settings = {};
  while (tcgetattr(out_, &settings) == 0 && (settings.c_lflag & ICANON) != 0) {
    std::this_thread::yield();
  }
}

void Process::Type(const std::string& keys) {
  if (write(out_, keys.data(), keys.size()) !=
      static_cast<ssize_t>(keys.size())) {
    abort();
  }
}

void Process::Signal(int signal) { kill(pid_, signal); }

int Process::Wait() {
  const int code = WaitFor(pid_);
  pid_ = -1;
  return code;
}

std::string Process::Err() const { return err_ < 0 ? "" : ReadAll(err_); }

}  // namespace txl::testing
