#pragma once

// What the offline tools find in a store.

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace txl {

struct StoreReport {
  struct Damaged {
    std::string session_id;
    std::string what;
  };

  int64_t sessions = 0;
  int64_t tokens = 0;                          // of sound sessions
  int64_t running_turns = 0;                   // begun and not ended
  std::map<std::string, int64_t> sessions_of;  // a model's fingerprint
  std::vector<Damaged> damaged;                // in the order of ids
  int64_t damaged_log_rows = 0;                // of running turns
  int64_t contents = 0;                        // lists of ids
  int64_t orphaned_contents = 0;               // of no session
  std::vector<std::string> database_errors;    // SQLite's own check
  int64_t images = 0;
  int64_t images_without_session = 0;  // servers remove them in time
  int64_t bytes = 0;                   // of the database
  bool failed = false;                 // marked FAILED

  // Orphans and images cost room only.
  bool sound() const {
    return damaged.empty() && damaged_log_rows == 0 &&
           database_errors.empty() && !failed;
  }
};

using StoreProgress = std::function<void(absl::string_view line)>;

}  // namespace txl
