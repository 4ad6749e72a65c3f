#pragma once

// Reads zip archives of records that are stored, not compressed, as torch
// writes them. Built for hostile files.

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "model/convert/container/byte_source.h"

namespace txl {

struct ZipRecord {
  uint64_t data_offset = 0;  // offset + bytes lies inside the file
  uint64_t bytes = 0;
  uint32_t crc32 = 0;
};

// A record of a zip archive whose checksum is verified with the first read.
class ZipRecordSource : public ByteSource {
 public:
  ZipRecordSource(std::shared_ptr<const ByteSource> file,
                  const ZipRecord& record, std::string name);

  uint64_t size() const override { return record_.bytes; }
  const std::string& name() const override { return name_; }
  absl::Status Read(uint64_t offset, absl::Span<uint8_t> out) const override;

 private:
  // Reads all of it through a small buffer.
  absl::Status Verify() const;

  const std::shared_ptr<const ByteSource> file_;
  const ZipRecord record_;
  const std::string name_;
  mutable absl::Mutex mutex_;
  mutable bool verified_ ABSL_GUARDED_BY(mutex_) = false;
  mutable absl::Status verdict_ ABSL_GUARDED_BY(mutex_);
};

struct ZipDirectory {
  std::shared_ptr<const ByteSource> file;
  std::map<std::string, ZipRecord, std::less<>> records;  // by name

  // Bytes of a record of `records`. Its CRC-32 is verified before the first
  // byte is given out, by reading all of it once; reads fail with
  // InvalidArgument naming the record when it is another. Thread-safe.
  std::shared_ptr<const ByteSource> Open(const std::string& name) const;
};

// Whether the file starts like an archive. False also when it cannot be read.
bool LooksLikeZip(const ByteSource& file);

// Reads the table of contents (zip64, too) and every record's local header.
// Errors: InvalidArgument naming the file and, where there is one, the record:
// no central directory at the end (a truncated archive), several disks,
// encrypted or compressed records, unsafe names (absolute, "..", a backslash, a
// control character), the same name twice, records that exceed the file or
// overlap, headers that contradict the directory.
absl::StatusOr<ZipDirectory> ReadZipDirectory(
    std::shared_ptr<const ByteSource> file);

// The records at the end of a zip archive, which say where its table of
// contents lies.

struct ZipEnd {
  uint64_t entries = 0;
  uint64_t directory_offset = 0;
  uint64_t directory_bytes = 0;  // offset + bytes lies inside the file
};

// Errors: InvalidArgument naming the file (none there: a truncated archive;
// several disks; a directory outside the file).
absl::StatusOr<ZipEnd> ReadZipEnd(const ByteSource& file);

// Little-endian numbers of zip structures.

// REQUIRES of each reader: so many bytes remain.
class ZipFields {
 public:
  explicit ZipFields(absl::string_view bytes) : bytes_(bytes) {}

  uint64_t remaining() const { return bytes_.size(); }
  uint16_t U16() { return static_cast<uint16_t>(Number(2)); }
  uint32_t U32() { return static_cast<uint32_t>(Number(4)); }
  uint64_t U64() { return Number(8); }
  void Skip(uint64_t bytes) { bytes_.remove_prefix(bytes); }
  absl::string_view Text(uint64_t bytes) {
    const absl::string_view text = bytes_.substr(0, bytes);
    bytes_.remove_prefix(bytes);
    return text;
  }

 private:
  uint64_t Number(size_t bytes) {
    uint64_t number = 0;
    for (size_t i = bytes; i-- > 0;) {
      number = number << 8 | static_cast<uint8_t>(bytes_[i]);
    }
    bytes_.remove_prefix(bytes);
    return number;
  }

  absl::string_view bytes_;
};

// `bytes` bytes of `file`. Errors: as ByteSource::Read; checked before
// anything is allocated.
inline absl::StatusOr<std::string> ReadText(const ByteSource& file,
                                            uint64_t offset, uint64_t bytes) {
  if (offset > file.size() || bytes > file.size() - offset) {
    return absl::InvalidArgumentError(file.name() + ": is truncated");
  }
  std::string text(bytes, '\0');
  const absl::Status read = file.Read(
      offset,
      absl::MakeSpan(reinterpret_cast<uint8_t*>(text.data()), text.size()));
  if (!read.ok()) return read;
  return text;
}

}  // namespace txl
