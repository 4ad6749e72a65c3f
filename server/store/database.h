#pragma once

// SQLite as this project uses it: one connection, one thread, statuses.

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

struct sqlite3;
struct sqlite3_stmt;

namespace txl {

// What SQLite's result code says: ResourceExhausted (no room), Unavailable (the
// storage failed), Unknown (the file is damaged or no database), Internal.
absl::Status DatabaseError(int code, absl::string_view what);

// Makes the file for its owner alone where there is none; one that is there
// loses the rights of others than its owner and group. SQLite gives a log the
// rights of its database. Who opens the file hears of errors. REQUIRES: it is
// not open.
void MakePrivate(const std::string& path);

// A prepared statement. Parameters are bound by their number, from 1 on, and
// are gone after the statement has run. Not thread-safe.
class Statement {
 public:
  Statement() = default;
  Statement(Statement&&) noexcept;
  Statement& operator=(Statement&&) noexcept;
  ~Statement();

  Statement& Bind(int64_t value);
  Statement& Bind(absl::string_view text);
  Statement& BindBlob(absl::string_view bytes);
  Statement& BindNull();

  // Runs to the end; rows are ignored.
  absl::Status Run();
  // The next row: true, with its columns from 0 on; false: there is none, and
  // the statement may be bound again.
  absl::StatusOr<bool> Step();
  // Before the last row was seen.
  void Reset();
  int64_t Int(int column) const;
  std::string Blob(int column) const;  // or text

 private:
  friend class Database;
  explicit Statement(sqlite3_stmt* statement) : statement_(statement) {}

  sqlite3_stmt* statement_ = nullptr;
  int bound_ = 0;
};

struct DatabaseOptions {
  std::string path;
  std::string vfs;        // empty: SQLite's own
  int64_t max_bytes = 0;  // of the database; 0: no limit
};

// Not thread-safe.
class Database {
 public:
  // Opens or makes the file; no other connection can open it until this object
  // is gone. Every commit is on stable storage when it returns.
  static absl::StatusOr<std::unique_ptr<Database>> Open(
      const DatabaseOptions& options);
  ~Database();

  absl::Status Run(const char* sql);
  // The only number that a query gives.
  absl::StatusOr<int64_t> Number(const char* sql);
  absl::StatusOr<Statement> Prepare(const char* sql);
  // Limits the size of the database; 0: no limit. Existing content stays.
  absl::Status Limit(int64_t max_bytes);
  // Moves what commits wrote into the database's own file.
  absl::Status Checkpoint();
  // Whether a transaction is open: some errors end it.
  bool InTransaction() const;

 private:
  explicit Database(sqlite3* handle) : handle_(handle) {}
  absl::Status Error(int code, absl::string_view what) const;

  sqlite3* const handle_;
};

// What clients are told of the store of sessions.

absl::Status StoreFullError();    // RESOURCE_EXHAUSTED, STORE_FULL
absl::Status StoreFailedError();  // UNAVAILABLE, STORE_UNAVAILABLE

}  // namespace txl
