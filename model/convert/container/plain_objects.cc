// How PlainDataWriter writes objects.

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "model/base/status_macros.h"
#include "model/convert/container/native_checkpoint.h"
#include "model/convert/container/pickle_text.h"
#include "model/convert/container/pickle_value.h"
#include "model/convert/container/plain_data.h"
#include "model/convert/container/torch_storage.h"

namespace txl {
namespace {

// What an object of plain data needs with the name of its class.
constexpr size_t kObjectBytes = 128;

constexpr char kItemsKey[] = "__items__";
constexpr char kStateKey[] = "__state__";
constexpr char kParameters[] = "_parameters";
constexpr char kBuffers[] = "_buffers";
constexpr char kModulesEntry[] = "_modules";
constexpr char kUnsavedBuffers[] = "_non_persistent_buffers_set";

constexpr absl::string_view kDicts[] = {
    "__builtin__.dict",        "builtins.dict",           "collections.Counter",
    "collections.OrderedDict", "collections.defaultdict",
};
constexpr absl::string_view kSequences[] = {
    "__builtin__.frozenset",
    "__builtin__.list",
    "__builtin__.set",
    "__builtin__.tuple",
    "builtins.frozenset",
    "builtins.list",
    "builtins.set",
    "builtins.tuple",
    "collections.deque",
    "sets.Set",
    "torch.Size",
};
constexpr absl::string_view kEncoders[] = {
    "__builtin__.bytearray", "__builtin__.bytes", "_codecs.encode",
    "builtins.bytearray",    "builtins.bytes",
};

template <typename List>
bool IsOneOf(const List& list, absl::string_view what) {
  return std::find(std::begin(list), std::end(list), what) != std::end(list);
}

// The value of `name` in a dictionary, also one made by a call; or null. The
// last entry wins, as in Python.
const PickleValue* Find(const PickleValue& dict, absl::string_view name) {
  const auto pairs = dict.pairs();
  for (size_t i = pairs.size() / 2; i-- > 0;) {
    const PickleValue& key = *pairs[2 * i];
    if (key.IsText() && key.text == name) return pairs[2 * i + 1];
  }
  return nullptr;
}

// Entries of a set, also of one made by a call with a list; duplicates too.
absl::Span<const PickleValue* const> EntriesOfSet(const PickleValue* set) {
  if (set == nullptr) return {};
  if (set->kind == PickleKind::kObject && set->args() != nullptr &&
      set->args()->items().size() == 1) {
    return set->args()->items()[0]->items();
  }
  return set->items();
}

bool IsModule(const PickleValue& state) {
  return state.kind == PickleKind::kDict && Find(state, kParameters) &&
         Find(state, kModulesEntry);
}

}  // namespace

PlainDataWriter::Construction PlainDataWriter::ConstructionOf(
    const PickleValue& object) {
  Construction made;
  const PickleValue* callee = object.callee();
  if (object.args() != nullptr) made.args = object.args()->items();
  if (callee == nullptr) return made;
  const auto is = [&](absl::string_view module, absl::string_view name) {
    return callee->IsGlobal(absl::StrCat(module, ".", name));
  };
  // Protocols 0 and 1 construct through helpers that are given the class.
  if (!made.args.empty() &&
      (is("copy_reg", "_reconstructor") || is("copyreg", "_reconstructor"))) {
    callee = made.args[0];
    made.args = {};
  } else if (!made.args.empty() &&
             (is("copyreg", "__newobj__") || is("copy_reg", "__newobj__"))) {
    callee = made.args[0];
    made.args.remove_prefix(1);
  }
  if (const PickleValue* module_class = ModuleClass(*callee)) {
    callee = module_class;
  }
  if (callee->kind == PickleKind::kGlobal) made.global = callee->text;
  return made;
}

absl::StatusOr<json> PlainDataWriter::WriteObject(const PickleValue& object) {
  const Construction made = ConstructionOf(object);
  TXL_RETURN_IF_ERROR(Spend(kObjectBytes + made.global.size()));
  if (IsOneOf(kDicts, made.global)) return WriteDict(object);
  if (IsOneOf(kSequences, made.global)) {
    return WriteSequence(object, made.args);
  }
  if (IsOneOf(kEncoders, made.global)) {
    TXL_RETURN_IF_ERROR(
        Spend(made.args.empty() ? 0 : made.args[0]->text.size()));
    return WriteBytes(made.args);
  }
  if (WrapsTensor(made.global) && !made.args.empty()) {
    return Write(*made.args[0]);
  }
  if (RebuildsTensor(made.global)) return WriteTensor(made.global, made.args);
  if (made.global == "torch.device" && !made.args.empty() &&
      made.args[0]->IsText()) {
    std::string device(made.args[0]->text);
    if (made.args.size() > 1 && made.args[1]->kind == PickleKind::kInt) {
      absl::StrAppend(&device, ":", made.args[1]->integer);
    }
    return json(std::move(device));
  }
  return WriteInstance(object, made);
}

absl::StatusOr<std::vector<const PickleValue*>> PlainDataWriter::EntriesOf(
    const PickleValue& dict) {
  std::vector<const PickleValue*> pairs;
  if (dict.kind == PickleKind::kObject) {
    const Values args = ConstructionOf(dict).args;
    if (!args.empty()) {
      // The last: a defaultdict is given its factory first.
      const PickleValue& given = *args.back();
      TXL_RETURN_IF_ERROR(
          Spend((given.pairs().size() + given.items().size()) * 8));
      pairs.assign(given.pairs().begin(), given.pairs().end());
      for (const PickleValue* pair : given.items()) {
        if (pair->items().size() != 2) continue;
        pairs.insert(pairs.end(), pair->items().begin(), pair->items().end());
      }
    }
  }
  TXL_RETURN_IF_ERROR(Spend(dict.pairs().size() * 8));
  pairs.insert(pairs.end(), dict.pairs().begin(), dict.pairs().end());
  return pairs;
}

absl::StatusOr<json> PlainDataWriter::WriteDict(const PickleValue& object) {
  TXL_ASSIGN_OR_RETURN(const auto pairs, EntriesOf(object));
  json dict = json::object();
  TXL_RETURN_IF_ERROR(AddPairs(pairs, dict));
  return dict;
}

absl::StatusOr<json> PlainDataWriter::WriteSequence(const PickleValue& object,
                                                    Values args) {
  json list = json::array();
  if (!args.empty()) {
    TXL_RETURN_IF_ERROR(AppendItems(args[0]->items(), list));
  }
  TXL_RETURN_IF_ERROR(AppendItems(object.items(), list));
  return list;
}

absl::StatusOr<json> PlainDataWriter::WriteBytes(Values args) {
  if (args.empty()) return json("");
  if (args[0]->kind == PickleKind::kBytes) {
    return json(std::string(args[0]->text));
  }
  // Bytes made of bytes that are made by another call.
  if (args[0]->kind != PickleKind::kString) return Write(*args[0]);
  const absl::StatusOr<std::string> bytes = LatinBytes(args[0]->text);
  if (!bytes.ok()) return Bad(bytes.status().message());
  return json(*bytes);
}

absl::StatusOr<json> PlainDataWriter::WriteTensor(absl::string_view global,
                                                  Values args) {
  const json inert = {{kClassKey, "torch.Tensor"}};
  TXL_RETURN_IF_ERROR(Spend(sizeof(StoredTensor) + place_.size()));
  if (storages_ == nullptr) return inert;
  absl::StatusOr<std::optional<StoredTensor>> tensor =
      RebuildTensor(global, args, *storages_);
  if (!tensor.ok()) return Bad(tensor.status().message());
  if (!tensor->has_value()) return inert;
  if (place_.size() > kMaxTensorNameBytes) {
    return Bad("a tensor has a name that is too long");
  }
  const auto [known, added] = tensors_.emplace(place_, **tensor);
  if (!added && !SameView(known->second, **tensor)) {
    return Bad("two tensors have this name");
  }
  return json{{kTensorKey, place_}};
}

absl::StatusOr<json> PlainDataWriter::WriteInstance(const PickleValue& object,
                                                    const Construction& made) {
  json written = json::object();
  written[kClassKey] = std::string(made.global.empty() ? "?" : made.global);
  if (!made.args.empty()) {
    json args = json::array();
    const size_t before = place_.size();
    absl::StrAppend(&place_, before == 0 ? "" : ".", kArgsKey);
    const absl::Status added = AppendItems(made.args, args);
    place_.resize(before);
    TXL_RETURN_IF_ERROR(added);
    written[kArgsKey] = std::move(args);
  }
  if (!object.items().empty()) {
    json items = json::array();
    TXL_RETURN_IF_ERROR(AppendItems(object.items(), items));
    written[kItemsKey] = std::move(items);
  }
  TXL_RETURN_IF_ERROR(AddPairs(object.pairs(), written));
  if (object.state() != nullptr) {
    TXL_RETURN_IF_ERROR(AddState(*object.state(), written));
  }
  // An entry of this name must not hide what the value is.
  written[kClassKey] = std::string(made.global.empty() ? "?" : made.global);
  return written;
}

absl::Status PlainDataWriter::AddState(const PickleValue& state, json& object) {
  if (state.kind == PickleKind::kNone) return absl::OkStatus();
  if (IsModule(state)) return AddModule(state, object);
  if (state.kind == PickleKind::kDict) return AddPairs(state.pairs(), object);
  // (attributes, slots) of a class with slots.
  const auto parts = state.items();
  if (state.kind == PickleKind::kTuple && parts.size() == 2 &&
      parts[1]->kind == PickleKind::kDict &&
      (parts[0]->kind == PickleKind::kDict ||
       parts[0]->kind == PickleKind::kNone)) {
    TXL_RETURN_IF_ERROR(AddPairs(parts[0]->pairs(), object));
    return AddPairs(parts[1]->pairs(), object);
  }
  TXL_ASSIGN_OR_RETURN(object[kStateKey], WriteAt(kStateKey, state));
  return absl::OkStatus();
}

absl::Status PlainDataWriter::AddModule(const PickleValue& state,
                                        json& object) {
  const auto pairs = state.pairs();
  for (size_t i = 0; i + 1 < pairs.size(); i += 2) {
    const PickleValue& key = *pairs[i];
    const PickleValue& value = *pairs[i + 1];
    TXL_RETURN_IF_ERROR(Spend(sizeof(PickleValue*)));
    if (key.IsText() && (key.text == kParameters || key.text == kBuffers)) {
      const bool buffers = key.text == kBuffers;
      TXL_RETURN_IF_ERROR(AddModuleTensors(
          value, buffers ? Find(state, kUnsavedBuffers) : nullptr));
    } else if (key.IsText() && key.text == kModulesEntry) {
      // Children are named without "_modules" in between.
      TXL_ASSIGN_OR_RETURN(object[kModulesEntry], Write(value));
    } else {
      TXL_RETURN_IF_ERROR(AddPairs({&pairs[i], 2}, object));
    }
  }
  return absl::OkStatus();
}

absl::Status PlainDataWriter::AddModuleTensors(const PickleValue& tensors,
                                               const PickleValue* left_out) {
  const auto entries = EntriesOfSet(left_out);
  TXL_RETURN_IF_ERROR(Spend(entries.size() * sizeof(absl::string_view)));
  absl::flat_hash_set<absl::string_view> unsaved;
  for (const PickleValue* entry : entries) {
    if (entry->IsText()) unsaved.insert(entry->text);
  }
  TXL_ASSIGN_OR_RETURN(const auto pairs, EntriesOf(tensors));
  for (size_t i = 0; i + 1 < pairs.size(); i += 2) {
    const std::string name = KeyText(*pairs[i], i / 2);
    if (unsaved.contains(name)) continue;
    TXL_RETURN_IF_ERROR(WriteAt(name, *pairs[i + 1]).status());
  }
  return absl::OkStatus();
}

}  // namespace txl
