#pragma once

// A record of a zip archive whose checksum is verified with the first read.

#include <cstdint>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "model/convert/container/byte_source.h"

namespace txl {

struct ZipRecord {
  uint64_t data_offset = 0;  // offset + bytes lies inside the file
  uint64_t bytes = 0;
  uint32_t crc32 = 0;
};

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

}  // namespace txl
