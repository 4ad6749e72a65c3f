#pragma once

// What the database keeps of sessions, as bytes. Decoding never trusts a byte:
// DataLoss for what encoding does not make.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/base/byte_fields.h"
#include "server/session/session_journal.h"

namespace txl {

// A session's head, and of which model it is.
struct KeptHead {
  std::string fingerprint;
  StoredHead head;
};
std::string EncodeHead(const KeptHead& head);
absl::StatusOr<KeptHead> DecodeHead(absl::string_view bytes);

// A turn's record with the state of text before it.
struct KeptRecord {
  TurnRecord record;
  std::string detokenizer;
};
std::string EncodeRecord(const TurnRecord& record);
absl::StatusOr<KeptRecord> DecodeRecord(absl::string_view bytes);

// A turn that has begun and not ended, as the log has it piece by piece.
void WriteIntent(const TurnIntent& intent, ByteWriter& out);
TurnIntent ReadIntent(ByteReader& in);
void WriteTokens(const JournalTokens& tokens, ByteWriter& out);
JournalTokens ReadTokens(ByteReader& in);

// Ids of a vocabulary of `size` ids, each in as few bytes as the largest takes.
std::string EncodeIds(absl::Span<const int32_t> ids, int64_t size);
absl::StatusOr<std::vector<int32_t>> DecodeIds(absl::string_view bytes,
                                               int64_t size);

}  // namespace txl
