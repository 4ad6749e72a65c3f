#pragma once

// The journal of sessions in SQLite:
//
//   DATA/LOCK         held by the process that has the store open
//   DATA/journal.db   the database (server/store/session_tables.h)
//   DATA/reserve      room that is given up when the disk is full
//   DATA/FAILED       the storage failed: no process opens the store until it
//                     has been copied (recover)
//   DATA/quarantine/  what could not be read
//
// One thread owns the only connection. It takes all entries that have come and
// commits them together, each `interval`, or at once when somebody waits.

#include <memory>

#include "absl/status/statusor.h"
#include "server/session/session_journal.h"
#include "server/store/journal_entry.h"

namespace txl {

// Errors name the folder or file: FailedPrecondition (another process has it, a
// newer format, FAILED without `recover`), Unavailable, Unknown (the database
// is damaged as a whole).
absl::StatusOr<std::unique_ptr<SessionJournal>> OpenSqliteJournal(
    const SqliteJournalOptions& options);

}  // namespace txl
