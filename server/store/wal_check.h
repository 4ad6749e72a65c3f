#pragma once

// Reads SQLite's log of a database before SQLite does: behind a damaged place
// SQLite drops all of it without a word, also what was acknowledged.

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace txl {

struct WalState {
  int64_t bad_at = -1;  // byte where the first bad frame begins; -1: none
  // Transactions whose end stands in or behind it.
  int64_t lost_commits = 0;

  // The last transaction may have been cut off by the end of the machine:
  // nobody was told of it. All others were on stable storage before it began.
  bool damaged() const { return lost_commits > 1; }
};

// The log of a database with pages of kWalPageBytes, which was made empty
// whenever it was moved into the database: so all its frames are of one round.
// A file that is missing or that ends within a frame is sound. Errors:
// Unavailable where it cannot be read. REQUIRES: nobody has the database open.
inline constexpr int64_t kWalPageBytes = 4096;
absl::StatusOr<WalState> ReadWal(const std::string& path);

// DataLoss, naming the file and the place, where the log is damaged.
absl::Status CheckWal(const std::string& path, const WalState& state);

}  // namespace txl
