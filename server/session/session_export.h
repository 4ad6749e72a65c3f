#pragma once

// A session as a file that any server of the same model can take in
// (server/session/session_import.h). Pure: no input or output.

#include <cstdint>
#include <memory>
#include <string>

#include "model/memory/state_image.h"
#include "server/session/export_format.h"
#include "server/session/session_journal.h"
#include "server/session/token_sequence.h"

namespace txl {

struct ExportOptions {
  std::string fingerprint;      // of the model's weights and config
  int64_t vocabulary_size = 0;  // 0..2^31
  // Of servers that trust each other's states; empty: the file has no MAC, and
  // nobody takes in its state.
  std::string key;
};

// Gives the file in pieces, made when they are asked for: besides the session
// it takes about 2 MiB. Thread-compatible.
class SessionExport {
 public:
  static constexpr int64_t kMostPieceBytes = 1 << 20;

  // Of `head` the session's id and times other than the time-to-live are left
  // out. `state`: null for none; its position is at most the number of ids.
  // REQUIRES: the ids are of the vocabulary; the texts of `head` and its
  // earlier requests have less than 1 MiB together.
  SessionExport(const ExportOptions& options, const StoredHead& head,
                TokenSlice ids, std::shared_ptr<const StateImage> state);

  // The next 1..kMostPieceBytes bytes; empty: that was all.
  std::string Next();

 private:
  // What is still to be made, in the file's order.
  enum class Stage { kIds, kTurn, kState, kEnd, kDone };

  void Make();
  void MakeIds();
  void MakeState();

  const TokenSlice ids_;
  const int id_bytes_;
  const std::shared_ptr<const StateImage> state_;
  const std::string turn_;
  std::string state_head_;
  ExportFramer framer_;
  Stage stage_ = Stage::kIds;
  int64_t made_bytes_ = 0;  // of the payload of the section being made
  std::string made_;        // not yet given out
};

}  // namespace txl
