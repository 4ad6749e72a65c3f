#include "model/convert/container/zip_directory.h"

#include <zlib.h>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "model/base/status_macros.h"
#include "model/convert/container/pickle_text.h"

namespace txl {
namespace {

constexpr uint64_t kBlockBytes = 1 << 20;

}  // namespace

ZipRecordSource::ZipRecordSource(std::shared_ptr<const ByteSource> file,
                                 const ZipRecord& record, std::string name)
    : file_(std::move(file)), record_(record), name_(std::move(name)) {}

absl::Status ZipRecordSource::Read(uint64_t offset,
                                   absl::Span<uint8_t> out) const {
  if (offset > size() || out.size() > size() - offset) {
    return absl::InvalidArgumentError(
        absl::StrCat(name_, ": ", out.size(), " bytes at offset ", offset,
                     " exceed its ", size(), " bytes"));
  }
  {
    absl::MutexLock lock(&mutex_);
    if (!verified_) verdict_ = Verify();
    // What failed to be read may succeed later; a wrong checksum stays wrong.
    verified_ = verdict_.ok() || absl::IsInvalidArgument(verdict_);
    TXL_RETURN_IF_ERROR(verdict_);
  }
  return file_->Read(record_.data_offset + offset, out);
}

absl::Status ZipRecordSource::Verify() const {
  std::vector<uint8_t> buffer(std::min(kBlockBytes, size()));
  uLong crc = ::crc32(0, nullptr, 0);
  for (uint64_t done = 0; done < size();) {
    const auto piece = absl::MakeSpan(buffer).first(
        std::min<uint64_t>(buffer.size(), size() - done));
    TXL_RETURN_IF_ERROR(file_->Read(record_.data_offset + done, piece));
    crc = ::crc32(crc, piece.data(), static_cast<uInt>(piece.size()));
    done += piece.size();
  }
  if (crc == record_.crc32) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(name_, ": its checksum is wrong: the file is damaged"));
}

namespace {

constexpr uint32_t kCentralSignature = 0x02014b50;
constexpr uint64_t kCentralBytes = 46;
constexpr uint32_t kLocalSignature = 0x04034b50;
constexpr uint64_t kLocalBytes = 30;
constexpr uint16_t kEncrypted = 1;
constexpr uint16_t kSizesFollow = 1 << 3;
constexpr uint16_t kZip64Extra = 1;
constexpr uint32_t kIn64 = std::numeric_limits<uint32_t>::max();
// torch writes a record a storage; a directory of this size has half a million.
constexpr uint64_t kMaxDirectoryBytes = 64 << 20;

// One entry of the central directory.
struct Entry {
  std::string name;
  uint16_t flags = 0;
  uint16_t method = 0;
  uint32_t crc32 = 0;
  uint64_t packed = 0;  // bytes in the file
  uint64_t bytes = 0;
  uint64_t local = 0;  // offset of the local header
};

absl::Status BadRecord(const ByteSource& file, absl::string_view name,
                       absl::string_view what) {
  return Bad(file, absl::StrCat("record ", Printable(name), " ", what));
}

bool IsSafeName(absl::string_view name) {
  if (name.empty() || name.front() == '/' || absl::StrContains(name, '\\') ||
      absl::StrContains(name, ':') ||
      std::any_of(name.begin(), name.end(), absl::ascii_iscntrl)) {
    return false;
  }
  const std::vector<absl::string_view> parts = absl::StrSplit(name, '/');
  return std::none_of(parts.begin(), parts.end(), [](absl::string_view part) {
    return part == ".." || part == ".";
  });
}

// Replaces numbers that do not fit 32 bits by those of the zip64 extra field.
absl::Status ApplyZip64(absl::string_view extra, Entry& entry) {
  ZipFields fields(extra);
  while (fields.remaining() >= 4) {
    const uint16_t id = fields.U16();
    const uint16_t bytes = fields.U16();
    if (bytes > fields.remaining()) break;
    ZipFields field(fields.Text(bytes));
    if (id != kZip64Extra) continue;
    for (uint64_t* number : {&entry.bytes, &entry.packed, &entry.local}) {
      if (*number != kIn64) continue;
      if (field.remaining() < 8) {
        return absl::InvalidArgumentError("has a short zip64 field");
      }
      *number = field.U64();
    }
    return absl::OkStatus();
  }
  return absl::OkStatus();
}

absl::StatusOr<Entry> ReadEntry(const ByteSource& file, ZipFields& fields) {
  if (fields.remaining() < kCentralBytes || fields.U32() != kCentralSignature) {
    return Bad(file, "its zip directory is broken");
  }
  Entry entry;
  fields.Skip(4);  // versions
  entry.flags = fields.U16();
  entry.method = fields.U16();
  fields.Skip(4);  // time and date
  entry.crc32 = fields.U32();
  entry.packed = fields.U32();
  entry.bytes = fields.U32();
  const uint16_t name_bytes = fields.U16();
  const uint16_t extra_bytes = fields.U16();
  const uint16_t comment_bytes = fields.U16();
  fields.Skip(8);  // disk, attributes
  entry.local = fields.U32();
  if (fields.remaining() < uint64_t{name_bytes} + extra_bytes + comment_bytes) {
    return Bad(file, "its zip directory is broken");
  }
  entry.name = std::string(fields.Text(name_bytes));
  const absl::Status zip64 = ApplyZip64(fields.Text(extra_bytes), entry);
  if (!zip64.ok()) return BadRecord(file, entry.name, zip64.message());
  fields.Skip(comment_bytes);
  return entry;
}

absl::Status CheckEntry(const ByteSource& file, const Entry& entry) {
  const auto bad = [&](absl::string_view what) {
    return BadRecord(file, entry.name, what);
  };
  if (!IsSafeName(entry.name)) {
    return bad(
        "has an unsafe name: absolute, with .., backslash or control "
        "characters");
  }
  if ((entry.flags & kEncrypted) != 0) return bad("is encrypted");
  if (entry.method != 0) {
    return bad("is compressed; torch stores its records as they are");
  }
  if (entry.packed != entry.bytes) return bad("has two different sizes");
  if (entry.bytes > file.size() || entry.local > file.size()) {
    return bad(absl::StrCat("declares ", entry.bytes, " bytes at ", entry.local,
                            ", beyond the file's ", file.size()));
  }
  return absl::OkStatus();
}

// Finds where the data of a record starts; all records end at `end`.
absl::StatusOr<uint64_t> ReadLocalHeader(const ByteSource& file,
                                         const Entry& entry, uint64_t end) {
  const auto bad = [&](absl::string_view what) {
    return BadRecord(file, entry.name, what);
  };
  if (entry.local > end || end - entry.local < kLocalBytes) {
    return bad("lies beyond the records of the archive");
  }
  TXL_ASSIGN_OR_RETURN(const std::string text,
                       ReadText(file, entry.local, kLocalBytes));
  ZipFields fields(text);
  if (fields.U32() != kLocalSignature) return bad("has no header");
  fields.Skip(2);
  const uint16_t flags = fields.U16();
  const uint16_t method = fields.U16();
  fields.Skip(4);
  const uint32_t crc32 = fields.U32();
  const uint32_t packed = fields.U32();
  const uint32_t bytes = fields.U32();
  const uint16_t name_bytes = fields.U16();
  const uint16_t extra_bytes = fields.U16();
  const uint64_t data = entry.local + kLocalBytes + name_bytes + extra_bytes;
  if (data > end || entry.bytes > end - data) {
    return bad(absl::StrCat("declares ", entry.bytes,
                            " bytes, more than the archive has"));
  }
  TXL_ASSIGN_OR_RETURN(const std::string name,
                       ReadText(file, entry.local + kLocalBytes, name_bytes));
  // 0 or all ones where the numbers stand elsewhere.
  const auto differs = [&](uint32_t local, uint64_t central) {
    return local != central && local != kIn64 &&
           !(local == 0 && (flags & kSizesFollow) != 0);
  };
  if (name != entry.name || method != entry.method ||
      differs(crc32, entry.crc32) || differs(packed, entry.packed) ||
      differs(bytes, entry.bytes)) {
    return bad("has a header that contradicts the zip directory");
  }
  return data;
}

}  // namespace

bool LooksLikeZip(const ByteSource& file) {
  const absl::StatusOr<std::string> start = ReadText(file, 0, 4);
  return start.ok() && ZipFields(*start).U32() == kLocalSignature;
}

absl::StatusOr<ZipDirectory> ReadZipDirectory(
    std::shared_ptr<const ByteSource> file) {
  TXL_ASSIGN_OR_RETURN(const ZipEnd end, ReadZipEnd(*file));
  if (end.directory_bytes > kMaxDirectoryBytes) {
    return Bad(*file, "its zip directory is too large");
  }
  TXL_ASSIGN_OR_RETURN(
      const std::string text,
      ReadText(*file, end.directory_offset, end.directory_bytes));
  ZipFields fields(text);
  ZipDirectory directory;
  std::vector<std::pair<uint64_t, uint64_t>> extents;  // header, data end
  for (uint64_t i = 0; i < end.entries; ++i) {
    TXL_ASSIGN_OR_RETURN(const Entry entry, ReadEntry(*file, fields));
    TXL_RETURN_IF_ERROR(CheckEntry(*file, entry));
    TXL_ASSIGN_OR_RETURN(const uint64_t data,
                         ReadLocalHeader(*file, entry, end.directory_offset));
    extents.emplace_back(entry.local, data + entry.bytes);
    const ZipRecord record = {data, entry.bytes, entry.crc32};
    if (!directory.records.emplace(entry.name, record).second) {
      return BadRecord(*file, entry.name, "occurs twice");
    }
  }
  if (fields.remaining() != 0) {
    return Bad(*file, "its zip directory has more than its entries");
  }
  std::sort(extents.begin(), extents.end());
  for (size_t i = 1; i < extents.size(); ++i) {
    if (extents[i].first < extents[i - 1].second) {
      return Bad(*file, absl::StrCat("two records overlap at byte ",
                                     extents[i].first));
    }
  }
  directory.file = std::move(file);
  return directory;
}

std::shared_ptr<const ByteSource> ZipDirectory::Open(
    const std::string& name) const {
  const ZipRecord& record = records.find(name)->second;
  return std::make_shared<ZipRecordSource>(
      file, record,
      absl::StrCat("record ", Printable(name), " of ", file->name()));
}

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
