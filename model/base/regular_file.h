#pragma once

// Files of a model directory, opened so that none of them can hang or exhaust
// the program: a pipe, a device or a directory is refused at once, and so is
// what is larger than it may be.

#include <cstdint>
#include <limits>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace txl {

// Open for reading; closed with the object. Movable.
class RegularFile {
 public:
  static constexpr int64_t kAnySize = std::numeric_limits<int64_t>::max();

  // Never waits. Errors name the path: NotFound when there is no such file,
  // InvalidArgument when it is not a regular file, has more than max_bytes or
  // cannot be opened. Symbolic links are followed.
  static absl::StatusOr<RegularFile> Open(const std::string& path,
                                          int64_t max_bytes = kAnySize);
  RegularFile(RegularFile&& other) noexcept;
  RegularFile& operator=(RegularFile&& other) noexcept;
  ~RegularFile();

  int fd() const { return fd_; }
  // The size that it had when it was opened.
  int64_t bytes() const { return bytes_; }

 private:
  RegularFile(int fd, int64_t bytes) : fd_(fd), bytes_(bytes) {}

  int fd_ = -1;
  int64_t bytes_ = 0;
};

// The whole content. Errors as of Open; also InvalidArgument when it cannot be
// read, or grows beyond max_bytes meanwhile.
absl::StatusOr<std::string> ReadRegularFile(const std::string& path,
                                            int64_t max_bytes);

// What reading of files answers with when they are not what they should be.

// INVALID_ARGUMENT. `what` has the file for its subject, or "it".
inline absl::Status Bad(absl::string_view what) {
  return absl::InvalidArgumentError(what);
}

// INVALID_ARGUMENT, "file: what".
inline absl::Status Bad(absl::string_view file, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(file, ": ", what));
}

}  // namespace txl
