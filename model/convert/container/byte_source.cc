#include "model/convert/container/byte_source.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/base/call_once.h"
#include "absl/strings/str_cat.h"
#include "model/base/crc32c.h"
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

namespace {

using Source = std::shared_ptr<const ByteSource>;

constexpr uint64_t kChunkBytes = 1 << 20;

class Checked : public ByteSource {
 public:
  Checked(Source whole, uint32_t crc) : whole_(std::move(whole)), crc_(crc) {}

  uint64_t size() const override { return whole_->size(); }
  const std::string& name() const override { return whole_->name(); }

  absl::Status Read(uint64_t offset, absl::Span<uint8_t> out) const override {
    if (offset == 0 && out.size() == size()) {
      TXL_RETURN_IF_ERROR(whole_->Read(0, out));
      return Compare(ExtendCrc32c(0, out.data(), out.size()));
    }
    absl::call_once(verified_, [this] { verdict_ = Verify(); });
    TXL_RETURN_IF_ERROR(verdict_);
    return whole_->Read(offset, out);
  }

 private:
  absl::Status Verify() const {
    std::string chunk(std::min(size(), kChunkBytes), '\0');
    uint32_t crc = 0;
    for (uint64_t at = 0; at < size(); at += chunk.size()) {
      chunk.resize(std::min<uint64_t>(chunk.size(), size() - at));
      TXL_RETURN_IF_ERROR(whole_->Read(
          at, absl::MakeSpan(reinterpret_cast<uint8_t*>(chunk.data()),
                             chunk.size())));
      crc = ExtendCrc32c(crc, chunk.data(), chunk.size());
    }
    return Compare(crc);
  }

  absl::Status Compare(uint32_t crc) const {
    if (crc == crc_) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat(name(), ": its checksum is wrong: the file is damaged"));
  }

  const Source whole_;
  const uint32_t crc_;
  mutable absl::once_flag verified_;
  mutable absl::Status verdict_;  // written once, under verified_
};

class JoinedSource : public ByteSource {
 public:
  JoinedSource(std::vector<Source> parts, std::string name)
      : parts_(std::move(parts)), name_(std::move(name)) {
    for (const Source& part : parts_) {
      begins_.push_back(size_);
      size_ += part->size();
    }
  }

  uint64_t size() const override { return size_; }
  const std::string& name() const override { return name_; }

  absl::Status Read(uint64_t offset, absl::Span<uint8_t> out) const override {
    TXL_RETURN_IF_ERROR(CheckRange(*this, offset, out.size()));
    // The last part that begins at or before `offset`.
    size_t i = std::upper_bound(begins_.begin(), begins_.end(), offset) -
               begins_.begin();
    for (i = i == 0 ? 0 : i - 1; !out.empty(); ++i) {
      const uint64_t within = offset - begins_[i];
      const uint64_t now =
          std::min<uint64_t>(parts_[i]->size() - within, out.size());
      if (now > 0) {
        TXL_RETURN_IF_ERROR(parts_[i]->Read(within, out.first(now)));
      }
      offset += now;
      out.remove_prefix(now);
    }
    return absl::OkStatus();
  }

 private:
  const std::vector<Source> parts_;
  const std::string name_;
  std::vector<uint64_t> begins_;
  uint64_t size_ = 0;
};

class Reopened : public ByteSource {
 public:
  Reopened(std::string path, uint64_t bytes)
      : path_(std::move(path)), bytes_(bytes) {}

  uint64_t size() const override { return bytes_; }
  const std::string& name() const override { return path_; }

  absl::Status Read(uint64_t offset, absl::Span<uint8_t> out) const override {
    TXL_RETURN_IF_ERROR(CheckRange(*this, offset, out.size()));
    TXL_ASSIGN_OR_RETURN(const Source file, OpenFile(path_));
    if (file->size() != bytes_) {
      return absl::DataLossError(absl::StrCat(path_, ": changed its size"));
    }
    return file->Read(offset, out);
  }

 private:
  const std::string path_;
  const uint64_t bytes_;
};

}  // namespace

Source WithCrc32c(Source whole, uint32_t crc) {
  return std::make_shared<Checked>(std::move(whole), crc);
}

Source Joined(std::vector<Source> parts, std::string name) {
  return std::make_shared<JoinedSource>(std::move(parts), std::move(name));
}

Source ReopenedFile(std::string path, uint64_t bytes) {
  return std::make_shared<Reopened>(std::move(path), bytes);
}

}  // namespace txl
