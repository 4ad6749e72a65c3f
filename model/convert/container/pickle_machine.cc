#include "model/convert/container/pickle_machine.h"

#include <initializer_list>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "model/base/status_macros.h"
#include "model/convert/container/pickle_limits.h"
#include "model/convert/container/pickle_opcodes.h"

namespace txl {
namespace {

constexpr uint64_t kNewestProtocol = 5;

}  // namespace

absl::StatusOr<const PickleValue*> ReadPickle(PickleInput& input,
                                              PickleArena& arena) {
  PickleMachine machine(input, arena);
  absl::StatusOr<const PickleValue*> value = machine.Run();
  if (value.ok() || !absl::IsInvalidArgument(value.status())) return value;
  return absl::InvalidArgumentError(
      absl::StrCat(input.name(), ": pickle at byte ", input.position(), ": ",
                   value.status().message()));
}

absl::StatusOr<const PickleValue*> PickleMachine::Run() {
  for (uint64_t count = 0; count < kMaxPickleOpcodes; ++count) {
    TXL_ASSIGN_OR_RETURN(const uint8_t op, in_.Byte());
    if (op == kOpStop) {
      if (stack_.size() != 1 || !marks_.empty()) {
        return Malformed("STOP without exactly one value");
      }
      return stack_.back();
    }
    TXL_RETURN_IF_ERROR(Execute(op));
    if (arena_.memory_bytes() > kMaxPickleMemoryBytes) {
      return Bad("it needs more memory than a checkpoint's may");
    }
  }
  return Bad("it has too many opcodes");
}

absl::Status PickleMachine::Execute(uint8_t op) {
  static const OpcodeTable table = MakeOpcodeTable();
  const Group group = table[op];
  if (group != nullptr) return (this->*group)(op);
  return Bad(absl::StrFormat(
      "it is malformed: opcode 0x%02x is unknown or unsupported", op));
}

PickleMachine::OpcodeTable PickleMachine::MakeOpcodeTable() {
  OpcodeTable table = {};
  const auto add = [&](Group group, std::initializer_list<PickleOpcode> ops) {
    for (const PickleOpcode op : ops) table[op] = group;
  };
  using M = PickleMachine;
  add(&M::Constant, {kOpNone, kOpNewTrue, kOpNewFalse, kOpProto, kOpFrame});
  add(&M::BinaryNumber,
      {kOpBinInt, kOpBinInt1, kOpBinInt2, kOpBinFloat, kOpLong1, kOpLong4});
  add(&M::TextNumber, {kOpInt, kOpLong, kOpFloat});
  add(&M::CountedText, {kOpBinString, kOpShortBinString, kOpBinUnicode,
                        kOpShortBinUnicode, kOpBinUnicode8, kOpBinBytes,
                        kOpShortBinBytes, kOpBinBytes8, kOpByteArray8});
  add(&M::LineText, {kOpString, kOpUnicode});
  add(&M::NewContainer,
      {kOpEmptyDict, kOpEmptyList, kOpEmptyTuple, kOpEmptySet, kOpDict, kOpList,
       kOpTuple, kOpFrozenSet, kOpTuple1, kOpTuple2, kOpTuple3});
  add(&M::Fill, {kOpAppend, kOpAppends, kOpSetItem, kOpSetItems, kOpAddItems});
  add(&M::Memo, {kOpPut, kOpBinPut, kOpLongBinPut, kOpMemoize, kOpGet,
                 kOpBinGet, kOpLongBinGet});
  add(&M::Stack, {kOpMark, kOpPop, kOpPopMark, kOpDup, kOpReadOnlyBuffer});
  add(&M::Global, {kOpGlobal, kOpStackGlobal});
  add(&M::Construct,
      {kOpReduce, kOpNewObj, kOpNewObjEx, kOpInst, kOpObj, kOpBuild});
  add(&M::Persistent, {kOpPersId, kOpBinPersId});
  return table;
}

absl::Status PickleMachine::Constant(uint8_t op) {
  if (op == kOpFrame) return in_.Number(8).status();
  if (op == kOpProto) {
    TXL_ASSIGN_OR_RETURN(const uint8_t protocol, in_.Byte());
    if (protocol <= kNewestProtocol) return absl::OkStatus();
    return Bad(absl::StrCat("its protocol ", protocol, " is not known"));
  }
  if (op == kOpNone) {
    Push(arena_.New(PickleKind::kNone));
  } else {
    PushInt(PickleKind::kBool, op == kOpNewTrue ? 1 : 0);
  }
  return absl::OkStatus();
}

absl::Status PickleMachine::Memo(uint8_t op) {
  if (op == kOpMemoize) return Remember(memo_count_);
  uint64_t index = 0;
  if (op == kOpPut || op == kOpGet) {
    TXL_ASSIGN_OR_RETURN(const std::string line, in_.Line(kMaxPickleLineBytes));
    if (!absl::SimpleAtoi(line, &index)) {
      return Malformed("a memo index is no number");
    }
  } else {
    const bool wide = op == kOpLongBinPut || op == kOpLongBinGet;
    TXL_ASSIGN_OR_RETURN(index, in_.Number(wide ? 4 : 1));
  }
  const bool put = op == kOpPut || op == kOpBinPut || op == kOpLongBinPut;
  return put ? Remember(index) : Recall(index);
}

absl::Status PickleMachine::Remember(uint64_t index) {
  TXL_ASSIGN_OR_RETURN(PickleValue* const top, Top());
  // Picklers count: an index has as many predecessors, each an opcode.
  if (index > in_.position() - start_) {
    return Bad(absl::StrCat("the memo index ", index, " is too large"));
  }
  if (index >= memo_.size()) {
    const size_t before = memo_.capacity();
    memo_.resize(index + 1);
    arena_.Charge((memo_.capacity() - before) * sizeof(PickleValue*));
  }
  if (memo_[index] == nullptr) ++memo_count_;
  memo_[index] = top;
  return absl::OkStatus();
}

absl::Status PickleMachine::Recall(uint64_t index) {
  if (index >= memo_.size() || memo_[index] == nullptr) {
    return Malformed(
        absl::StrCat("the memo index ", index, " was never stored"));
  }
  Push(memo_[index]);
  return absl::OkStatus();
}

absl::Status PickleMachine::Stack(uint8_t op) {
  switch (op) {
    case kOpMark:
      arena_.Charge(sizeof(size_t));
      marks_.push_back(stack_.size());
      return absl::OkStatus();
    case kOpDup: {
      TXL_ASSIGN_OR_RETURN(PickleValue* const top, Top());
      Push(top);
      return absl::OkStatus();
    }
    case kOpPop:
      // A mark on top counts as an entry.
      if (!marks_.empty() && marks_.back() == stack_.size()) {
        marks_.pop_back();
        return absl::OkStatus();
      }
      return Pop().status();
    case kOpPopMark: {
      TXL_ASSIGN_OR_RETURN(const size_t begin, PopMark());
      stack_.resize(begin);
      return absl::OkStatus();
    }
    default:  // kOpReadOnlyBuffer marks the top as read-only.
      return Top().status();
  }
}

absl::Status PickleMachine::Persistent(uint8_t op) {
  const PickleValue* id = nullptr;
  if (op == kOpPersId) {
    TXL_ASSIGN_OR_RETURN(std::string line, in_.Line(kMaxPickleLineBytes));
    id = arena_.NewText(PickleKind::kString, std::move(line));
  } else {
    TXL_ASSIGN_OR_RETURN(id, Pop());
  }
  PickleValue* const value = arena_.New(PickleKind::kPersistent);
  arena_.PartsOf(*value).items.push_back(id);
  Push(value);
  return absl::OkStatus();
}

void PickleMachine::Push(PickleValue* value) {
  arena_.Charge(sizeof(PickleValue*));
  stack_.push_back(value);
}

absl::StatusOr<PickleValue*> PickleMachine::Top() {
  // What lies below a mark belongs to what comes after it.
  if (stack_.size() <= (marks_.empty() ? 0 : marks_.back())) {
    return Malformed("an opcode finds too few values");
  }
  return stack_.back();
}

absl::StatusOr<PickleValue*> PickleMachine::Pop() {
  TXL_ASSIGN_OR_RETURN(PickleValue* const top, Top());
  stack_.pop_back();
  return top;
}

absl::StatusOr<size_t> PickleMachine::PopMark() {
  if (marks_.empty()) {
    return Malformed("an opcode finds no mark");
  }
  const size_t begin = marks_.back();
  marks_.pop_back();
  return begin;
}

}  // namespace txl
