#include "server/store/database.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "model/base/status_macros.h"
#include "server/base/error.h"

namespace txl {
namespace {

constexpr int64_t kPageBytes = 4096;
constexpr int64_t kMostPages = 4294967294;  // SQLite's own limit

}  // namespace

absl::Status DatabaseError(int code, absl::string_view what) {
  const std::string message =
      absl::StrCat(what, ": ", sqlite3_errstr(code), " (", code, ")");
  switch (code & 0xff) {
    case SQLITE_FULL:
      return absl::ResourceExhaustedError(message);
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return absl::UnknownError(message);
    case SQLITE_IOERR:
    case SQLITE_CANTOPEN:
    case SQLITE_READONLY:
      return absl::UnavailableError(message);
    default:
      return absl::InternalError(message);
  }
}

Statement::Statement(Statement&& other) noexcept
    : statement_(std::exchange(other.statement_, nullptr)),
      bound_(other.bound_) {}

Statement& Statement::operator=(Statement&& other) noexcept {
  std::swap(statement_, other.statement_);
  std::swap(bound_, other.bound_);
  return *this;
}

Statement::~Statement() { sqlite3_finalize(statement_); }

Statement& Statement::Bind(int64_t value) {
  sqlite3_bind_int64(statement_, ++bound_, value);
  return *this;
}

Statement& Statement::Bind(absl::string_view text) {
  sqlite3_bind_text64(statement_, ++bound_, text.data(), text.size(),
                      SQLITE_TRANSIENT, SQLITE_UTF8);
  return *this;
}

Statement& Statement::BindBlob(absl::string_view bytes) {
  sqlite3_bind_blob64(statement_, ++bound_, bytes.data(), bytes.size(),
                      SQLITE_TRANSIENT);
  return *this;
}

Statement& Statement::BindNull() {
  sqlite3_bind_null(statement_, ++bound_);
  return *this;
}

absl::Status Statement::Run() {
  absl::StatusOr<bool> row = true;
  while (row.ok() && *row) row = Step();
  return row.status();
}

absl::StatusOr<bool> Statement::Step() {
  const int code = sqlite3_step(statement_);
  if (code == SQLITE_ROW) return true;
  const int extended = sqlite3_extended_errcode(sqlite3_db_handle(statement_));
  Reset();
  if (code == SQLITE_DONE) return false;
  return DatabaseError(extended, "the store of sessions");
}

void Statement::Reset() {
  sqlite3_reset(statement_);
  sqlite3_clear_bindings(statement_);
  bound_ = 0;
}

int64_t Statement::Int(int column) const {
  return sqlite3_column_int64(statement_, column);
}

std::string Statement::Blob(int column) const {
  const void* bytes = sqlite3_column_blob(statement_, column);
  const int count = sqlite3_column_bytes(statement_, column);
  return bytes == nullptr ? ""
                          : std::string(static_cast<const char*>(bytes),
                                        static_cast<size_t>(count));
}

void MakePrivate(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0) return;
  struct stat about;
  if (::fstat(file, &about) == 0 && (about.st_mode & S_IRWXO) != 0) {
    ::fchmod(file, about.st_mode & 0770);
  }
  ::close(file);
}

absl::StatusOr<std::unique_ptr<Database>> Database::Open(
    const DatabaseOptions& options) {
  MakePrivate(options.path);
  sqlite3* handle = nullptr;
  const int code = sqlite3_open_v2(
      options.path.c_str(), &handle,
      SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
      options.vfs.empty() ? nullptr : options.vfs.c_str());
  std::unique_ptr<Database> database(new Database(handle));
  if (code != SQLITE_OK) return DatabaseError(code, options.path);
  sqlite3_extended_result_codes(handle, 1);
  // One connection only, so that SQLite needs no shared memory, and its bug of
  // two connections that restart the log at once cannot be met.
  for (const char* sql :
       {"PRAGMA locking_mode=EXCLUSIVE", "PRAGMA page_size=4096",
        "PRAGMA journal_mode=WAL", "PRAGMA synchronous=FULL",
        "PRAGMA wal_autocheckpoint=0", "PRAGMA temp_store=MEMORY"}) {
    absl::Status status = database->Run(sql);
    if (!status.ok()) {
      return absl::Status(status.code(),
                          absl::StrCat(options.path, ": ", status.message()));
    }
  }
  TXL_RETURN_IF_ERROR(database->Limit(options.max_bytes));
  return database;
}

absl::Status Database::Limit(int64_t max_bytes) {
  const int64_t pages =
      max_bytes > 0 ? std::clamp<int64_t>(max_bytes / kPageBytes, 1, kMostPages)
                    : kMostPages;
  return Run(absl::StrCat("PRAGMA max_page_count=", pages).c_str());
}

Database::~Database() { sqlite3_close_v2(handle_); }

absl::Status Database::Error(int code, absl::string_view what) const {
  return DatabaseError(code, what);
}

absl::Status Database::Run(const char* sql) {
  const int code = sqlite3_exec(handle_, sql, nullptr, nullptr, nullptr);
  if (code == SQLITE_OK) return absl::OkStatus();
  return Error(sqlite3_extended_errcode(handle_), "the store of sessions");
}

absl::StatusOr<int64_t> Database::Number(const char* sql) {
  TXL_ASSIGN_OR_RETURN(Statement statement, Prepare(sql));
  TXL_ASSIGN_OR_RETURN(const bool row, statement.Step());
  if (!row) return absl::InternalError(absl::StrCat("no row: ", sql));
  const int64_t number = statement.Int(0);
  statement.Reset();
  return number;
}

absl::StatusOr<Statement> Database::Prepare(const char* sql) {
  sqlite3_stmt* statement = nullptr;
  const int code = sqlite3_prepare_v3(
      handle_, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
  if (code != SQLITE_OK) return Error(code, sql);
  return Statement(statement);
}

absl::Status Database::Checkpoint() {
  const int code = sqlite3_wal_checkpoint_v2(
      handle_, nullptr, SQLITE_CHECKPOINT_TRUNCATE, nullptr, nullptr);
  return code == SQLITE_OK ? absl::OkStatus()
                           : Error(code, "the store of sessions");
}

bool Database::InTransaction() const {
  return sqlite3_get_autocommit(handle_) == 0;
}

absl::Status StoreFullError() {
  ErrorDetails details;
  details.reason = "STORE_FULL";
  details.retry = absl::Seconds(5);
  return MakeError(absl::StatusCode::kResourceExhausted,
                   "the store of sessions is full", details);
}

absl::Status StoreFailedError() {
  ErrorDetails details;
  details.reason = "STORE_UNAVAILABLE";
  details.retry = absl::Seconds(1);
  return MakeError(absl::StatusCode::kUnavailable,
                   "the store of sessions has failed", details);
}

}  // namespace txl
