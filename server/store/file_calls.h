#pragma once

// System calls on files with errors as the store tells them: full
// (ResourceExhausted) or anything else (Unavailable), naming the path.

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace txl {

// What `error` (an errno) means: ENOSPC and EDQUOT are ResourceExhausted, all
// others Unavailable. "PATH: cannot WHAT: reason".
absl::Status FileError(absl::string_view path, absl::string_view what,
                       int error);

// An open file, closed with the object. Move-only.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept;
  FileDescriptor& operator=(FileDescriptor&& other) noexcept;
  ~FileDescriptor();

  int fd() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

// All of `bytes`, at the file's place. Errors: FileError.
absl::Status WriteFully(int fd, const std::string& path,
                        absl::string_view bytes);

// `size` bytes into `out`, as many as are asked for. Errors: OutOfRange where
// the file ends before, FileError.
absl::Status ReadFully(int fd, const std::string& path, void* out, size_t size);

// What was made, renamed or removed in the folder is on stable storage.
absl::Status SyncFolder(const std::string& path);

// A folder for the owner alone, unless there is one. Its name is on stable
// storage. Errors: FileError.
absl::Status MakeFolder(const std::string& path);

}  // namespace txl
