#include "server/http/json_in.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "model/base/status_macros.h"
#include "model/text/utf8.h"
#include "program/nearest_name.h"
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

// Letters apart that a misspelt name may be.
constexpr size_t kMisspeltLetters = 2;
// Of a name that a client made up.
constexpr size_t kMaxShownName = 64;

bool IsWhole(const Json& value) {
  if (value.is_number_integer()) return true;
  if (!value.is_number_float()) return false;
  const double number = value.get<double>();
  return std::abs(number) < 9e15 && std::trunc(number) == number;
}

// "-5" as a number, "True" as a boolean; other texts stay what they are.
Json FromText(const std::string& text, Json::value_t wanted) {
  if (wanted == Json::value_t::boolean) {
    if (absl::EqualsIgnoreCase(text, "true") || text == "1") return true;
    if (absl::EqualsIgnoreCase(text, "false") || text == "0") return false;
    return text;
  }
  const absl::string_view digits =
      absl::StripPrefix(absl::string_view(text), "-");
  int64_t number = 0;
  const bool whole =
      digits.find_first_not_of("0123456789") == absl::string_view::npos &&
      absl::SimpleAtoi(text, &number);
  return whole ? Json(number) : Json(text);
}

// Names that differ in case and underscores alone are one: maxTokens.
std::string Folded(absl::string_view name) {
  return absl::AsciiStrToLower(
      absl::StrReplaceAll(name, {{"_", ""}, {"-", ""}}));
}

absl::Status UnknownField(const std::string& name, const std::string& hint) {
  return FieldError(CutUtf8(name, kMaxShownName),
                    absl::StrCat("is not a field of this request; ", hint));
}

std::string DidYouMeanIt(const std::string& name) {
  return absl::StrCat("did you mean ", name, "?");
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
    return MalformedError(
        IsValidUtf8(body) ? "the body is not JSON, or a number is out of range"
                          : "the body is not valid UTF-8");
  }
  if (watch.twice().has_value()) {
    return FieldError(*watch.twice(), "stands twice");
  }
  if (!json.is_object()) return MalformedError("the body is not a JSON object");
  return json;
}

absl::StatusOr<Json> QueryObject(const HttpRequest& http) {
  Json object = Json::object();
  for (const auto& [name, value] : http.query) {
    if (!IsValidUtf8(name) || !IsValidUtf8(value)) {
      return FieldError(ReplaceInvalidUtf8(name), "is not valid UTF-8");
    }
    if (!object.emplace(name, value).second) {
      return FieldError(CutUtf8(name, kMaxShownName), "stands twice");
    }
  }
  return object;
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
  const Json* found = Find(name);
  if (found == nullptr) return std::optional<int64_t>();
  const Json value =
      spelling_ == Spelling::kText && found->is_string()
          ? FromText(found->get<std::string>(), Json::value_t::number_integer)
          : *found;
  // The parser makes a double of what 64 bits do not hold.
  if (value.is_number_float() && std::abs(value.get<double>()) >= 0x1p63) {
    return FieldError(name, "is out of range");
  }
  if (!IsWhole(value)) return FieldError(name, "must be a whole number");
  if (value.is_number_unsigned() &&
      value.get<uint64_t>() >
          static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
    return FieldError(name, "is too large");
  }
  return std::optional<int64_t>(value.get<int64_t>());
}

absl::StatusOr<std::optional<bool>> BodyFields::Bool(const std::string& name) {
  const Json* found = Find(name);
  if (found == nullptr) return std::optional<bool>();
  const Json value =
      spelling_ == Spelling::kText && found->is_string()
          ? FromText(found->get<std::string>(), Json::value_t::boolean)
          : *found;
  if (!value.is_boolean()) return FieldError(name, "must be true or false");
  return std::optional<bool>(value.get<bool>());
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

std::vector<std::string> BodyFields::Known() const {
  return {known_.begin(), known_.end()};
}

absl::Status BodyFields::RefuseUnknown() const {
  const std::vector<std::string> unknown = Unknown();
  if (unknown.empty()) return absl::OkStatus();
  const std::string nearest =
      NearestName(CutUtf8(unknown[0], kMaxShownName), Known());
  return UnknownField(
      unknown[0], nearest.empty() ? absl::StrCat("its fields are ",
                                                 absl::StrJoin(Known(), ", "))
                                  : DidYouMeanIt(nearest));
}

absl::Status BodyFields::RefuseMisspelt() const {
  for (const std::string& name : Unknown()) {
    if (name.size() > kMaxShownName) continue;
    std::string meant = NearestName(name, Known(), kMisspeltLetters);
    for (const std::string& known : known_) {
      if (Folded(name) == Folded(known)) meant = known;
    }
    if (!meant.empty()) return UnknownField(name, DidYouMeanIt(meant));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<uint32_t>> ReadIdList(const Json& list,
                                                 const std::string& name) {
  if (!list.is_array()) return FieldError(name, "must be a list of token ids");
  std::vector<uint32_t> ids;
  for (const Json& id : list) {
    const bool negative = !id.is_number_unsigned() && id < 0;
    if (!IsWhole(id) || negative ||
        id.get<uint64_t>() > std::numeric_limits<uint32_t>::max()) {
      return FieldError(absl::StrCat(name, "[", ids.size(), "]"),
                        "must be a token id");
    }
    ids.push_back(id.get<uint32_t>());
  }
  return ids;
}

}  // namespace txl
