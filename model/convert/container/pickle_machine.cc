#include "model/convert/container/pickle_machine.h"

#include <cstring>
#include <initializer_list>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "model/base/status_macros.h"
#include "model/convert/container/pickle_text.h"
#include "model/convert/container/pickle_value.h"

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
      return Malformed("a memo index is not a number");
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

// The opcodes of PickleMachine that make and fill containers and objects.

namespace {

bool HoldsItems(PickleKind kind) {
  return kind == PickleKind::kList || kind == PickleKind::kSet ||
         kind == PickleKind::kObject;
}

bool HoldsPairs(PickleKind kind) {
  return kind == PickleKind::kDict || kind == PickleKind::kObject;
}

}  // namespace

absl::StatusOr<PickleValue*> PickleMachine::PopItems(PickleKind kind) {
  TXL_ASSIGN_OR_RETURN(const size_t begin, PopMark());
  PickleValue* const value = arena_.New(kind);
  if (begin < stack_.size()) {
    arena_.Charge((stack_.size() - begin) * sizeof(PickleValue*));
    arena_.PartsOf(*value).items.assign(
        stack_.begin() + static_cast<std::ptrdiff_t>(begin), stack_.end());
    stack_.resize(begin);
  }
  return value;
}

absl::Status PickleMachine::NewContainer(uint8_t op) {
  switch (op) {
    case kOpEmptyDict:
      Push(arena_.New(PickleKind::kDict));
      return absl::OkStatus();
    case kOpEmptyList:
      Push(arena_.New(PickleKind::kList));
      return absl::OkStatus();
    case kOpEmptyTuple:
      Push(arena_.New(PickleKind::kTuple));
      return absl::OkStatus();
    case kOpEmptySet:
      Push(arena_.New(PickleKind::kSet));
      return absl::OkStatus();
    case kOpTuple1:
    case kOpTuple2:
    case kOpTuple3: {
      const size_t count = op - kOpTuple1 + 1u;
      if (stack_.size() - (marks_.empty() ? 0 : marks_.back()) < count) {
        return Malformed("an opcode finds too few values");
      }
      marks_.push_back(stack_.size() - count);
      break;
    }
    case kOpDict: {
      // DICT is EMPTY_DICT before the mark, then SETITEMS.
      TXL_ASSIGN_OR_RETURN(const size_t begin, PopMark());
      stack_.insert(stack_.begin() + static_cast<std::ptrdiff_t>(begin),
                    arena_.New(PickleKind::kDict));
      return MoveToPairs(begin + 1);
    }
    default:
      break;
  }
  const PickleKind kind = op == kOpList        ? PickleKind::kList
                          : op == kOpFrozenSet ? PickleKind::kSet
                                               : PickleKind::kTuple;
  TXL_ASSIGN_OR_RETURN(PickleValue* const value, PopItems(kind));
  Push(value);
  return absl::OkStatus();
}

absl::Status PickleMachine::MoveToItems(size_t begin) {
  if (begin == 0 || begin > stack_.size() ||
      !HoldsItems(stack_[begin - 1]->kind)) {
    return Malformed("entries are appended to a value that is not a list");
  }
  if (begin == stack_.size()) return absl::OkStatus();
  auto& items = arena_.PartsOf(*stack_[begin - 1]).items;
  arena_.Charge((stack_.size() - begin) * 2 * sizeof(PickleValue*));
  items.insert(items.end(), stack_.begin() + static_cast<std::ptrdiff_t>(begin),
               stack_.end());
  stack_.resize(begin);
  return absl::OkStatus();
}

absl::Status PickleMachine::MoveToPairs(size_t begin) {
  if (begin == 0 || begin > stack_.size() ||
      !HoldsPairs(stack_[begin - 1]->kind)) {
    return Malformed("entries are set in a value that is not a dictionary");
  }
  if ((stack_.size() - begin) % 2 != 0) {
    return Malformed("a dictionary has a key without a value");
  }
  if (begin == stack_.size()) return absl::OkStatus();
  auto& pairs = arena_.PartsOf(*stack_[begin - 1]).pairs;
  arena_.Charge((stack_.size() - begin) * 2 * sizeof(PickleValue*));
  pairs.insert(pairs.end(), stack_.begin() + static_cast<std::ptrdiff_t>(begin),
               stack_.end());
  stack_.resize(begin);
  return absl::OkStatus();
}

absl::Status PickleMachine::Fill(uint8_t op) {
  if (op == kOpAppend || op == kOpSetItem) {
    const size_t count = op == kOpAppend ? 1 : 2;
    const size_t bottom = marks_.empty() ? 0 : marks_.back();
    if (stack_.size() < bottom + count + 1) {
      return Malformed("an opcode finds too few values");
    }
    const size_t begin = stack_.size() - count;
    return op == kOpAppend ? MoveToItems(begin) : MoveToPairs(begin);
  }
  TXL_ASSIGN_OR_RETURN(const size_t begin, PopMark());
  return op == kOpSetItems ? MoveToPairs(begin) : MoveToItems(begin);
}

absl::Status PickleMachine::PushGlobal(absl::string_view module,
                                       absl::string_view name) {
  std::string whole = absl::StrCat(module, ".", name);
  if (IsForbiddenGlobal(module, name)) {
    return absl::InvalidArgumentError(
        absl::StrCat("it names the forbidden global ", Printable(whole),
                     ", which no checkpoint needs"));
  }
  Push(arena_.NewText(PickleKind::kGlobal, std::move(whole)));
  return absl::OkStatus();
}

absl::Status PickleMachine::Global(uint8_t op) {
  if (op == kOpGlobal) {
    TXL_ASSIGN_OR_RETURN(const std::string module,
                         in_.Line(kMaxPickleLineBytes));
    TXL_ASSIGN_OR_RETURN(const std::string name, in_.Line(kMaxPickleLineBytes));
    return PushGlobal(module, name);
  }
  TXL_ASSIGN_OR_RETURN(const PickleValue* const name, Pop());
  TXL_ASSIGN_OR_RETURN(const PickleValue* const module, Pop());
  if (!name->IsText() || !module->IsText() ||
      name->text.size() + module->text.size() > kMaxPickleLineBytes) {
    return Malformed("the name of a global is not text");
  }
  return PushGlobal(module->text, name->text);
}

PickleValue* PickleMachine::NewObject(const PickleValue* callee,
                                      const PickleValue* args) {
  PickleValue* const object = arena_.New(PickleKind::kObject);
  PickleParts& parts = arena_.PartsOf(*object);
  parts.callee = callee;
  parts.args = args;
  return object;
}

absl::Status PickleMachine::Construct(uint8_t op) {
  const PickleValue* args = nullptr;
  switch (op) {
    case kOpInst: {
      TXL_RETURN_IF_ERROR(Global(kOpGlobal));
      PickleValue* const callee = stack_.back();
      stack_.pop_back();
      TXL_ASSIGN_OR_RETURN(args, PopItems(PickleKind::kTuple));
      Push(NewObject(callee, args));
      return absl::OkStatus();
    }
    case kOpObj: {
      TXL_ASSIGN_OR_RETURN(PickleValue* const all,
                           PopItems(PickleKind::kTuple));
      if (all->items().empty()) {
        return Malformed("an object is built without a class");
      }
      const PickleValue* const callee = all->items().front();
      auto& items = arena_.PartsOf(*all).items;
      items.erase(items.begin());
      Push(NewObject(callee, all));
      return absl::OkStatus();
    }
    case kOpBuild: {
      TXL_ASSIGN_OR_RETURN(const PickleValue* const state, Pop());
      TXL_ASSIGN_OR_RETURN(PickleValue* const object, Top());
      // The state of anything else (a list, a call's result) has no meaning.
      arena_.PartsOf(*object).state = state;
      return absl::OkStatus();
    }
    case kOpNewObjEx: {
      // Keyword arguments: copied nowhere, nothing that matters uses them.
      TXL_RETURN_IF_ERROR(Pop().status());
      break;
    }
    default:
      break;
  }
  TXL_ASSIGN_OR_RETURN(args, Pop());
  TXL_ASSIGN_OR_RETURN(const PickleValue* const callee, Pop());
  if (args->kind != PickleKind::kTuple) {
    return Malformed("the arguments of an object are not a tuple");
  }
  Push(NewObject(callee, args));
  return absl::OkStatus();
}

// The opcodes of PickleMachine that push numbers and texts.

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
      return Malformed("a float cannot be read as one");
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
    return Malformed("an integer cannot be read as one");
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
