#pragma once

// A file that takes the name that a user gave it when it is whole.

#include <sys/types.h>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace txl {

// What the links of `path` lead to, whether it is there or not; a descriptor
// where they lead to one.
std::string WithoutLinks(std::filesystem::path path);

class OutputFile {
 public:
  // A new file beside `path`, or beside what the link `path` leads to. What is
  // there and is not a regular file, as a pipe or a device, is written itself,
  // and so is a descriptor (/dev/stdout). `mode`: of a new file. Errors, of all
  // functions, name the path.
  static absl::StatusOr<std::unique_ptr<OutputFile>> Open(
      const std::string& path, mode_t mode = 0666);
  // Without Finish nothing is left but what `path` was.
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  absl::Status Write(absl::string_view bytes);
  // Once, at the end: the file is on the disk before it takes its name.
  absl::Status Finish();

 private:
  explicit OutputFile(std::string path) : path_(std::move(path)) {}
  absl::Status Create(mode_t mode);
  absl::Status Error() const;  // errno's

  const std::string path_;  // as the user gave it
  std::string target_;      // path_ without links
  std::string aside_;       // empty: the target itself is written
  int fd_ = -1;
};

}  // namespace txl
