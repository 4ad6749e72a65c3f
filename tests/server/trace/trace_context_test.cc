// The examples and rules of https://www.w3.org/TR/trace-context/, one by one.

#include "server/trace/trace_context.h"

#include <gmock/gmock.h>

#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace txl {
namespace {

using testing::MatchesRegex;

constexpr char kTrace[] = "4bf92f3577b34da6a3ce929d0e0e4736";
constexpr char kSpan[] = "00f067aa0ba902b7";

std::string Text(const std::string& version, const std::string& flags) {
  return absl::StrCat(version, "-", kTrace, "-", kSpan, "-", flags);
}

struct Row {
  const char* what;
  std::string text;
  bool valid;
  bool sampled = false;
};

std::vector<Row> Rows() {
  const std::string trace = kTrace;
  const std::string span = kSpan;
  return {
      {"the specification's example", Text("00", "01"), true, true},
      {"not sampled", Text("00", "00"), true},
      {"flags that are not known", Text("00", "fe"), true},
      {"all flags", Text("00", "ff"), true, true},
      {"random trace id, not sampled", Text("00", "02"), true},
      {"a later version", Text("01", "01"), true, true},
      {"a later version with more behind it", Text("cc", "01-what-not"), true,
       true},
      {"a later version with nothing behind a dash", Text("cc", "00-"), true},
      {"a later version whose flags go on", Text("cc", "01.x"), false},
      {"the version that is none", Text("ff", "01"), false},
      {"version 00 with more behind it", Text("00", "01-what"), false},
      {"version 00 with a dash behind it", Text("00", "01-"), false},
      {"nothing", "", false},
      {"a trace id of zeros", "00-" + std::string(32, '0') + "-" + span + "-01",
       false},
      {"a span id of zeros", "00-" + trace + "-" + std::string(16, '0') + "-01",
       false},
      {"capital letters", "00-4BF92F3577B34DA6A3CE929D0E0E4736-" + span + "-01",
       false},
      {"capital letters of the span", "00-" + trace + "-00F067AA0BA902B7-01",
       false},
      {"capital letters of the version", Text("0A", "01"), false},
      {"capital letters of the flags", Text("00", "0A"), false},
      {"no hex in the version", Text("0x", "01"), false},
      {"no hex in the trace id", "00-" + trace.substr(1) + "g-" + span + "-01",
       false},
      {"no hex in the span id", "00-" + trace + "-" + span.substr(1) + " -01",
       false},
      {"no hex in the flags", Text("00", "0."), false},
      {"a trace id that is short", "00-" + trace.substr(1) + "-" + span + "-01",
       false},
      {"a trace id that is long", "00-0" + trace + "-" + span + "-01", false},
      {"one digit of flags", Text("00", "1"), false},
      {"underscores", "00_" + trace + "_" + span + "_01", false},
      {"a blank before it", " " + Text("00", "01"), false},
      {"a blank behind it", Text("00", "01 "), false},
      {"two in one", Text("00", "01") + "," + Text("00", "01"), false},
      {"a NUL inside", Text("00", std::string("0\0", 2)), false}};
}

TEST(ParseTraceparent, TakesWhatTheSpecificationAllowsAndNothingElse) {
  for (const Row& row : Rows()) {
    const auto parent = ParseTraceparent(row.text);
    ASSERT_EQ(parent.has_value(), row.valid) << row.what;
    if (!row.valid) continue;
    EXPECT_EQ(parent->trace_id, kTrace) << row.what;
    EXPECT_EQ(parent->span_id, kSpan) << row.what;
    EXPECT_EQ(parent->sampled, row.sampled) << row.what;
  }
}

TEST(ParseTraceparent, NoByteMayBeAnother) {
  const std::string text = Text("00", "01");
  for (size_t i = 0; i < text.size(); ++i) {
    std::string changed = text;
    changed[i] = 'x';
    EXPECT_FALSE(ParseTraceparent(changed).has_value()) << i;
    EXPECT_FALSE(ParseTraceparent(text.substr(0, i)).has_value()) << i;
  }
}

TEST(StartTrace, GoesOnWithTheClientsTraceInASpanOfItsOwn) {
  const TraceContext context = StartTrace({Text("00", "01")}, 0);
  EXPECT_EQ(context.trace_id, kTrace);
  EXPECT_EQ(context.parent_id, kSpan);
  EXPECT_THAT(context.span_id, MatchesRegex("[0-9a-f]{16}"));
  EXPECT_NE(context.span_id, kSpan);
  EXPECT_TRUE(context.sampled);
  EXPECT_EQ(TraceparentOf(context),
            absl::StrCat("00-", kTrace, "-", context.span_id, "-01"));
}

TEST(StartTrace, MakesATraceWhereThereIsNoneOrMoreThanOne) {
  const std::string good = Text("00", "01");
  std::set<std::string> ids;
  for (const std::vector<std::string>& sent :
       {std::vector<std::string>{}, {"00-broken"}, {good, good}}) {
    const TraceContext context = StartTrace(sent, 0);
    EXPECT_THAT(context.trace_id, MatchesRegex("[0-9a-f]{32}"));
    EXPECT_NE(context.trace_id, kTrace);
    EXPECT_EQ(context.parent_id, "");
    EXPECT_FALSE(context.sampled);
    EXPECT_TRUE(ParseTraceparent(TraceparentOf(context)).has_value());
    ids.insert(context.trace_id);
  }
  EXPECT_EQ(ids.size(), 3u);
}

TEST(StartTrace, TheRateDecidesForWhoDoesNotSay) {
  EXPECT_FALSE(StartTrace({Text("00", "00")}, 0).sampled);
  EXPECT_TRUE(StartTrace({Text("00", "00")}, 1).sampled);
  EXPECT_TRUE(StartTrace({Text("00", "01")}, 0).sampled);
  EXPECT_TRUE(StartTrace({}, 1).sampled);
  EXPECT_FALSE(StartTrace({}, 0).sampled);
}

TEST(SpanBelow, IsASpanOfTheSameTrace) {
  const TraceContext above = StartTrace({Text("00", "01")}, 0);
  const TraceContext below = SpanBelow(above);
  EXPECT_EQ(below.trace_id, above.trace_id);
  EXPECT_EQ(below.parent_id, above.span_id);
  EXPECT_NE(below.span_id, above.span_id);
  EXPECT_EQ(below.sampled, above.sampled);
}

TEST(IsSampled, GoesByTheRightHalfOfTheId) {
  const std::string left(16, 'f');
  EXPECT_TRUE(IsSampled(left + "3fffffffff000000", 0.25));
  EXPECT_FALSE(IsSampled(left + "4000000000000000", 0.25));
  EXPECT_FALSE(IsSampled(left + "0000000000000000", 0));
  EXPECT_TRUE(IsSampled(left + "ffffffffffffffff", 1));
  int sampled = 0;
  for (int i = 0; i < 1000; ++i) {
    sampled += IsSampled(NewSpanId() + NewSpanId(), 0.5) ? 1 : 0;
  }
  // Beyond seven standard deviations of 1,000 fair coins.
  EXPECT_GT(sampled, 380);
  EXPECT_LT(sampled, 620);
}

}  // namespace

// Spans as the collector reads them: names and types of
// opentelemetry/proto/trace/v1/trace.proto in the mapping of OTLP/JSON, read
// here once more by a table of their own.

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
