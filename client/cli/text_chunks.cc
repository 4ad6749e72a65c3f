#include "client/cli/text_chunks.h"

#include <algorithm>

namespace txl::cli {
namespace {

bool IsContinuation(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0) == 0x80;
}

// Length of the first piece of a text longer than `max_bytes`.
size_t CutLength(absl::string_view text, size_t max_bytes) {
  const size_t line_end = text.rfind('\n', max_bytes - 1);
  if (line_end != absl::string_view::npos) return line_end + 1;
  const size_t space = text.rfind(' ', max_bytes);
  if (space != absl::string_view::npos && space > 0) return space;
  size_t length = max_bytes;
  while (length > 1 && IsContinuation(text[length])) --length;
  return length;
}

}  // namespace

std::vector<absl::string_view> SplitText(absl::string_view text,
                                         size_t max_bytes) {
  std::vector<absl::string_view> pieces;
  while (!text.empty()) {
    const size_t length =
        text.size() <= max_bytes ? text.size() : CutLength(text, max_bytes);
    pieces.push_back(text.substr(0, length));
    text.remove_prefix(length);
  }
  return pieces;
}

int64_t CountCharacters(absl::string_view text) {
  return std::count_if(text.begin(), text.end(),
                       [](char byte) { return !IsContinuation(byte); });
}

}  // namespace txl::cli
