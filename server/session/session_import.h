#pragma once

// Takes in the file of an exported session (server/session/session_export.h)
// from anybody: nothing of it is believed before its sums are right, and memory
// is taken only for bytes that have come.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/memory/state_image.h"
#include "model/text/vocabulary.h"
#include "server/base/digest.h"
#include "server/session/session_export.h"
#include "server/session/session_journal.h"
#include "server/session/token_sequence.h"

namespace txl {

struct ImportOptions {
  std::string fingerprint;      // of this server's model
  int64_t vocabulary_size = 0;  // 0..2^31
  // The vocabulary whose detokenizer states are taken; null: states are not
  // looked at. It must outlive the import.
  const Vocabulary* vocabulary = nullptr;
  std::string key;         // as in ExportOptions; empty: no state is taken
  int64_t max_bytes = 0;   // of the file
  int64_t max_tokens = 0;  // of the session
  // Whether there may be one more session of so many tokens: asked once the
  // file says how many, long before they are there. Null: there may.
  std::function<absl::Status(int64_t tokens)> may_add = nullptr;
};

struct ImportedSession {
  // Has neither a session id nor times, except the time-to-live.
  StoredHead head;
  TokenSequence token_ids;
  // Only from a server with the same key. Its identity is not checked
  // (CheckStateImage), nor that it fits the ids, which only its maker knows.
  std::optional<StateImage> state;
};

// Takes at most about max_bytes * 4 of memory: ids of one byte become four.
// Thread-compatible.
//
// Errors: INVALID_ARGUMENT FIELD_INVALID `chunk` (damaged, no export, or one of
// another version), INVALID_ARGUMENT OVER_LIMIT `chunk` (too many bytes or
// tokens), FAILED_PRECONDITION MODEL_MISMATCH (of another model), those of
// may_add. After an error every call gives the same one.
class SessionImport {
 public:
  explicit SessionImport(ImportOptions options);

  // The next bytes of the file, as many as there are.
  absl::Status Add(absl::string_view bytes);
  // The file ends here. Once only.
  absl::StatusOr<ImportedSession> Finish();

 private:
  // What comes next in the file.
  enum class Expected { kPreamble, kSection, kBlock, kEnd };

  absl::Status TooManyBytes() const;
  absl::Status Take(absl::string_view bytes);
  absl::Status TakePreamble(absl::string_view bytes);
  absl::Status TakeSection(absl::string_view bytes);
  absl::Status TakeBlock(absl::string_view block);
  absl::Status EndSection();
  absl::Status EndHead();
  absl::Status TakeIds(absl::string_view block);
  absl::Status EndTurn();
  bool LengthFits(int64_t length) const;
  bool KeepsState() const { return mac_.has_value() && head_.has_mac; }
  // Bytes that must be there before they can be looked at.
  size_t Wanted() const;
  std::optional<StateImage> MakeState();

  const ImportOptions options_;
  absl::Status status_;
  int64_t bytes_ = 0;    // of the file, so far
  std::string pending_;  // the beginning of what is expected
  Expected expected_ = Expected::kPreamble;
  ExportSection section_ = ExportSection::kHead;  // this one, or the next
  int64_t left_ = 0;                              // of the section's payload
  std::string payload_;  // of a section that is looked at as a whole
  std::string id_part_;  // the beginning of an id
  ExportHead head_;
  ImportedSession session_;
  LargeVector<uint8_t> state_;  // its bytes, not yet believed
  bool mac_fits_ = false;
  RunningDigest digest_ = RunningDigest::Sha256();
  std::optional<RunningDigest> mac_;
};

}  // namespace txl
