#include "server/http/message_json.h"

#include <google/protobuf/util/time_util.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "model/base/status_macros.h"
#include "server/base/error.h"
#include "server/http/http_options.h"
#include "txl/v1/token.pb.h"

namespace txl {
namespace {

using google::protobuf::Duration;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;
using google::protobuf::Timestamp;
using google::protobuf::util::TimeUtil;
using Json = nlohmann::json;

Json Real(double number) {
  return std::isfinite(number) ? number : kNeverLogprob;
}

// The value of a field, or its element `i` of a repeated one.
Json ValueOf(const Message& message, const FieldDescriptor& field, int i) {
  const Reflection& of = *message.GetReflection();
  const bool many = field.is_repeated();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return many ? of.GetRepeatedInt32(message, &field, i)
                  : of.GetInt32(message, &field);
    case FieldDescriptor::CPPTYPE_INT64:
      return many ? of.GetRepeatedInt64(message, &field, i)
                  : of.GetInt64(message, &field);
    case FieldDescriptor::CPPTYPE_UINT32:
      return many ? of.GetRepeatedUInt32(message, &field, i)
                  : of.GetUInt32(message, &field);
    case FieldDescriptor::CPPTYPE_UINT64:
      return many ? of.GetRepeatedUInt64(message, &field, i)
                  : of.GetUInt64(message, &field);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return Real(many ? of.GetRepeatedDouble(message, &field, i)
                       : of.GetDouble(message, &field));
    case FieldDescriptor::CPPTYPE_FLOAT:
      return Real(many ? of.GetRepeatedFloat(message, &field, i)
                       : of.GetFloat(message, &field));
    case FieldDescriptor::CPPTYPE_BOOL:
      return many ? of.GetRepeatedBool(message, &field, i)
                  : of.GetBool(message, &field);
    case FieldDescriptor::CPPTYPE_ENUM:
      return (many ? of.GetRepeatedEnum(message, &field, i)
                   : of.GetEnum(message, &field))
          ->name();
    case FieldDescriptor::CPPTYPE_STRING:
      return many ? of.GetRepeatedString(message, &field, i)
                  : of.GetString(message, &field);
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return MessageToJson(many ? of.GetRepeatedMessage(message, &field, i)
                                : of.GetMessage(message, &field));
  }
  return Json();
}

Json MapOf(const Message& message, const FieldDescriptor& field) {
  Json map = Json::object();
  const Reflection& of = *message.GetReflection();
  for (int i = 0; i < of.FieldSize(message, &field); ++i) {
    const Message& entry = of.GetRepeatedMessage(message, &field, i);
    const Json key = ValueOf(entry, *entry.GetDescriptor()->map_key(), 0);
    map[key.is_string() ? key.get<std::string>() : key.dump()] =
        ValueOf(entry, *entry.GetDescriptor()->map_value(), 0);
  }
  return map;
}

absl::Status ReadDurationField(BodyFields& fields, const std::string& name,
                               Message* duration) {
  auto& to = *static_cast<Duration*>(duration);
  constexpr double kMostSeconds = 3e11;  // protobuf's range
  const Json& value = *fields.Find(name);
  if (value.is_number() && std::abs(value.get<double>()) < kMostSeconds) {
    double seconds = 0;
    const double part = std::modf(value.get<double>(), &seconds);
    // Carries a part that is rounded up to a whole second.
    to = TimeUtil::SecondsToDuration(static_cast<int64_t>(seconds)) +
         TimeUtil::NanosecondsToDuration(std::llround(part * 1e9));
    return absl::OkStatus();
  }
  if (value.is_string() &&
      TimeUtil::FromString(value.get<std::string>(), &to)) {
    return absl::OkStatus();
  }
  return FieldError(name, "must be seconds, as 3600 or \"3600s\"");
}

absl::Status ReadPart(BodyFields& fields, const FieldDescriptor& field,
                      Message* message) {
  const Reflection& of = *message->GetReflection();
  Message* part = of.MutableMessage(message, &field);
  if (part->GetDescriptor() == Duration::descriptor()) {
    return ReadDurationField(fields, field.name(), part);
  }
  TXL_ASSIGN_OR_RETURN(const auto ids, fields.Ids(field.name()));
  static_cast<v1::TokenIds*>(part)->mutable_ids()->Add(ids->begin(),
                                                       ids->end());
  return absl::OkStatus();
}

// "skip" is UNKNOWN_TEXT_SKIP.
absl::Status ReadEnum(BodyFields& fields, const FieldDescriptor& field,
                      Message* message) {
  TXL_ASSIGN_OR_RETURN(const auto word, fields.String(field.name()));
  const google::protobuf::EnumDescriptor& names = *field.enum_type();
  std::vector<std::string> words;
  for (int i = 1; i < names.value_count(); ++i) {
    const std::string& name = names.value(i)->name();
    // What all names begin with is that of value 0, but for its last word.
    const size_t prefix = names.value(0)->name().rfind('_') + 1;
    words.push_back(absl::AsciiStrToLower(name.substr(prefix)));
    if (words.back() != *word) continue;
    message->GetReflection()->SetEnum(message, &field, names.value(i));
    return absl::OkStatus();
  }
  return FieldError(field.name(), absl::StrCat("must be one of ",
                                               absl::StrJoin(words, ", ")));
}

// A list of token ids.
absl::Status ReadList(BodyFields& fields, const FieldDescriptor& field,
                      Message* message) {
  TXL_ASSIGN_OR_RETURN(const auto ids, fields.Ids(field.name()));
  for (const uint32_t id : *ids) {
    message->GetReflection()->AddUInt32(message, &field, id);
  }
  return absl::OkStatus();
}

absl::Status ReadField(BodyFields& fields, const FieldDescriptor& field,
                       Message* message) {
  const Reflection& of = *message->GetReflection();
  const std::string& name = field.name();
  if (field.is_repeated()) return ReadList(fields, field, message);
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_STRING: {
      TXL_ASSIGN_OR_RETURN(const auto text, fields.String(name));
      of.SetString(message, &field, *text);
      return absl::OkStatus();
    }
    case FieldDescriptor::CPPTYPE_BOOL: {
      TXL_ASSIGN_OR_RETURN(const auto value, fields.Bool(name));
      of.SetBool(message, &field, *value);
      return absl::OkStatus();
    }
    case FieldDescriptor::CPPTYPE_ENUM:
      return ReadEnum(fields, field, message);
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return ReadPart(fields, field, message);
    default:
      break;
  }
  TXL_ASSIGN_OR_RETURN(const auto number, fields.Integer(name));
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_INT64) {
    of.SetInt64(message, &field, *number);
  } else if (field.cpp_type() == FieldDescriptor::CPPTYPE_INT32) {
    if (*number != static_cast<int32_t>(*number)) {
      return FieldError(name, "is out of range");
    }
    of.SetInt32(message, &field, static_cast<int32_t>(*number));
  } else {
    if (*number != static_cast<uint32_t>(*number)) {
      return FieldError(name, "is out of range");
    }
    of.SetUInt32(message, &field, static_cast<uint32_t>(*number));
  }
  return absl::OkStatus();
}

}  // namespace

std::string DumpJson(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json MessageToJson(const Message& message) {
  if (message.GetDescriptor() == Duration::descriptor()) {
    return TimeUtil::ToString(static_cast<const Duration&>(message));
  }
  if (message.GetDescriptor() == Timestamp::descriptor()) {
    return TimeUtil::ToString(static_cast<const Timestamp&>(message));
  }
  const Reflection& of = *message.GetReflection();
  Json json = Json::object();
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor& field = *message.GetDescriptor()->field(i);
    if (field.has_presence() && !of.HasField(message, &field)) continue;
    if (field.is_map()) {
      json[field.name()] = MapOf(message, field);
      continue;
    }
    if (!field.is_repeated()) {
      json[field.name()] = ValueOf(message, field, 0);
      continue;
    }
    Json list = Json::array();
    for (int j = 0; j < of.FieldSize(message, &field); ++j) {
      list.push_back(ValueOf(message, field, j));
    }
    json[field.name()] = std::move(list);
  }
  return json;
}

absl::Status ReadNamed(BodyFields& fields, const std::string& name,
                       Message* message) {
  const FieldDescriptor& field =
      *message->GetDescriptor()->FindFieldByName(name);
  return fields.Find(name) == nullptr ? absl::OkStatus()
                                      : ReadField(fields, field, message);
}

absl::Status ReadMessage(BodyFields& fields, Message* message) {
  for (int i = 0; i < message->GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor& field = *message->GetDescriptor()->field(i);
    // Other lists are the caller's.
    if (field.is_repeated() &&
        field.cpp_type() != FieldDescriptor::CPPTYPE_UINT32) {
      continue;
    }
    if (fields.Find(field.name()) == nullptr) continue;
    const auto* choice = field.real_containing_oneof();
    if (choice != nullptr &&
        message->GetReflection()->HasOneof(*message, choice)) {
      return FieldError(field.name(), "only one of text and tokens may stand");
    }
    TXL_RETURN_IF_ERROR(ReadField(fields, field, message));
  }
  return absl::OkStatus();
}

}  // namespace txl
