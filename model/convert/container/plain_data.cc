#include "model/convert/container/plain_data.h"

#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "model/base/status_macros.h"
#include "model/convert/container/native_checkpoint.h"
#include "model/convert/container/pickle_text.h"
#include "model/convert/container/pickle_value.h"

namespace txl {

namespace {

// What a container of plain data needs before it holds anything.
constexpr size_t kContainerBytes = 64;

}  // namespace

absl::StatusOr<PlainData> ToPlainData(const PickleValue& root,
                                      const std::string& name,
                                      uint64_t pickle_bytes,
                                      TorchStorages* storages) {
  const uint64_t budget =
      std::min<uint64_t>(kMaxPlainDataBytes / kPlainDataPerPickleByte,
                         pickle_bytes) *
          kPlainDataPerPickleByte +
      kPlainDataFreeBytes;
  PlainDataWriter writer(name, budget, storages);
  PlainData plain;
  TXL_ASSIGN_OR_RETURN(plain.data, writer.Write(root));
  plain.tensors = std::move(writer).TakeTensors();
  return plain;
}

absl::Status PlainDataWriter::Bad(absl::string_view what) const {
  const std::string place =
      place_.empty() ? "" : absl::StrCat(" at ", Printable(place_));
  return absl::InvalidArgumentError(absl::StrCat(name_, place, ": ", what));
}

absl::Status PlainDataWriter::Spend(size_t bytes) {
  if (bytes <= budget_) {
    budget_ -= bytes;
    return absl::OkStatus();
  }
  return Bad(
      "the pickle shares its values so often that they are too many when "
      "written out");
}

absl::StatusOr<json> PlainDataWriter::Write(const PickleValue& value) {
  TXL_RETURN_IF_ERROR(Spend(sizeof(PickleValue*) * 4 + value.text.size()));
  if (depth_ >= kMaxPlainDataDepth) {
    return Bad(absl::StrCat("the pickle nests deeper than ", kMaxPlainDataDepth,
                            " levels, or contains itself"));
  }
  ++depth_;
  absl::StatusOr<json> written = WriteKind(value);
  --depth_;
  return written;
}

absl::StatusOr<json> PlainDataWriter::WriteAt(absl::string_view key,
                                              const PickleValue& value) {
  const size_t before = place_.size();
  TXL_RETURN_IF_ERROR(Spend(key.size()));
  absl::StrAppend(&place_, before == 0 ? "" : ".", key);
  absl::StatusOr<json> written = Write(value);
  // An error has already been given its place.
  place_.resize(before);
  return written;
}

absl::StatusOr<json> PlainDataWriter::WriteKind(const PickleValue& value) {
  switch (value.kind) {
    case PickleKind::kNone:
      return json();
    case PickleKind::kBool:
      return json(value.integer != 0);
    case PickleKind::kInt:
      return json(value.integer);
    case PickleKind::kFloat:
      return json(value.real);
    case PickleKind::kBigInt: {
      std::string digits(value.text.rbegin(), value.text.rend());
      return json(absl::StrCat("0x", absl::BytesToHexString(digits)));
    }
    case PickleKind::kString:
    case PickleKind::kBytes:
    case PickleKind::kGlobal:
      return json(std::string(value.text));
    case PickleKind::kList:
    case PickleKind::kTuple:
    case PickleKind::kSet: {
      TXL_RETURN_IF_ERROR(Spend(kContainerBytes));
      json list = json::array();
      TXL_RETURN_IF_ERROR(AppendItems(value.items(), list));
      return list;
    }
    case PickleKind::kDict: {
      TXL_RETURN_IF_ERROR(Spend(kContainerBytes));
      json object = json::object();
      TXL_RETURN_IF_ERROR(AddPairs(value.pairs(), object));
      return object;
    }
    case PickleKind::kPersistent:
      return json{{kClassKey, "torch.storage"}};
    case PickleKind::kObject:
      return WriteObject(value);
  }
  return json();
}

absl::Status PlainDataWriter::AppendItems(
    absl::Span<const PickleValue* const> items, json& list) {
  for (const PickleValue* item : items) {
    TXL_ASSIGN_OR_RETURN(json written,
                         WriteAt(absl::StrCat(list.size()), *item));
    list.push_back(std::move(written));
  }
  return absl::OkStatus();
}

absl::Status PlainDataWriter::AddPairs(
    absl::Span<const PickleValue* const> pairs, json& object) {
  for (size_t i = 0; i + 1 < pairs.size(); i += 2) {
    const std::string key = KeyText(*pairs[i], i / 2);
    TXL_RETURN_IF_ERROR(Spend(sizeof(PickleValue*) * 4));
    TXL_ASSIGN_OR_RETURN(object[key], WriteAt(key, *pairs[i + 1]));
  }
  return absl::OkStatus();
}

std::string PlainDataWriter::KeyText(const PickleValue& key, size_t index) {
  constexpr size_t kMaxTupleParts = 16;
  switch (key.kind) {
    case PickleKind::kString:
    case PickleKind::kBytes:
    case PickleKind::kGlobal:
      return std::string(key.text);
    case PickleKind::kInt:
      return absl::StrCat(key.integer);
    case PickleKind::kBool:
      return key.integer != 0 ? "True" : "False";
    case PickleKind::kNone:
      return "None";
    case PickleKind::kFloat:
      return absl::StrCat(key.real);
    case PickleKind::kTuple: {
      std::string text = "(";
      if (key.items().size() > kMaxTupleParts) break;
      for (const PickleValue* part : key.items()) {
        if (part->kind == PickleKind::kTuple ||
            part->text.size() > kMaxTensorNameBytes) {
          return absl::StrCat("#", index);
        }
        absl::StrAppend(&text, text.size() > 1 ? ", " : "",
                        KeyText(*part, index));
      }
      return text + ")";
    }
    default:
      break;
  }
  return absl::StrCat("#", index);
}

}  // namespace txl
