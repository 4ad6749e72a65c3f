#pragma once

#include <cstdint>
#include <string>

#include "absl/time/time.h"

namespace txl {

struct SqliteJournalOptions {
  std::string folder;  // DATA; made where it is missing, its parent is not
  absl::Duration interval = absl::Milliseconds(100);
  int64_t max_bytes = int64_t{20'000'000'000};  // of the database
  std::string fingerprint;                      // of the model
  int64_t vocab_size = 0;
  bool recover = false;  // copy a store whose storage failed, then open it
  std::string vfs;       // SQLite's, for tests; empty: its own
};

}  // namespace txl
