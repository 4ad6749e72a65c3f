#include "tests/model/text/utf8_oracle.h"

#include <algorithm>
#include <vector>

namespace txl {
namespace {

struct ByteRange {
  int low;
  int high;
};

// Rows of table 3-7: one range per byte.
const std::vector<std::vector<ByteRange>>& Table() {
  static const auto& table = *new std::vector<std::vector<ByteRange>>{
      {{0x00, 0x7F}},
      {{0xC2, 0xDF}, {0x80, 0xBF}},
      {{0xE0, 0xE0}, {0xA0, 0xBF}, {0x80, 0xBF}},
      {{0xE1, 0xEC}, {0x80, 0xBF}, {0x80, 0xBF}},
      {{0xED, 0xED}, {0x80, 0x9F}, {0x80, 0xBF}},
      {{0xEE, 0xEF}, {0x80, 0xBF}, {0x80, 0xBF}},
      {{0xF0, 0xF0}, {0x90, 0xBF}, {0x80, 0xBF}, {0x80, 0xBF}},
      {{0xF1, 0xF3}, {0x80, 0xBF}, {0x80, 0xBF}, {0x80, 0xBF}},
      {{0xF4, 0xF4}, {0x80, 0x8F}, {0x80, 0xBF}, {0x80, 0xBF}},
  };
  return table;
}

}  // namespace

std::string EncodeCodePoint(uint32_t c) {
  const auto byte = [](uint32_t value) { return static_cast<char>(value); };
  if (c < 0x80) return {byte(c)};
  if (c < 0x800) return {byte(0xC0 | c >> 6), byte(0x80 | (c & 63))};
  if (c < 0x10000) {
    return {byte(0xE0 | c >> 12), byte(0x80 | (c >> 6 & 63)),
            byte(0x80 | (c & 63))};
  }
  return {byte(0xF0 | c >> 18), byte(0x80 | (c >> 12 & 63)),
          byte(0x80 | (c >> 6 & 63)), byte(0x80 | (c & 63))};
}

size_t MaximalSubpart(const std::string& bytes, bool* is_character) {
  *is_character = false;
  size_t longest = 0;
  for (const std::vector<ByteRange>& row : Table()) {
    size_t matched = 0;
    while (matched < std::min(row.size(), bytes.size())) {
      const int byte = static_cast<unsigned char>(bytes[matched]);
      if (byte < row[matched].low || byte > row[matched].high) break;
      ++matched;
    }
    if (matched == row.size()) *is_character = true;
    longest = std::max(longest, matched);
  }
  return longest;
}

std::string OracleReplaceInvalid(const std::string& bytes) {
  std::string out;
  for (size_t at = 0; at < bytes.size();) {
    bool is_character = false;
    const size_t length = MaximalSubpart(bytes.substr(at), &is_character);
    out += is_character ? bytes.substr(at, length) : "\uFFFD";
    at += std::max<size_t>(length, 1);
  }
  return out;
}

std::string RandomHardBytes(std::mt19937& random, size_t max_size) {
  static constexpr unsigned char kHard[] = {
      0x00, 0x41, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC1,
      0xC2, 0xDF, 0xE0, 0xE1, 0xEC, 0xED, 0xEE, 0xEF, 0xF0, 0xF1, 0xF3,
      0xF4, 0xF5, 0xFF, 0x80, 0xBF, 0xA0, 0x90, 0x80, 0xBF, 0x80};
  std::string bytes(random() % (max_size + 1), '\0');
  for (char& byte : bytes) {
    byte = static_cast<char>(random() % 4 == 0
                                 ? random() % 256
                                 : kHard[random() % std::size(kHard)]);
  }
  return bytes;
}

}  // namespace txl
