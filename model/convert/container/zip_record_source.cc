#include "model/convert/container/zip_record_source.h"

#include <zlib.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "model/base/status_macros.h"

namespace txl {
namespace {

constexpr uint64_t kBufferBytes = 1 << 20;

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
  std::vector<uint8_t> buffer(std::min(kBufferBytes, size()));
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

}  // namespace txl
