#include "server/http/json_in.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "model/base/status_macros.h"
#include "server/base/error.h"
#include "server/http/http_options.h"

namespace txl {
namespace {

using Json = nlohmann::json;

// Looks on while a text is parsed.
class Watch {
 public:
  bool operator()(int depth, Json::parse_event_t event, const Json& value) {
    using Event = Json::parse_event_t;
    // What is refused anyway is not built, nor are its ends told.
    if (too_deep_ || too_many_) return false;
    switch (event) {
      case Event::object_start:
      case Event::array_start:
        // The event has the depth of what stands around.
        too_deep_ |= depth >= kMaxJsonDepth;
        keys_.emplace_back();
        break;
      case Event::object_end:
      case Event::array_end:
        keys_.pop_back();
        break;
      case Event::key:
        if (!keys_.back().insert(value.get<std::string>()).second) {
          twice_ = value.get<std::string>();
        }
        too_many_ |= keys_.back().size() > kMaxJsonMembers;
        break;
      default:
        break;
    }
    return !too_deep_ && !too_many_;
  }

  bool too_deep() const { return too_deep_; }
  bool too_many() const { return too_many_; }
  const std::optional<std::string>& twice() const { return twice_; }

 private:
  std::vector<std::set<std::string>> keys_;  // of the open objects
  bool too_deep_ = false;
  bool too_many_ = false;
  std::optional<std::string> twice_;
};

bool IsWhole(const Json& value) {
  if (value.is_number_integer()) return true;
  if (!value.is_number_float()) return false;
  const double number = value.get<double>();
  return std::abs(number) < 9e15 && std::trunc(number) == number;
}

}  // namespace

absl::StatusOr<Json> ParseBody(absl::string_view body) {
  // The parser would take one for the body's end.
  if (body.find('\0') != absl::string_view::npos) {
    return MalformedError("the body has a NUL");
  }
  Watch watch;
  const Json json = Json::parse(
      body.begin(), body.end(),
      [&](int depth, Json::parse_event_t event, Json& value) {
        return watch(depth, event, value);
      },
      /*allow_exceptions=*/false);
  if (watch.too_deep()) {
    return MalformedError(
        absl::StrCat("the JSON is deeper than ", kMaxJsonDepth));
  }
  if (watch.too_many()) {
    return MalformedError(absl::StrCat("an object of the JSON has more than ",
                                       kMaxJsonMembers, " members"));
  }
  if (json.is_discarded()) {
    return MalformedError("the body is no JSON, or a number is out of range");
  }
  if (watch.twice().has_value()) {
    return FieldError(*watch.twice(), "stands twice");
  }
  if (!json.is_object()) return MalformedError("the body is no JSON object");
  return json;
}

const Json* BodyFields::Find(const std::string& name) {
  known_.insert(name);
  const auto found = object_.find(name);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

absl::StatusOr<std::optional<double>> BodyFields::Number(
    const std::string& name) {
  const Json* value = Find(name);
  if (value == nullptr) return std::optional<double>();
  if (!value->is_number()) return FieldError(name, "must be a number");
  return std::optional<double>(value->get<double>());
}

absl::StatusOr<std::optional<int64_t>> BodyFields::Integer(
    const std::string& name) {
  const Json* value = Find(name);
  if (value == nullptr) return std::optional<int64_t>();
  if (!IsWhole(*value)) return FieldError(name, "must be a whole number");
  if (value->is_number_unsigned() &&
      value->get<uint64_t>() >
          static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
    return FieldError(name, "is too large");
  }
  return std::optional<int64_t>(value->get<int64_t>());
}

absl::StatusOr<std::optional<bool>> BodyFields::Bool(const std::string& name) {
  const Json* value = Find(name);
  if (value == nullptr) return std::optional<bool>();
  if (!value->is_boolean()) return FieldError(name, "must be true or false");
  return std::optional<bool>(value->get<bool>());
}

absl::StatusOr<std::optional<std::string>> BodyFields::String(
    const std::string& name) {
  const Json* value = Find(name);
  if (value == nullptr) return std::optional<std::string>();
  if (!value->is_string()) return FieldError(name, "must be a text");
  return std::optional<std::string>(value->get<std::string>());
}

absl::StatusOr<std::optional<std::vector<uint32_t>>> BodyFields::Ids(
    const std::string& name) {
  const Json* value = Find(name);
  if (value == nullptr) return std::optional<std::vector<uint32_t>>();
  TXL_ASSIGN_OR_RETURN(std::vector<uint32_t> ids, ReadIdList(*value, name));
  return std::optional<std::vector<uint32_t>>(std::move(ids));
}

absl::StatusOr<std::vector<std::string>> BodyFields::Strings(
    const std::string& name) {
  const Json* value = Find(name);
  if (value == nullptr) return std::vector<std::string>();
  if (value->is_string()) {
    return std::vector<std::string>{value->get<std::string>()};
  }
  // No list of texts may be so long; its copies would take far more room.
  if (value->size() > kMaxJsonMembers) {
    return OverLimitError(
        name, absl::StrCat("has more than ", kMaxJsonMembers, " texts"));
  }
  std::vector<std::string> texts;
  for (const Json& text : value->is_array() ? *value : Json::array({Json()})) {
    if (!text.is_string()) {
      return FieldError(name, "must be a text or a list of texts");
    }
    texts.push_back(text.get<std::string>());
  }
  return texts;
}

std::vector<std::string> BodyFields::Unknown() const {
  std::vector<std::string> names;
  for (const auto& [name, value] : object_.items()) {
    if (!value.is_null() && known_.count(name) == 0) names.push_back(name);
  }
  return names;
}

absl::StatusOr<std::vector<uint32_t>> ReadIdList(const Json& list,
                                                 const std::string& name) {
  std::vector<uint32_t> ids;
  for (const Json& id : list.is_array() ? list : Json::array({Json()})) {
    if (!id.is_number_unsigned() ||
        id.get<uint64_t>() > std::numeric_limits<uint32_t>::max()) {
      return FieldError(name, "must be a list of token ids");
    }
    ids.push_back(id.get<uint32_t>());
  }
  return ids;
}

}  // namespace txl
