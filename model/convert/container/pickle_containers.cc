// The opcodes of PickleMachine that make and fill containers and objects.

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "model/base/status_macros.h"
#include "model/convert/container/pickle_globals.h"
#include "model/convert/container/pickle_limits.h"
#include "model/convert/container/pickle_machine.h"
#include "model/convert/container/pickle_opcodes.h"
#include "model/convert/container/pickle_text.h"

namespace txl {
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
    return Malformed("entries are appended to what is no list");
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
    return Malformed("entries are set in what is no dictionary");
  }
  if ((stack_.size() - begin) % 2 != 0) {
    return Malformed("a key of a dictionary has no value");
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
    return Malformed("a global's name is no text");
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
      if (all->items().empty()) return Malformed("an object has no class");
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
    return Malformed("the arguments of an object are no tuple");
  }
  Push(NewObject(callee, args));
  return absl::OkStatus();
}

}  // namespace txl
