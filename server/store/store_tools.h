#pragma once

// A store that no server has open, looked through and mended. No model is
// needed: the store knows the vocabulary size of each of its models.

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "server/store/store_report.h"

namespace txl {

// Each call locks the folder. Errors: NotFound (no store there);
// FailedPrecondition (a process has it open, a newer format); Unavailable,
// ResourceExhausted; Unknown (not to be read as a database: restore a backup).

// Reads every row and changes nothing but SQLite's own log.
absl::StatusOr<StoreReport> CheckStore(const std::string& folder,
                                       const StoreProgress& progress);

// Damaged sessions go, what is left of them to DATA/quarantine; damaged turns
// go from the log, their sessions are as before; contents without a session
// go; the database is copied to a new file, and FAILED is lifted. Where its
// pages are damaged, the sessions that can still be read are made anew, without
// the records of their last turns, and the old database stays in quarantine.
// Errors: also Unknown where no session can be read. What was found; sessions
// that only had a damaged turn are among the damaged.
absl::StatusOr<StoreReport> RepairStore(const std::string& folder,
                                        const StoreProgress& progress);

struct CompactedStore {
  int64_t bytes_before = 0;
  int64_t bytes_after = 0;
};
// Copies the database to a new file without free pages; needs as much room.
absl::StatusOr<CompactedStore> CompactStore(const std::string& folder,
                                            const StoreProgress& progress);

}  // namespace txl
