#pragma once

// The API's messages as JSON: names as in the proto, whole numbers as numbers,
// times and durations as protobuf's JSON mapping writes them, absent fields
// left out, a probability of 0 as kNeverLogprob.

#include <google/protobuf/message.h>

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "absl/status/status.h"
#include "server/http/json_in.h"

namespace txl {

// JSON's text. Bytes that are not UTF-8 (a model directory's name may have
// some) become U+FFFD.
std::string DumpJson(const nlohmann::json& json);

nlohmann::json MessageToJson(const google::protobuf::Message& message);

// Reads every field of a request that the object has: texts, numbers, booleans,
// durations (seconds, or "1.5s"), TokenIds (a list) and enumerations ("skip").
// Errors as BodyFields. REQUIRES: the message has no other kinds of fields, or
// they are read before.
absl::Status ReadMessage(BodyFields& fields,
                         google::protobuf::Message* message);

// Reads one field. REQUIRES: the message has it.
absl::Status ReadNamed(BodyFields& fields, const std::string& name,
                       google::protobuf::Message* message);

}  // namespace txl
