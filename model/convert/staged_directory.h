#pragma once

// A folder that appears whole or not at all.

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace txl {

// Files are written to path(), a folder DIR.partial-PID beside DIR; Commit
// gives it its name. What a crashed process left is removed by the next one
// that writes the same DIR. Not thread-safe.
class StagedDirectory {
 public:
  // Errors: AlreadyExists when there is anything at `dir`; NotFound when the
  // folder above it does not exist; those of the file system, naming the path.
  static absl::StatusOr<std::unique_ptr<StagedDirectory>> Create(
      const std::string& dir);
  // Removes everything unless Commit succeeded.
  ~StagedDirectory();
  StagedDirectory(const StagedDirectory&) = delete;
  StagedDirectory& operator=(const StagedDirectory&) = delete;

  const std::string& path() const { return path_; }

  // Brings all files to the disk and renames the folder to DIR. Errors:
  // AlreadyExists when something came to be at DIR meanwhile;
  // FailedPrecondition after a first success.
  absl::Status Commit();

 private:
  StagedDirectory(std::string dir, std::string path, int lock)
      : dir_(std::move(dir)), path_(std::move(path)), lock_(lock) {}

  const std::string dir_;
  const std::string path_;
  const int lock_;  // descriptor of the folder; held locked while it is ours
  bool committed_ = false;
};

}  // namespace txl
