#include "model/convert/container/pickle_input.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "model/base/status_macros.h"
#include "model/convert/container/pickle_value.h"

namespace txl {
namespace {

constexpr uint64_t kBufferBytes = 64 << 10;

absl::Status Truncated() {
  return absl::InvalidArgumentError("the pickle is truncated");
}

}  // namespace

absl::Status PickleInput::Fill() {
  if (used_ < buffer_.size()) return absl::OkStatus();
  if (position_ >= source_.size()) return Truncated();
  buffer_.resize(std::min(kBufferBytes, remaining()));
  used_ = 0;
  return source_.Read(position_, absl::MakeSpan(buffer_));
}

absl::StatusOr<uint8_t> PickleInput::Byte() {
  if (used_ == buffer_.size()) TXL_RETURN_IF_ERROR(Fill());
  ++position_;
  return buffer_[used_++];
}

absl::StatusOr<uint64_t> PickleInput::Number(int bytes) {
  uint64_t number = 0;
  for (int i = 0; i < bytes; ++i) {
    TXL_ASSIGN_OR_RETURN(const uint8_t byte, Byte());
    number |= static_cast<uint64_t>(byte) << (8 * i);
  }
  return number;
}

absl::StatusOr<std::string> PickleInput::Bytes(uint64_t bytes) {
  if (bytes > remaining()) return Truncated();
  if (bytes > kMaxPickleStringBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("a string of ", bytes, " bytes is too long"));
  }
  std::string out(bytes, '\0');
  uint64_t done = 0;
  while (done < bytes) {
    TXL_RETURN_IF_ERROR(Fill());
    const uint64_t count =
        std::min<uint64_t>(bytes - done, buffer_.size() - used_);
    std::memcpy(out.data() + done, buffer_.data() + used_, count);
    used_ += count;
    position_ += count;
    done += count;
  }
  return out;
}

absl::StatusOr<std::string> PickleInput::Line(uint64_t max_bytes) {
  std::string line;
  for (;;) {
    TXL_RETURN_IF_ERROR(Fill());
    const auto begin = buffer_.begin() + static_cast<std::ptrdiff_t>(used_);
    const auto end = std::find(begin, buffer_.end(), '\n');
    line.append(begin, end);
    if (line.size() > max_bytes) {
      return absl::InvalidArgumentError("a line is too long");
    }
    const auto count = static_cast<size_t>(end - begin);
    used_ += count;
    position_ += count;
    if (end == buffer_.end()) continue;
    ++used_;
    ++position_;
    return line;
  }
}

}  // namespace txl
