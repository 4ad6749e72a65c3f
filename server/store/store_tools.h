#pragma once

// A store that no server has open, looked through and mended. No model is
// needed: the store knows the vocabulary size of each of its models.

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/store/store_folder.h"
#include "server/store/store_scan.h"

namespace txl {

// Each call locks the folder. Errors: NotFound (no store there);
// FailedPrecondition (a process has it open, a newer format); Unavailable,
// ResourceExhausted; Unknown (not to be read as a database: restore a backup).

// Reads every row and changes nothing but SQLite's own log.
absl::StatusOr<CheckedStore> CheckStore(const std::string& folder,
                                        const StoreProgress& progress);

// Damaged sessions go, what is left of them to DATA/quarantine; damaged turns
// go from the log, their sessions are as before; contents without a session
// go; the database is copied to a new file, and FAILED is lifted. Where its
// pages are damaged, the sessions that can still be read are recreated,
// without the records of their last turns, and the old database stays in
// quarantine. Errors: also Unknown where no session can be read. What was
// found; sessions that only had a damaged turn are among the damaged.
absl::StatusOr<CheckedStore> RepairStore(const std::string& folder,
                                         const StoreProgress& progress);

struct CompactedStore {
  int64_t bytes_before = 0;
  int64_t bytes_after = 0;
};
// Copies the database to a new file without free pages; needs as much room.
absl::StatusOr<CompactedStore> CompactStore(const std::string& folder,
                                            const StoreProgress& progress);

// A store's database copied to a new file, which then takes its place: sheds
// free pages, and pages that the kernel holds but the disk never got.

// A crash at any moment leaves the old database or the new one, whole.
// REQUIRES: the database is not open. Errors: as Database's; the old database
// is then in its place.
absl::Status CopyDatabase(const StoreFolder& folder, const std::string& vfs);

// HalfCopyOf is the path of a copy that is not whole yet. Once it is whole and
// not open, TakeCopy puts it in the database's place as above.
std::string HalfCopyOf(const StoreFolder& folder);
absl::Status TakeCopy(const StoreFolder& folder);

// Before the database is opened: does the rest of a copy that a crash broke off
// when it was whole, and clears away one that was not.
absl::Status FinishCopy(const StoreFolder& folder);

// A database of no bytes, or a log without one, is what is left of a store:
// SQLite would remove the log and begin again. Errors: Unknown.
absl::Status CheckIsThere(const StoreFolder& folder);
// A new database, which a crash leaves whole or not there. REQUIRES: there is
// none.
absl::Status MakeDatabase(const StoreFolder& folder);

}  // namespace txl
