#include "model/convert/container/byte_source.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "model/base/regular_file.h"
#include "model/base/status_macros.h"

namespace txl {
namespace {

class FileSource : public ByteSource {
 public:
  FileSource(RegularFile file, std::string name)
      : file_(std::move(file)), name_(std::move(name)) {}

  uint64_t size() const override {
    return static_cast<uint64_t>(file_.bytes());
  }
  const std::string& name() const override { return name_; }

  absl::Status Read(uint64_t offset, absl::Span<uint8_t> out) const override {
    if (absl::Status range = CheckRange(*this, offset, out.size());
        !range.ok()) {
      return range;
    }
    while (!out.empty()) {
      const ssize_t got = ::pread(file_.fd(), out.data(), out.size(),
                                  static_cast<off_t>(offset));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) {
        return absl::DataLossError(
            absl::StrCat(name_, ": cannot be read at offset ", offset, ": ",
                         got < 0 ? std::strerror(errno) : "it has shrunk"));
      }
      offset += static_cast<uint64_t>(got);
      out.remove_prefix(static_cast<size_t>(got));
    }
    return absl::OkStatus();
  }

 private:
  const RegularFile file_;
  const std::string name_;
};

class SliceSource : public ByteSource {
 public:
  SliceSource(std::shared_ptr<const ByteSource> whole, uint64_t offset,
              uint64_t bytes, std::string name)
      : whole_(std::move(whole)),
        offset_(offset),
        size_(bytes),
        name_(std::move(name)) {}

  uint64_t size() const override { return size_; }
  const std::string& name() const override { return name_; }
  absl::Status Read(uint64_t offset, absl::Span<uint8_t> out) const override {
    if (absl::Status range = CheckRange(*this, offset, out.size());
        !range.ok()) {
      return range;
    }
    return whole_->Read(offset_ + offset, out);
  }

 private:
  const std::shared_ptr<const ByteSource> whole_;
  const uint64_t offset_;
  const uint64_t size_;
  const std::string name_;
};

class MemorySource : public ByteSource {
 public:
  MemorySource(std::string bytes, std::string name)
      : bytes_(std::move(bytes)), name_(std::move(name)) {}

  uint64_t size() const override { return bytes_.size(); }
  const std::string& name() const override { return name_; }
  absl::Status Read(uint64_t offset, absl::Span<uint8_t> out) const override {
    if (absl::Status range = CheckRange(*this, offset, out.size());
        !range.ok()) {
      return range;
    }
    std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(offset),
                out.size(), out.begin());
    return absl::OkStatus();
  }

 private:
  const std::string bytes_;
  const std::string name_;
};

}  // namespace

absl::Status CheckRange(const ByteSource& source, uint64_t offset,
                        uint64_t bytes) {
  if (offset <= source.size() && bytes <= source.size() - offset) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(source.name(), ": ", bytes, " bytes at offset ", offset,
                   " exceed its ", source.size(), " bytes"));
}

absl::StatusOr<std::shared_ptr<const ByteSource>> OpenFile(
    const std::string& path) {
  TXL_ASSIGN_OR_RETURN(RegularFile file, RegularFile::Open(path));
  return std::make_shared<FileSource>(std::move(file), path);
}

absl::StatusOr<std::shared_ptr<const ByteSource>> Slice(
    std::shared_ptr<const ByteSource> whole, uint64_t offset, uint64_t bytes,
    std::string name) {
  if (absl::Status range = CheckRange(*whole, offset, bytes); !range.ok()) {
    return range;
  }
  return std::make_shared<SliceSource>(std::move(whole), offset, bytes,
                                       std::move(name));
}

std::shared_ptr<const ByteSource> BytesInMemory(std::string bytes,
                                                std::string name) {
  return std::make_shared<MemorySource>(std::move(bytes), std::move(name));
}

}  // namespace txl
