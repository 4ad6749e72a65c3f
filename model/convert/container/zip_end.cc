#include "model/convert/container/zip_end.h"

#include <algorithm>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "model/base/status_macros.h"
#include "model/convert/container/zip_fields.h"

namespace txl {
namespace {

constexpr absl::string_view kEndSignature("PK\5\6", 4);
constexpr uint64_t kEndBytes = 22;
constexpr uint64_t kMaxCommentBytes = 65'535;
constexpr uint32_t kLocatorSignature = 0x07064b50;
constexpr uint64_t kLocatorBytes = 20;
constexpr uint32_t kEnd64Signature = 0x06064b50;
constexpr uint64_t kEnd64Bytes = 56;

// Offset of the last record that, with its comment, ends where the file ends.
absl::StatusOr<uint64_t> FindEnd(const ByteSource& file) {
  const uint64_t tail_bytes =
      std::min(file.size(), kEndBytes + kMaxCommentBytes);
  const uint64_t begin = file.size() - tail_bytes;
  TXL_ASSIGN_OR_RETURN(const std::string bytes,
                       ReadText(file, begin, tail_bytes));
  const absl::string_view tail = bytes;
  for (size_t at = tail.rfind(kEndSignature); at != tail.npos;
       at = at == 0 ? tail.npos : tail.rfind(kEndSignature, at - 1)) {
    if (tail.size() - at < kEndBytes) continue;
    ZipFields comment(tail.substr(at + kEndBytes - 2, 2));
    if (comment.U16() == tail.size() - at - kEndBytes) return begin + at;
  }
  return Bad(file, "the archive is truncated: it has no zip directory");
}

// Replaces `end` by what the zip64 record says, when there is one before `at`.
// Returns where the records end.
absl::StatusOr<uint64_t> ApplyEnd64(const ByteSource& file, uint64_t at,
                                    ZipEnd& end) {
  if (at < kLocatorBytes + kEnd64Bytes) return at;
  TXL_ASSIGN_OR_RETURN(const std::string locator,
                       ReadText(file, at - kLocatorBytes, kLocatorBytes));
  ZipFields fields(locator);
  if (fields.U32() != kLocatorSignature) return at;
  fields.Skip(4);
  const uint64_t offset = fields.U64();
  if (offset > at - kLocatorBytes - kEnd64Bytes) {
    return Bad(file, "its zip64 record lies outside the file");
  }
  TXL_ASSIGN_OR_RETURN(const std::string text,
                       ReadText(file, offset, kEnd64Bytes));
  ZipFields end64(text);
  if (end64.U32() != kEnd64Signature) {
    return Bad(file, "its zip64 record is broken");
  }
  end64.Skip(12);  // size, versions
  const uint32_t disk = end64.U32();
  const uint32_t directory_disk = end64.U32();
  const uint64_t entries_here = end64.U64();
  const ZipEnd wide = {end64.U64(), 0, 0};
  const uint64_t bytes = end64.U64();
  const uint64_t directory = end64.U64();
  if (disk != 0 || directory_disk != 0 || entries_here != wide.entries) {
    return Bad(file, "is one of several parts of an archive");
  }
  end = {wide.entries, directory, bytes};
  return offset;
}

}  // namespace

absl::StatusOr<ZipEnd> ReadZipEnd(const ByteSource& file) {
  TXL_ASSIGN_OR_RETURN(const uint64_t at, FindEnd(file));
  TXL_ASSIGN_OR_RETURN(const std::string text, ReadText(file, at, kEndBytes));
  ZipFields fields(text);
  fields.Skip(4);
  const uint16_t disk = fields.U16();
  const uint16_t directory_disk = fields.U16();
  const uint16_t entries_here = fields.U16();
  ZipEnd end;
  end.entries = fields.U16();
  end.directory_bytes = fields.U32();
  end.directory_offset = fields.U32();
  const uint16_t in_zip64 = std::numeric_limits<uint16_t>::max();
  if ((disk != 0 && disk != in_zip64) ||
      (directory_disk != 0 && directory_disk != in_zip64) ||
      entries_here != end.entries) {
    return Bad(file, "is one of several parts of an archive");
  }
  TXL_ASSIGN_OR_RETURN(const uint64_t limit, ApplyEnd64(file, at, end));
  if (end.directory_offset > limit ||
      end.directory_bytes > limit - end.directory_offset) {
    return Bad(file, "its zip directory lies outside the file");
  }
  return end;
}

}  // namespace txl
