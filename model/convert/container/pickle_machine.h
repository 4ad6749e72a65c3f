#pragma once

// Reads one pickle (protocols 0 to 5, also of Python 2) into inert values.

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "model/base/regular_file.h"
#include "model/convert/container/pickle_input.h"
#include "model/convert/container/pickle_value.h"

namespace txl {

// Reads up to and with the opcode STOP. The value lives as long as `arena`.
// Time and memory are bounded by the bytes read and by pickle_value.h. Errors:
// InvalidArgument naming input, byte and what is wrong (truncated, malformed, a
// limit exceeded, a global that only an attack mentions).
absl::StatusOr<const PickleValue*> ReadPickle(PickleInput& input,
                                              PickleArena& arena);

// What an opcode answers that finds what it cannot use.
inline absl::Status Malformed(absl::string_view what) {
  return Bad(absl::StrCat("it is malformed: ", what));
}

// The stack machine behind it. One object reads one pickle.
class PickleMachine {
 public:
  PickleMachine(PickleInput& input, PickleArena& arena)
      : in_(input), arena_(arena), start_(input.position()) {}
  // Errors lack input and byte.
  absl::StatusOr<const PickleValue*> Run();

 private:
  using Group = absl::Status (PickleMachine::*)(uint8_t op);
  using OpcodeTable = std::array<Group, 256>;
  static OpcodeTable MakeOpcodeTable();

  absl::Status Execute(uint8_t op);
  // Groups of opcodes; each knows only its own.
  absl::Status Constant(uint8_t op);
  absl::Status BinaryNumber(uint8_t op);
  absl::Status TextNumber(uint8_t op);
  absl::Status CountedText(uint8_t op);
  absl::Status LineText(uint8_t op);
  absl::Status NewContainer(uint8_t op);
  absl::Status Fill(uint8_t op);
  absl::Status Memo(uint8_t op);
  absl::Status Stack(uint8_t op);
  absl::Status Global(uint8_t op);
  absl::Status Construct(uint8_t op);
  absl::Status Persistent(uint8_t op);

  void Push(PickleValue* value);
  void PushInt(PickleKind kind, int64_t number);
  absl::Status PushLong(std::string little_endian);
  absl::Status PushGlobal(absl::string_view module, absl::string_view name);
  // An object made by calling `callee`; null pointers are allowed.
  PickleValue* NewObject(const PickleValue* callee, const PickleValue* args);
  // Moves what lies above the last mark into a new value's items.
  absl::StatusOr<PickleValue*> PopItems(PickleKind kind);
  absl::StatusOr<PickleValue*> Pop();
  absl::StatusOr<PickleValue*> Top();
  absl::StatusOr<size_t> PopMark();
  // Moves stack entries from `begin` on into the container below them.
  absl::Status MoveToItems(size_t begin);
  absl::Status MoveToPairs(size_t begin);
  absl::Status Remember(uint64_t index);
  absl::Status Recall(uint64_t index);

  PickleInput& in_;
  PickleArena& arena_;
  const uint64_t start_;
  std::vector<PickleValue*> stack_;
  std::vector<size_t> marks_;  // sizes of the stack
  std::vector<PickleValue*> memo_;
  size_t memo_count_ = 0;
};

// The opcodes of Python's pickle protocols 0 to 5.

enum PickleOpcode : uint8_t {
  kOpMark = '(',
  kOpStop = '.',
  kOpPop = '0',
  kOpPopMark = '1',
  kOpDup = '2',
  kOpFloat = 'F',
  kOpInt = 'I',
  kOpBinInt = 'J',
  kOpBinInt1 = 'K',
  kOpLong = 'L',
  kOpBinInt2 = 'M',
  kOpNone = 'N',
  kOpPersId = 'P',
  kOpBinPersId = 'Q',
  kOpReduce = 'R',
  kOpString = 'S',
  kOpBinString = 'T',
  kOpShortBinString = 'U',
  kOpUnicode = 'V',
  kOpBinUnicode = 'X',
  kOpAppend = 'a',
  kOpBuild = 'b',
  kOpGlobal = 'c',
  kOpDict = 'd',
  kOpAppends = 'e',
  kOpGet = 'g',
  kOpBinGet = 'h',
  kOpInst = 'i',
  kOpLongBinGet = 'j',
  kOpList = 'l',
  kOpObj = 'o',
  kOpPut = 'p',
  kOpBinPut = 'q',
  kOpLongBinPut = 'r',
  kOpSetItem = 's',
  kOpTuple = 't',
  kOpSetItems = 'u',
  kOpEmptyDict = '}',
  kOpEmptyList = ']',
  kOpEmptyTuple = ')',
  kOpBinFloat = 'G',
  kOpBinBytes = 'B',
  kOpShortBinBytes = 'C',
  // Protocol 2.
  kOpProto = 0x80,
  kOpNewObj = 0x81,
  kOpTuple1 = 0x85,
  kOpTuple2 = 0x86,
  kOpTuple3 = 0x87,
  kOpNewTrue = 0x88,
  kOpNewFalse = 0x89,
  kOpLong1 = 0x8a,
  kOpLong4 = 0x8b,
  // Protocol 4.
  kOpShortBinUnicode = 0x8c,
  kOpBinUnicode8 = 0x8d,
  kOpBinBytes8 = 0x8e,
  kOpEmptySet = 0x8f,
  kOpAddItems = 0x90,
  kOpFrozenSet = 0x91,
  kOpNewObjEx = 0x92,
  kOpStackGlobal = 0x93,
  kOpMemoize = 0x94,
  kOpFrame = 0x95,
  // Protocol 5.
  kOpByteArray8 = 0x96,
  kOpReadOnlyBuffer = 0x98,
};

}  // namespace txl
