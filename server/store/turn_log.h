#pragma once

// Turns that have begun and not ended. What they take on goes into one row of
// the log for each commit, whatever the number of sessions, and leaves the log
// when the turn's end has put it where it belongs.
//
//   log  seq, entries (of all sessions), crc

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/session/session_journal.h"
#include "server/store/database.h"

namespace txl {

// The row with the largest number stays until a larger one is there, so that
// numbers only grow, also over restarts: sessions remember them.

// The checksum of a row.
int64_t LogRowCrc(int64_t seq, absl::string_view entries);

// Not thread-safe.
class TurnLog {
 public:
  struct Turn {
    std::optional<TurnIntent> intent;
    absl::Time begun;
    int64_t from = 0;  // the session's tokens before `ids`
    std::vector<int32_t> ids;
    std::vector<TokenEvent> events;
    bool damaged = false;  // the log has a hole

    std::vector<int64_t> rows;  // of the log, which have entries of it

    // Whether it ended before the session's row was written, which was when
    // `log_row` was the newest row.
    bool EndedBefore(int64_t log_row) const {
      return !rows.empty() && rows.back() <= log_row;
    }
  };

  static const char* Schema();
  // Reads the log. The database outlives this object.
  static absl::StatusOr<std::unique_ptr<TurnLog>> Open(Database* database);

  // Call it before the first transaction; it runs in one of its own. Turns that
  // `runs` denies are forgotten. Each other turn gets a row for itself alone.
  // All other rows go, except damaged ones; with `drop_damaged` those go, too.
  absl::Status Fold(
      const std::function<bool(const std::string&, const Turn&)>& runs,
      bool drop_damaged);

  // Changes of one transaction. Begin forgets an earlier turn.
  void Begin(const std::string& session_id, const TurnIntent& intent,
             absl::Time now);
  void Append(const std::string& session_id, const JournalTokens& tokens);
  // Returns the turn and forgets it.
  Turn Take(const std::string& session_id);
  // Before the transaction is committed: writes the log's row.
  absl::Status Write();
  // After it was, or was rolled back.
  void Committed();
  void RolledBack();

  // Rows whose checksum was wrong.
  int64_t damaged_rows() const {
    return static_cast<int64_t>(damaged_rows_.size());
  }
  // Null: there is none. A turn found in the log may have ended since: what the
  // session's row says of last_row() tells.
  const Turn* Find(const std::string& session_id) const;
  // The log's newest row; entries of this transaction come into a later one.
  int64_t last_row() const { return last_row_; }

 private:
  // How a turn was before the transaction.
  struct Before {
    std::optional<Turn> whole;  // it was taken
    bool existed = false;
    size_t ids = 0;
    size_t events = 0;
    bool damaged = false;
  };

  explicit TurnLog(Database* database) : database_(database) {}
  absl::Status ReadAll();
  void ReadRow(int64_t seq, const std::string& entries);
  void Remember(const std::string& session_id);
  // Rows that are not in `kept` go; those in it that are missing are written,
  // empty where they belong to no turn.
  absl::Status WriteFolded(const std::map<std::string, Turn>& turns,
                           const std::set<int64_t>& kept);
  absl::Status InsertRow(int64_t seq, const std::string& entries);
  static void Add(const JournalTokens& tokens, Turn& turn);

  Database* const database_;
  Statement insert_, erase_;
  std::map<std::string, Turn> turns_;
  std::map<int64_t, int64_t> turns_of_row_;  // that need it
  std::set<int64_t> damaged_rows_;
  int64_t last_row_ = 0;

  // State of the current transaction.
  std::map<std::string, Before> before_;
  std::map<std::string, std::string> written_;  // session -> entries
  std::vector<int64_t> left_;    // rows that a turn needs no more
  std::vector<int64_t> erased_;  // rows that no turn needed any more
};

}  // namespace txl
