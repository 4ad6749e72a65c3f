// Spans as the collector reads them: names and types of
// opentelemetry/proto/trace/v1/trace.proto in the mapping of OTLP/JSON, read
// here once more by a table of their own.

#include "server/trace/span.h"

#include <gmock/gmock.h>

#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace txl {
namespace {

using Json = nlohmann::json;

enum class Kind {
  kObject,
  kList,
  kText,
  kNumber,
  kBool,
  kHex16,
  kHex8,
  kWhole
};

struct Field {
  Kind kind;
  const char* message = "";  // of an object, or of a list's objects
};

// The fields of each message that may be there; whole numbers of 64 bits are
// texts, ids hex instead of base64, enums numbers.
const std::map<std::string, std::map<std::string, Field>>& Schema() {
  static const auto& schema =
      *new std::map<std::string, std::map<std::string, Field>>{
          {"ExportTraceServiceRequest",
           {{"resourceSpans", {Kind::kList, "ResourceSpans"}}}},
          {"ResourceSpans",
           {{"resource", {Kind::kObject, "Resource"}},
            {"scopeSpans", {Kind::kList, "ScopeSpans"}},
            {"schemaUrl", {Kind::kText}}}},
          {"Resource",
           {{"attributes", {Kind::kList, "KeyValue"}},
            {"droppedAttributesCount", {Kind::kNumber}}}},
          {"ScopeSpans",
           {{"scope", {Kind::kObject, "InstrumentationScope"}},
            {"spans", {Kind::kList, "Span"}},
            {"schemaUrl", {Kind::kText}}}},
          {"InstrumentationScope",
           {{"name", {Kind::kText}}, {"version", {Kind::kText}}}},
          {"Span",
           {{"traceId", {Kind::kHex16}},
            {"spanId", {Kind::kHex8}},
            {"parentSpanId", {Kind::kHex8}},
            {"traceState", {Kind::kText}},
            {"flags", {Kind::kNumber}},
            {"name", {Kind::kText}},
            {"kind", {Kind::kNumber}},
            {"startTimeUnixNano", {Kind::kWhole}},
            {"endTimeUnixNano", {Kind::kWhole}},
            {"attributes", {Kind::kList, "KeyValue"}},
            {"status", {Kind::kObject, "Status"}}}},
          {"Status", {{"code", {Kind::kNumber}}, {"message", {Kind::kText}}}},
          {"KeyValue",
           {{"key", {Kind::kText}}, {"value", {Kind::kObject, "AnyValue"}}}},
          {"AnyValue",
           {{"stringValue", {Kind::kText}},
            {"boolValue", {Kind::kBool}},
            {"intValue", {Kind::kWhole}},
            {"doubleValue", {Kind::kNumber}}}}};
  return schema;
}

bool IsHex(const Json& json, size_t bytes) {
  if (!json.is_string()) return false;
  const auto text = json.get<std::string>();
  return text.size() == 2 * bytes &&
         text.find_first_not_of("0123456789abcdef") == std::string::npos &&
         text.find_first_not_of('0') != std::string::npos;
}

bool IsWhole(const Json& json) {
  if (!json.is_string()) return false;
  const auto text = json.get<std::string>();
  const size_t sign = text.starts_with("-") ? 1 : 0;
  return text.size() > sign &&
         text.find_first_not_of("0123456789", sign) == std::string::npos;
}

void Check(const Json& json, const std::string& message);

void CheckField(const Json& json, const Field& field) {
  switch (field.kind) {
    case Kind::kObject:
      return Check(json, field.message);
    case Kind::kList:
      EXPECT_TRUE(json.is_array());
      for (const Json& one : json) Check(one, field.message);
      return;
    case Kind::kText:
      EXPECT_TRUE(json.is_string());
      return;
    case Kind::kNumber:
      EXPECT_TRUE(json.is_number());
      return;
    case Kind::kBool:
      EXPECT_TRUE(json.is_boolean());
      return;
    case Kind::kHex16:
      EXPECT_TRUE(IsHex(json, 16)) << json;
      return;
    case Kind::kHex8:
      EXPECT_TRUE(IsHex(json, 8)) << json;
      return;
    case Kind::kWhole:
      EXPECT_TRUE(IsWhole(json)) << json;
      return;
  }
}

void Check(const Json& json, const std::string& message) {
  ASSERT_TRUE(json.is_object()) << message;
  const auto& fields = Schema().at(message);
  for (const auto& [name, value] : json.items()) {
    const auto field = fields.find(name);
    ASSERT_NE(field, fields.end()) << message << " has no " << name;
    SCOPED_TRACE(message + "." + name);
    CheckField(value, field->second);
  }
}

Span SomeSpan() {
  Span span;
  span.trace_id = "4bf92f3577b34da6a3ce929d0e0e4736";
  span.span_id = "00f067aa0ba902b7";
  span.parent_id = "b7ad6b7169203331";
  span.name = "txl.v1.S/M";
  span.of_server = true;
  span.start = absl::FromUnixNanos(1'769'860'800'123'456'789);
  span.end = span.start + absl::Milliseconds(1500);
  span.attributes = {{"tenant", "alice"},
                     {"empty", ""},
                     {"named", true},
                     {"tokens", int64_t{12}},
                     {"most", std::numeric_limits<int64_t>::max()},
                     {"seconds", 0.5}};
  return span;
}

Json FirstSpan(const std::string& line) {
  return Json::parse(line)["resourceSpans"][0]["scopeSpans"][0]["spans"][0];
}

TEST(OtlpLine, IsAnExportRequestOfTheSchema) {
  Span part = SomeSpan();
  part.of_server = false;
  part.parent_id.clear();
  part.ok = false;
  part.error = "STEP_FAILED";
  const std::string line = OtlpLine({SomeSpan(), part});
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const Json json = Json::parse(line);
  Check(json, "ExportTraceServiceRequest");
  EXPECT_EQ(json["resourceSpans"].size(), 1u);
  EXPECT_EQ(json["resourceSpans"][0]["resource"]["attributes"],
            Json::parse(R"([{"key": "service.name",
                             "value": {"stringValue": "txl-server"}}])"));
  EXPECT_EQ(json["resourceSpans"][0]["scopeSpans"][0]["spans"].size(), 2u);
}

TEST(OtlpLine, SaysAllOfASpan) {
  const Json span = FirstSpan(OtlpLine({SomeSpan()}));
  EXPECT_EQ(span, Json::parse(R"({
    "traceId": "4bf92f3577b34da6a3ce929d0e0e4736",
    "spanId": "00f067aa0ba902b7",
    "parentSpanId": "b7ad6b7169203331",
    "name": "txl.v1.S/M",
    "kind": 2,
    "startTimeUnixNano": "1769860800123456789",
    "endTimeUnixNano": "1769860801623456789",
    "attributes": [
      {"key": "tenant", "value": {"stringValue": "alice"}},
      {"key": "named", "value": {"boolValue": true}},
      {"key": "tokens", "value": {"intValue": "12"}},
      {"key": "most", "value": {"intValue": "9223372036854775807"}},
      {"key": "seconds", "value": {"doubleValue": 0.5}}],
    "status": {"code": 1}})"));
}

TEST(OtlpLine, APartOfACallIsInternal) {
  Span part = SomeSpan();
  part.of_server = false;
  EXPECT_EQ(FirstSpan(OtlpLine({part}))["kind"], 1);
}

TEST(OtlpLine, AnErrorHasItsName) {
  Span failed = SomeSpan();
  failed.ok = false;
  failed.error = "QUEUE_FULL";
  EXPECT_EQ(FirstSpan(OtlpLine({failed}))["status"],
            Json::parse(R"({"code": 2, "message": "QUEUE_FULL"})"));
}

TEST(OtlpLine, ASpanWithoutAParentSaysNone) {
  Span root = SomeSpan();
  root.parent_id.clear();
  EXPECT_FALSE(FirstSpan(OtlpLine({root})).contains("parentSpanId"));
}

}  // namespace
}  // namespace txl
