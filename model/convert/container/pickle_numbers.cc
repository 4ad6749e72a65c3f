// The opcodes of PickleMachine that push numbers and texts.

#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "model/base/status_macros.h"
#include "model/convert/container/pickle_limits.h"
#include "model/convert/container/pickle_machine.h"
#include "model/convert/container/pickle_opcodes.h"
#include "model/convert/container/pickle_text.h"

namespace txl {
namespace {

// Longer integers are no numbers of a model.
constexpr uint64_t kMaxLongBytes = 4096;

}  // namespace

void PickleMachine::PushInt(PickleKind kind, int64_t number) {
  PickleValue* const value = arena_.New(kind);
  value->integer = number;
  Push(value);
}

absl::Status PickleMachine::PushLong(std::string bytes) {
  if (bytes.size() > sizeof(int64_t)) {
    Push(arena_.NewText(PickleKind::kBigInt, std::move(bytes)));
    return absl::OkStatus();
  }
  uint64_t number = 0;
  for (size_t i = bytes.size(); i-- > 0;) {
    number = (number << 8) | static_cast<uint8_t>(bytes[i]);
  }
  // Sign extension.
  const int unused_bits = static_cast<int>(64 - 8 * bytes.size());
  if (unused_bits < 64 && unused_bits > 0 && (bytes.back() & 0x80) != 0) {
    number |= ~uint64_t{0} << (64 - unused_bits);
  }
  PushInt(PickleKind::kInt, static_cast<int64_t>(number));
  return absl::OkStatus();
}

absl::Status PickleMachine::BinaryNumber(uint8_t op) {
  switch (op) {
    case kOpBinFloat: {
      TXL_ASSIGN_OR_RETURN(const uint64_t bits, in_.Number(8));
      const uint64_t big_endian = __builtin_bswap64(bits);
      PickleValue* const value = arena_.New(PickleKind::kFloat);
      std::memcpy(&value->real, &big_endian, sizeof(value->real));
      Push(value);
      return absl::OkStatus();
    }
    case kOpLong1:
    case kOpLong4: {
      TXL_ASSIGN_OR_RETURN(const uint64_t bytes,
                           in_.Number(op == kOpLong1 ? 1 : 4));
      if (bytes > kMaxLongBytes) return Malformed("an integer is too long");
      TXL_ASSIGN_OR_RETURN(std::string text, in_.Bytes(bytes));
      return PushLong(std::move(text));
    }
    default: {
      const int bytes = op == kOpBinInt1 ? 1 : op == kOpBinInt2 ? 2 : 4;
      TXL_ASSIGN_OR_RETURN(const uint64_t number, in_.Number(bytes));
      // Only the widest has a sign.
      PushInt(PickleKind::kInt, bytes == 4 ? static_cast<int32_t>(number)
                                           : static_cast<int64_t>(number));
      return absl::OkStatus();
    }
  }
}

absl::Status PickleMachine::TextNumber(uint8_t op) {
  TXL_ASSIGN_OR_RETURN(const std::string line, in_.Line(kMaxPickleLineBytes));
  absl::string_view text = absl::StripAsciiWhitespace(line);
  if (op == kOpFloat) {
    PickleValue* const value = arena_.New(PickleKind::kFloat);
    if (!absl::SimpleAtod(text, &value->real)) {
      return Malformed("a float is none");
    }
    Push(value);
    return absl::OkStatus();
  }
  if (op == kOpInt && (text == "00" || text == "01")) {
    PushInt(PickleKind::kBool, text == "01" ? 1 : 0);
    return absl::OkStatus();
  }
  absl::ConsumeSuffix(&text, "L");
  int64_t number = 0;
  if (absl::SimpleAtoi(text, &number)) {
    PushInt(PickleKind::kInt, number);
    return absl::OkStatus();
  }
  const absl::string_view digits =
      text.substr(text.empty() || text[0] != '-' ? 0 : 1);
  if (digits.empty() || digits.find_first_not_of("0123456789") != digits.npos) {
    return Malformed("an integer is none");
  }
  // Too large for a number: its decimal text, which nothing looks into.
  Push(arena_.NewText(PickleKind::kString, std::string(text)));
  return absl::OkStatus();
}

absl::Status PickleMachine::CountedText(uint8_t op) {
  int width = 4;
  PickleKind kind = PickleKind::kString;
  switch (op) {
    case kOpShortBinBytes:
      kind = PickleKind::kBytes;
      [[fallthrough]];
    case kOpShortBinString:
    case kOpShortBinUnicode:
      width = 1;
      break;
    case kOpBinBytes8:
    case kOpByteArray8:
      kind = PickleKind::kBytes;
      [[fallthrough]];
    case kOpBinUnicode8:
      width = 8;
      break;
    case kOpBinBytes:
      kind = PickleKind::kBytes;
      break;
    default:
      break;
  }
  TXL_ASSIGN_OR_RETURN(const uint64_t bytes, in_.Number(width));
  TXL_ASSIGN_OR_RETURN(std::string text, in_.Bytes(bytes));
  Push(arena_.NewText(kind, std::move(text)));
  return absl::OkStatus();
}

absl::Status PickleMachine::LineText(uint8_t op) {
  TXL_ASSIGN_OR_RETURN(const std::string line, in_.Line(kMaxPickleStringBytes));
  TXL_ASSIGN_OR_RETURN(std::string text, op == kOpString
                                             ? UnquoteString(line)
                                             : DecodeRawUnicode(line));
  Push(arena_.NewText(PickleKind::kString, std::move(text)));
  return absl::OkStatus();
}

}  // namespace txl
