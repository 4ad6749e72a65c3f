#pragma once

// A store's database copied to a new file, which then takes its place: sheds
// free pages, and pages that the kernel holds but the disk never got.

#include <string>

#include "absl/status/status.h"
#include "server/store/store_folder.h"

namespace txl {

// A crash at any moment leaves the old database or the new one, whole.
// REQUIRES: the database is not open. Errors: as Database's; the old database
// is then in its place.
absl::Status CopyDatabase(const StoreFolder& folder, const std::string& vfs);

// Where a copy is made that is not whole yet; and once it is and nobody has it
// open: takes the database's place as above.
std::string HalfCopyOf(const StoreFolder& folder);
absl::Status TakeCopy(const StoreFolder& folder);

// Before the database is opened: does the rest of a copy that a crash broke off
// when it was whole, and clears away one that was not.
absl::Status FinishCopy(const StoreFolder& folder);

}  // namespace txl
