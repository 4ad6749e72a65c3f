#include "server/store/content_tables.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "model/base/crc32c.h"
#include "model/base/status_macros.h"
#include "server/store/record_codec.h"

namespace txl {
namespace {

absl::Status Damaged(absl::string_view what) {
  return absl::DataLossError(
      absl::StrCat("a stored session is damaged: ", what));
}

// Where the chunk begins that has the id at `position`.
int64_t ChunkStart(int64_t position, int64_t base) {
  return std::max(position - position % ContentTables::kChunkIds, base);
}

}  // namespace

int64_t ContentCrc(int64_t content, int64_t parent, int64_t base,
                   int64_t refs) {
  const int64_t row[] = {content, parent, base, refs};
  return ExtendCrc32c(0, row, sizeof(row));
}

int64_t ChunkCrc(int64_t content, int64_t start, absl::string_view ids) {
  const int64_t key[] = {content, start};
  return ExtendCrc32c(ExtendCrc32c(0, key, sizeof(key)), ids.data(),
                      ids.size());
}

const char* ContentTables::Schema() {
  return "CREATE TABLE content (id INTEGER PRIMARY KEY, parent INTEGER NOT "
         "NULL, base INTEGER NOT NULL, refs INTEGER NOT NULL, crc INTEGER NOT "
         "NULL);"
         "CREATE TABLE chunk (content INTEGER NOT NULL, start INTEGER NOT "
         "NULL, ids BLOB NOT NULL, crc INTEGER NOT NULL, PRIMARY KEY (content, "
         "start)) WITHOUT ROWID;";
}

absl::StatusOr<std::unique_ptr<ContentTables>> ContentTables::Open(
    Database* database, int64_t vocab_size) {
  std::unique_ptr<ContentTables> tables(
      new ContentTables(database, vocab_size));
  const std::pair<Statement*, const char*> statements[] = {
      {&tables->find_,
       "SELECT parent, base, refs, crc FROM content WHERE id=?"},
      {&tables->insert_,
       "INSERT INTO content (id, parent, base, refs, crc) VALUES (?,?,?,?,?)"},
      {&tables->set_refs_, "UPDATE content SET refs=?, crc=? WHERE id=?"},
      {&tables->erase_, "DELETE FROM content WHERE id=?"},
      {&tables->read_chunk_,
       "SELECT ids, crc FROM chunk WHERE content=? AND start=?"},
      {&tables->read_chunks_,
       "SELECT start, ids, crc FROM chunk WHERE content=? AND start<? ORDER BY "
       "start"},
      {&tables->write_chunk_,
       "INSERT OR REPLACE INTO chunk (content, start, ids, crc) VALUES "
       "(?,?,?,?)"},
      {&tables->erase_chunks_,
       "DELETE FROM chunk WHERE content=? AND start>=?"},
  };
  for (const auto& [statement, sql] : statements) {
    TXL_ASSIGN_OR_RETURN(*statement, database->Prepare(sql));
  }
  TXL_ASSIGN_OR_RETURN(
      const int64_t newest,
      database->Number("SELECT coalesce(max(id), 0) FROM content"));
  tables->next_content_ = newest + 1;
  return tables;
}

absl::StatusOr<ContentTables::Content> ContentTables::Find(int64_t content) {
  TXL_ASSIGN_OR_RETURN(const bool found, find_.Bind(content).Step());
  if (!found) return Damaged("its content is missing");
  const Content row{find_.Int(0), find_.Int(1), find_.Int(2)};
  const int64_t crc = find_.Int(3);
  find_.Reset();
  if (crc != ContentCrc(content, row.parent, row.base, row.refs)) {
    return Damaged("its content");
  }
  if (row.base < 0 || row.parent < 0 || (row.parent == 0 && row.base > 0)) {
    return Damaged("its content makes no sense");
  }
  return row;
}

absl::Status ContentTables::SetRefs(int64_t content, const Content& row,
                                    int64_t refs) {
  return set_refs_.Bind(refs)
      .Bind(ContentCrc(content, row.parent, row.base, refs))
      .Bind(content)
      .Run();
}

absl::StatusOr<int64_t> ContentTables::Branch(int64_t parent,
                                              int64_t position) {
  // As near to the root as the ids are.
  for (int64_t below = std::numeric_limits<int64_t>::max(); position > 0;) {
    TXL_ASSIGN_OR_RETURN(const Content row, Find(parent));
    if (row.base >= below) return Damaged("a loop");
    below = row.base;
    if (position > row.base) {
      TXL_RETURN_IF_ERROR(SetRefs(parent, row, row.refs + 1));
      break;
    }
    parent = row.parent;
  }
  const int64_t id = next_content_++;
  const Content row{position > 0 ? parent : 0, position, 1};
  TXL_RETURN_IF_ERROR(insert_.Bind(id)
                          .Bind(row.parent)
                          .Bind(row.base)
                          .Bind(row.refs)
                          .Bind(ContentCrc(id, row.parent, row.base, row.refs))
                          .Run());
  return id;
}

absl::Status ContentTables::Release(int64_t content) {
  while (content != 0) {
    TXL_ASSIGN_OR_RETURN(const Content row, Find(content));
    if (row.refs > 1) return SetRefs(content, row, row.refs - 1);
    TXL_RETURN_IF_ERROR(erase_chunks_.Bind(content).Bind(int64_t{0}).Run());
    TXL_RETURN_IF_ERROR(erase_.Bind(content).Run());
    content = row.parent;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<int32_t>> ContentTables::ReadChunk(int64_t content,
                                                              int64_t start) {
  TXL_ASSIGN_OR_RETURN(const bool found,
                       read_chunk_.Bind(content).Bind(start).Step());
  if (!found) return Damaged("tokens are missing");
  const std::string bytes = read_chunk_.Blob(0);
  const int64_t crc = read_chunk_.Int(1);
  read_chunk_.Reset();
  if (crc != ChunkCrc(content, start, bytes)) return Damaged("its tokens");
  return DecodeIds(bytes, vocab_size_);
}

absl::Status ContentTables::WriteChunk(int64_t content, int64_t start,
                                       absl::Span<const int32_t> ids) {
  const std::string bytes = EncodeIds(ids, vocab_size_);
  return write_chunk_.Bind(content)
      .Bind(start)
      .BindBlob(bytes)
      .Bind(ChunkCrc(content, start, bytes))
      .Run();
}

absl::Status ContentTables::Append(int64_t content, int64_t position,
                                   absl::Span<const int32_t> ids) {
  if (ids.empty()) return absl::OkStatus();
  TXL_ASSIGN_OR_RETURN(const Content row, Find(content));
  while (!ids.empty()) {
    const int64_t start = ChunkStart(position, row.base);
    std::vector<int32_t> chunk;
    if (position > start) {
      TXL_ASSIGN_OR_RETURN(chunk, ReadChunk(content, start));
      if (static_cast<int64_t>(chunk.size()) != position - start) {
        return Damaged("tokens are missing");
      }
    }
    const int64_t end = start - start % kChunkIds + kChunkIds;
    const auto count = static_cast<size_t>(
        std::min(end - position, static_cast<int64_t>(ids.size())));
    chunk.insert(chunk.end(), ids.begin(), ids.begin() + count);
    TXL_RETURN_IF_ERROR(WriteChunk(content, start, chunk));
    position += static_cast<int64_t>(count);
    ids.remove_prefix(count);
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> ContentTables::Cut(int64_t content, int64_t position) {
  TXL_ASSIGN_OR_RETURN(const Content row, Find(content));
  if (row.refs > 1 || position < row.base) {
    TXL_ASSIGN_OR_RETURN(const int64_t branch, Branch(content, position));
    TXL_RETURN_IF_ERROR(Release(content));
    return branch;
  }
  const int64_t start = ChunkStart(position, row.base);
  std::vector<int32_t> kept;
  if (position > start) {
    TXL_ASSIGN_OR_RETURN(kept, ReadChunk(content, start));
    if (static_cast<int64_t>(kept.size()) < position - start) {
      return Damaged("tokens are missing");
    }
    kept.resize(static_cast<size_t>(position - start));
  }
  TXL_RETURN_IF_ERROR(erase_chunks_.Bind(content).Bind(start).Run());
  if (!kept.empty()) TXL_RETURN_IF_ERROR(WriteChunk(content, start, kept));
  return content;
}

absl::StatusOr<TokenSequence> ContentTables::Read(int64_t content,
                                                  int64_t position) {
  struct Part {
    int64_t content, from, to;
  };
  std::vector<Part> parts;  // last one first
  for (int64_t below = std::numeric_limits<int64_t>::max(); position > 0;) {
    TXL_ASSIGN_OR_RETURN(const Content row, Find(content));
    // Every content begins behind its parent.
    if (row.base >= below) return Damaged("a loop");
    below = row.base;
    if (row.base < position) parts.push_back({content, row.base, position});
    position = std::min(position, row.base);
    content = row.parent;
  }
  TokenSequence ids;
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    TXL_RETURN_IF_ERROR(ReadOwn(part->content, part->from, part->to, ids));
  }
  return ids;
}

absl::Status ContentTables::ReadOwn(int64_t content, int64_t from, int64_t to,
                                    TokenSequence& ids) {
  read_chunks_.Bind(content).Bind(to);
  int64_t next = from;
  while (true) {
    TXL_ASSIGN_OR_RETURN(const bool more, read_chunks_.Step());
    if (!more) break;
    const int64_t start = read_chunks_.Int(0);
    const std::string bytes = read_chunks_.Blob(1);
    absl::StatusOr<std::vector<int32_t>> chunk = DecodeIds(bytes, vocab_size_);
    const bool sound = start == next && chunk.ok() && !chunk->empty() &&
                       read_chunks_.Int(2) == ChunkCrc(content, start, bytes);
    if (!sound) {
      read_chunks_.Reset();
      return Damaged("its tokens");
    }
    const auto count =
        std::min<size_t>(chunk->size(), static_cast<size_t>(to - start));
    ids.Append(absl::MakeConstSpan(*chunk).first(count));
    next = start + static_cast<int64_t>(count);
  }
  return next == to ? absl::OkStatus() : Damaged("tokens are missing");
}

}  // namespace txl
