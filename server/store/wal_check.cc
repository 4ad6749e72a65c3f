#include "server/store/wal_check.h"

#include <fcntl.h>

#include <cerrno>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "model/base/status_macros.h"
#include "server/store/file_calls.h"

namespace txl {
namespace {

// https://sqlite.org/fileformat2.html#the_write_ahead_log
constexpr size_t kHeaderBytes = 32;
constexpr size_t kFrameHeaderBytes = 24;
constexpr size_t kFrameBytes =
    kFrameHeaderBytes + static_cast<size_t>(kWalPageBytes);
constexpr uint32_t kMagic = 0x377f0682;  // its lowest bit: see Checksum

uint32_t Word(absl::string_view bytes, size_t at, bool big_endian = true) {
  uint32_t word = 0;
  for (size_t i = 0; i < 4; ++i) {
    const auto byte = static_cast<unsigned char>(bytes[at + i]);
    word |= uint32_t{byte} << (8 * (big_endian ? 3 - i : i));
  }
  return word;
}

// Of everything in the log so far.
class Checksum {
 public:
  explicit Checksum(bool big_endian) : big_endian_(big_endian) {}

  void Add(absl::string_view bytes) {
    for (size_t at = 0; at + 8 <= bytes.size(); at += 8) {
      first_ += Word(bytes, at, big_endian_) + second_;
      second_ += Word(bytes, at + 4, big_endian_) + first_;
    }
  }
  bool Is(absl::string_view bytes, size_t at) const {
    return first_ == Word(bytes, at) && second_ == Word(bytes, at + 4);
  }

 private:
  const bool big_endian_;
  uint32_t first_ = 0;
  uint32_t second_ = 0;
};

class WalReader {
 public:
  explicit WalReader(absl::string_view header)
      : checksum_((Word(header, 0) & 1) != 0), salts_(header.substr(16, 8)) {
    checksum_.Add(header.substr(0, 24));
    sound_ = (Word(header, 0) & ~uint32_t{1}) == kMagic &&
             Word(header, 8) == kWalPageBytes && checksum_.Is(header, 24);
    if (!sound_) {
      state_.bad_at = 0;
      salts_.clear();
    }
  }

  void Read(absl::string_view frame, int64_t at) {
    const absl::string_view salts = frame.substr(8, 8);
    if (salts_.empty()) salts_ = std::string(salts);
    bool counts = salts == salts_;
    if (sound_) {
      checksum_.Add(frame.substr(0, 8));
      checksum_.Add(frame.substr(kFrameHeaderBytes));
      sound_ = salts == salts_ && checksum_.Is(frame, 16);
      if (!sound_) {
        state_.bad_at = at;
        counts = true;  // the salts may be what is bad
      }
    }
    const bool commits = Word(frame, 4) != 0;
    if (!sound_ && counts && commits) ++state_.lost_commits;
  }

  const WalState& state() const { return state_; }

 private:
  Checksum checksum_;
  std::string salts_;  // of this round of the log
  bool sound_ = false;
  WalState state_;
};

}  // namespace

absl::StatusOr<WalState> ReadWal(const std::string& path) {
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.is_open()) {
    if (errno == ENOENT) return WalState();
    return FileError(path, "open", errno);
  }
  std::string header(kHeaderBytes, '\0');
  absl::Status read = ReadFully(file.fd(), path, header.data(), header.size());
  if (absl::IsOutOfRange(read)) return WalState();
  TXL_RETURN_IF_ERROR(read);
  WalReader reader(header);
  std::string frame(kFrameBytes, '\0');
  for (int64_t at = kHeaderBytes;; at += kFrameBytes) {
    read = ReadFully(file.fd(), path, frame.data(), frame.size());
    if (absl::IsOutOfRange(read)) return reader.state();
    TXL_RETURN_IF_ERROR(read);
    reader.Read(frame, at);
  }
}

absl::Status CheckWal(const std::string& path, const WalState& state) {
  if (!state.damaged()) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(
      path, ": damaged behind byte ", state.bad_at, "; ", state.lost_commits,
      " changes of sessions would be lost; start once with --store-recover to "
      "go on without them"));
}

}  // namespace txl
