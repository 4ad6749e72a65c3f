#include "model/convert/family/places.h"

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace txl {
namespace {

using nlohmann::json;

const json* Find(const json& object, absl::string_view key) {
  if (!object.is_object()) return nullptr;
  const auto it = object.find(std::string(key));
  return it == object.end() ? nullptr : &*it;
}

}  // namespace

bool HasPart(const NativeCheckpoint& checkpoint, absl::string_view part) {
  const std::string inner = absl::StrCat(".", part);
  for (const auto& [name, tensor] : checkpoint.tensors) {
    if (absl::StartsWith(name, part) || absl::StrContains(name, inner)) {
      return true;
    }
  }
  return false;
}

absl::StatusOr<std::string> PlaceBefore(const NativeCheckpoint& checkpoint,
                                        absl::string_view name) {
  const std::string inner = absl::StrCat(".", name);
  const std::string* found = nullptr;
  for (const auto& [place, tensor] : checkpoint.tensors) {
    if (place != name && !absl::EndsWith(place, inner)) continue;
    if (found != nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat(checkpoint.path, ": holds two models, with tensors ",
                       *found, " and ", place));
    }
    found = &place;
  }
  if (found == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat(checkpoint.path, ": tensor ", name, " is missing"));
  }
  return found->substr(0, found->size() - name.size());
}

const json* ObjectAt(const json& data, absl::string_view place) {
  const json* here = &data;
  for (const absl::string_view key :
       absl::StrSplit(place, '.', absl::SkipEmpty())) {
    const json* modules = Find(*here, "_modules");
    const json* child = modules == nullptr ? nullptr : Find(*modules, key);
    here = child != nullptr ? child : Find(*here, key);
    if (here == nullptr) return nullptr;
  }
  return here->is_object() ? here : nullptr;
}

json Member(const json* object, absl::string_view key) {
  const json* found = object == nullptr ? nullptr : Find(*object, key);
  if (found == nullptr || found->is_null()) {
    return json(json::value_t::discarded);
  }
  return *found;
}

}  // namespace txl
