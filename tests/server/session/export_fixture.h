#pragma once

// Sessions to export, and what comes of taking a file in again.

#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "server/base/error.h"
#include "server/session/session_export.h"
#include "server/session/session_import.h"

namespace txl {

inline StoredHead ExportedHead() {
  return {.session_id = "secret-name",
          .ttl = absl::Hours(5) + absl::Nanoseconds(7),
          .create_time = absl::FromUnixSeconds(1'000'000),
          .last_use = absl::FromUnixSeconds(2'000'000),
          .detokenizer = "\xE2\x82",
          .last_turn = {"request", "MAX_TOKENS", 10, 20, 30},
          .earlier_requests = {1, ~uint64_t{0}, 3}};
}

inline std::shared_ptr<const StateImage> ExportedState(size_t bytes,
                                                       int64_t position) {
  StateImage image;
  image.identity.fingerprint = "model";
  image.identity.window = 7;
  image.identity.row_dtype = "bf16";
  image.identity.kernel = "torch-cpu";
  image.position = position;
  image.rows = 1;
  std::mt19937 random(static_cast<uint32_t>(bytes));
  image.data.resize(bytes);
  for (uint8_t& byte : image.data) byte = static_cast<uint8_t>(random());
  image.Seal();
  return std::make_shared<const StateImage>(std::move(image));
}

inline std::vector<int32_t> RandomTokens(int64_t count, int64_t vocabulary) {
  std::mt19937_64 random(static_cast<uint64_t>(count));
  std::vector<int32_t> ids(static_cast<size_t>(count));
  for (int32_t& id : ids) {
    id = static_cast<int32_t>(random() % static_cast<uint64_t>(vocabulary));
  }
  // The ends of the range, too.
  if (count > 1) {
    ids.front() = 0;
    ids.back() = static_cast<int32_t>(vocabulary - 1);
  }
  return ids;
}

inline std::string ExportAll(const ExportOptions& options,
                             const std::vector<int32_t>& ids,
                             std::shared_ptr<const StateImage> state = nullptr,
                             const StoredHead& head = ExportedHead()) {
  TokenSequence sequence;
  sequence.Append(ids);
  SessionExport session(options, head, sequence.Slice(0, sequence.size()),
                        std::move(state));
  std::string file;
  for (std::string piece = session.Next(); !piece.empty();
       piece = session.Next()) {
    EXPECT_LE(piece.size(), size_t{SessionExport::kMostPieceBytes});
    file += piece;
  }
  EXPECT_EQ(session.Next(), "");
  return file;
}

inline ImportOptions ImportOptionsFor(const ExportOptions& options) {
  return {.fingerprint = options.fingerprint,
          .vocabulary_size = options.vocabulary_size,
          .key = options.key,
          .max_bytes = int64_t{1} << 30,
          .max_tokens = int64_t{1} << 24};
}

inline absl::StatusOr<ImportedSession> ImportAll(const ImportOptions& options,
                                                 const std::string& file) {
  SessionImport import(options);
  const absl::Status added = import.Add(file);
  auto session = import.Finish();
  EXPECT_TRUE(added.ok() || session.status() == added);
  return session;
}

inline std::vector<int32_t> IdsOf(const ImportedSession& session) {
  return session.token_ids.Slice(0, session.token_ids.size()).Copy();
}

inline std::string ReasonAndFieldOf(const absl::Status& status) {
  const ErrorDetails details = GetErrorDetails(status);
  return details.reason + (details.field.empty() ? "" : " " + details.field);
}

}  // namespace txl
