#pragma once

// The folder of a store: whose it is, and what lies there beside the database.

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace txl {

// Thread-compatible.
class StoreFolder {
 public:
  // Bytes of the file that is given up when the disk is full.
  static constexpr int64_t kReserveBytes = 16 << 20;

  // Makes the folder (0700) where it is missing, and locks it for this process
  // until this object is gone. Errors name the folder: FailedPrecondition where
  // another process has it, Unavailable.
  static absl::StatusOr<std::unique_ptr<StoreFolder>> Open(
      const std::string& path);
  ~StoreFolder();

  const std::string& path() const { return path_; }
  std::string database() const { return path_ + "/journal.db"; }

  // The storage failed once.
  bool failed() const;
  void MarkFailed() const;
  void ClearFailed() const;
  // Best effort: the room for deletions on a full disk.
  void MakeReserve() const;
  void GiveUpReserve() const;
  // Best effort: keeps bytes that could not be read under a name made of `id`.
  void Quarantine(absl::string_view id, absl::string_view bytes) const;

 private:
  StoreFolder(std::string path, int lock)
      : path_(std::move(path)), lock_(lock) {}

  const std::string path_;
  const int lock_;
};

}  // namespace txl
