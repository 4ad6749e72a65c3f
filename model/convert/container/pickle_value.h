#pragma once

// What a pickle describes, as inert values: nothing is imported, called or
// constructed. Values may be shared and may contain themselves.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace txl {

enum class PickleKind : uint8_t {
  kNone,
  kBool,        // integer
  kInt,         // integer
  kBigInt,      // text: two's complement, little-endian
  kFloat,       // real
  kString,      // text: UTF-8, or the bytes of a Python-2 string
  kBytes,       // text
  kList,        // items
  kTuple,       // items
  kSet,         // items
  kDict,        // pairs
  kGlobal,      // text: "module.name"
  kObject,      // callee, args, state, items, pairs
  kPersistent,  // items: the persistent id
};

struct PickleValue;

// The parts of a container or an object.
struct PickleParts {
  std::vector<const PickleValue*> items;
  std::vector<const PickleValue*> pairs;  // key, value, key, value, ...
  // What would be called for an object, with which arguments, and the state
  // that would be given to the result; each may be null.
  const PickleValue* callee = nullptr;
  const PickleValue* args = nullptr;
  const PickleValue* state = nullptr;
};

struct PickleValue {
  PickleKind kind = PickleKind::kNone;
  int64_t integer = 0;
  double real = 0;
  absl::string_view text;
  PickleParts* parts = nullptr;  // null: all empty

  absl::Span<const PickleValue* const> items() const {
    return parts == nullptr ? absl::Span<const PickleValue* const>()
                            : parts->items;
  }
  absl::Span<const PickleValue* const> pairs() const {
    return parts == nullptr ? absl::Span<const PickleValue* const>()
                            : parts->pairs;
  }
  const PickleValue* callee() const { return parts ? parts->callee : nullptr; }
  const PickleValue* args() const { return parts ? parts->args : nullptr; }
  const PickleValue* state() const { return parts ? parts->state : nullptr; }
  bool IsText() const {
    return kind == PickleKind::kString || kind == PickleKind::kBytes;
  }
  bool IsGlobal(absl::string_view name) const {
    return kind == PickleKind::kGlobal && text == name;
  }
};

// Owns the values of pickles, however deeply they nest. Not thread-safe.
class PickleArena {
 public:
  PickleValue* New(PickleKind kind) {
    Charge(sizeof(PickleValue));
    PickleValue& value = values_.emplace_back();
    value.kind = kind;
    if (kind == PickleKind::kPersistent) persistent_.push_back(&value);
    return &value;
  }
  PickleValue* NewText(PickleKind kind, std::string text) {
    Charge(sizeof(std::string) + text.capacity());
    texts_.push_back(std::move(text));
    PickleValue* value = New(kind);
    value->text = texts_.back();
    return value;
  }
  PickleParts& PartsOf(PickleValue& value) {
    if (value.parts == nullptr) {
      Charge(sizeof(PickleParts));
      value.parts = &parts_.emplace_back();
    }
    return *value.parts;
  }
  // Counts memory that a caller needs for the values.
  void Charge(size_t bytes) { memory_bytes_ += bytes; }
  size_t memory_bytes() const { return memory_bytes_; }
  // All values of kind kPersistent, oldest first.
  const std::vector<const PickleValue*>& persistent() const {
    return persistent_;
  }

 private:
  std::deque<PickleValue> values_;
  std::deque<PickleParts> parts_;
  std::deque<std::string> texts_;
  std::vector<const PickleValue*> persistent_;
  size_t memory_bytes_ = 0;
};

// What a pickle may ask for. Real files stay far below: the pickle of a model
// has some thousand values, that of a vocabulary of a million words needs a
// third of the memory.

// Memory of the values of one pickle, and of the plain data made of them.
inline constexpr size_t kMaxPickleMemoryBytes = size_t{384} << 20;
inline constexpr size_t kMaxPlainDataBytes = size_t{256} << 20;
// Plain data repeats what a pickle shares; it may be this much larger than the
// pickle, plus a constant for small ones.
inline constexpr size_t kPlainDataPerPickleByte = 64;
inline constexpr size_t kPlainDataFreeBytes = 1 << 20;
inline constexpr uint64_t kMaxPickleOpcodes = 100'000'000;
inline constexpr uint64_t kMaxPickleStringBytes = uint64_t{256} << 20;
// A number or a name in a text opcode.
inline constexpr uint64_t kMaxPickleLineBytes = 1 << 16;
inline constexpr int kMaxPlainDataDepth = 200;
inline constexpr size_t kMaxTensorNameBytes = 4096;

}  // namespace txl
