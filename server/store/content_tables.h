#pragma once

// The ids of stored sessions. A content is a list of ids from some position on,
// behind the first ids of another content, its parent, or behind nothing: so a
// fork costs one row, and what two sessions share is there once.
//
//   content  id, parent, base (ids of the parent's that stand before its own),
//            refs (sessions and contents that stand on it), crc
//   chunk    content, start, ids (up to kChunkIds, EncodeIds), crc

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/session/token_sequence.h"
#include "server/store/database.h"

namespace txl {

// The checksums of rows.
int64_t ContentCrc(int64_t content, int64_t parent, int64_t base, int64_t refs);
int64_t ChunkCrc(int64_t content, int64_t start, absl::string_view ids);

// Not thread-safe. Calls that change something belong into a transaction.
class ContentTables {
 public:
  static constexpr int64_t kChunkIds = 4096;

  static const char* Schema();
  // `vocab_size` decides how many bytes an id takes. The database outlives it.
  static absl::StatusOr<std::unique_ptr<ContentTables>> Open(
      Database* database, int64_t vocab_size);

  // A content that holds the first `position` ids of `parent`, which gets a
  // reference more; position 0: a content without a parent.
  absl::StatusOr<int64_t> Branch(int64_t parent, int64_t position);
  // One reference less; contents without any go, and what only they stand on.
  absl::Status Release(int64_t content);
  // Ids behind the first `position`, which the content holds already.
  absl::Status Append(int64_t content, int64_t position,
                      absl::Span<const int32_t> ids);
  // The content that holds the first `position` ids of `content` alone: itself,
  // cut, where nothing else stands on it.
  absl::StatusOr<int64_t> Cut(int64_t content, int64_t position);
  // The first `position` ids. DataLoss where they are not all there.
  absl::StatusOr<TokenSequence> Read(int64_t content, int64_t position);

 private:
  struct Content {
    int64_t parent = 0;  // 0: none
    int64_t base = 0;
    int64_t refs = 0;
  };

  ContentTables(Database* database, int64_t vocab_size)
      : database_(database), vocab_size_(vocab_size) {}
  absl::StatusOr<Content> Find(int64_t content);
  absl::Status SetRefs(int64_t content, const Content& row, int64_t refs);
  absl::StatusOr<std::vector<int32_t>> ReadChunk(int64_t content,
                                                 int64_t start);
  absl::Status WriteChunk(int64_t content, int64_t start,
                          absl::Span<const int32_t> ids);
  // Appends ids from..to - 1 of the content's own to `ids`.
  absl::Status ReadOwn(int64_t content, int64_t from, int64_t to,
                       TokenSequence& ids);

  Database* const database_;
  const int64_t vocab_size_;
  int64_t next_content_ = 1;
  Statement find_, insert_, set_refs_, erase_;
  Statement read_chunk_, read_chunks_, write_chunk_, erase_chunks_;
};

}  // namespace txl
