#include "server/trace/trace_context.h"

#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <type_traits>
#include <variant>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "server/base/digest.h"

namespace txl {
namespace {

constexpr size_t kTraceIdDigits = 32;
constexpr size_t kSpanIdDigits = 16;
// "00-", the ids with a "-" behind each, the flags.
constexpr size_t kTraceparentSize = 3 + kTraceIdDigits + kSpanIdDigits + 2 + 2;
constexpr uint8_t kSampledFlag = 1;

bool IsLowerHex(absl::string_view text) {
  return text.find_first_not_of("0123456789abcdef") == absl::string_view::npos;
}

bool IsId(absl::string_view text) {
  return IsLowerHex(text) &&
         text.find_first_not_of('0') != absl::string_view::npos;
}

int HexValue(char digit) {
  return absl::ascii_isdigit(static_cast<unsigned char>(digit))
             ? digit - '0'
             : digit - 'a' + 10;
}

}  // namespace

std::optional<TraceParent> ParseTraceparent(absl::string_view text) {
  if (text.size() < kTraceparentSize) return std::nullopt;
  const absl::string_view version = text.substr(0, 2);
  const absl::string_view trace_id = text.substr(3, kTraceIdDigits);
  const absl::string_view span_id = text.substr(36, kSpanIdDigits);
  const absl::string_view flags = text.substr(53, 2);
  const absl::string_view rest = text.substr(kTraceparentSize);
  const bool dashes = text[2] == '-' && text[35] == '-' && text[52] == '-';
  const bool ends = rest.empty() || (version != "00" && rest[0] == '-');
  if (!dashes || !ends || !IsLowerHex(version) || version == "ff" ||
      !IsId(trace_id) || !IsId(span_id) || !IsLowerHex(flags)) {
    return std::nullopt;
  }
  TraceParent parent;
  parent.trace_id = std::string(trace_id);
  parent.span_id = std::string(span_id);
  parent.sampled = (HexValue(flags[1]) & kSampledFlag) != 0;
  return parent;
}

TraceContext StartTrace(const std::vector<std::string>& sent, double rate) {
  std::optional<TraceParent> parent;
  if (sent.size() == 1) parent = ParseTraceparent(sent[0]);
  TraceContext context;
  context.span_id = NewSpanId();
  if (parent.has_value()) {
    context.trace_id = parent->trace_id;
    context.parent_id = parent->span_id;
    context.sampled = parent->sampled;
  } else {
    context.trace_id = NewSpanId() + NewSpanId();
  }
  context.sampled = context.sampled || IsSampled(context.trace_id, rate);
  return context;
}

TraceContext SpanBelow(const TraceContext& context) {
  TraceContext below = context;
  below.parent_id = context.span_id;
  below.span_id = NewSpanId();
  return below;
}

std::string TraceparentOf(const TraceContext& context) {
  return absl::StrCat("00-", context.trace_id, "-", context.span_id,
                      context.sampled ? "-01" : "-00");
}

std::string NewSpanId() {
  return absl::StrCat(absl::Hex(RandomBits(), absl::kZeroPad16));
}

bool IsSampled(absl::string_view trace_id, double rate) {
  if (rate >= 1) return true;
  uint64_t low = 0;
  // The right half: what is random in an id, if anything is.
  if (!absl::SimpleHexAtoi(trace_id.substr(kTraceIdDigits / 2), &low)) {
    return false;
  }
  return std::ldexp(static_cast<double>(low), -64) < rate;
}

namespace {

using Json = nlohmann::ordered_json;

// The numbers of OTLP's enums Span.SpanKind and Status.StatusCode.
constexpr int kKindInternal = 1;
constexpr int kKindServer = 2;
constexpr int kStatusOk = 1;
constexpr int kStatusError = 2;

// AnyValue; its whole numbers are texts, as protobuf's JSON has those of 64
// bits.
struct AnyValue {
  Json operator()(bool value) const { return {{"boolValue", value}}; }
  Json operator()(double value) const { return {{"doubleValue", value}}; }
  Json operator()(const std::string& value) const {
    return {{"stringValue", value}};
  }
  template <typename Int>
  Json operator()(Int value) const {
    static_assert(std::is_integral_v<Int>);
    return {{"intValue", absl::StrCat(value)}};
  }
};

Json Attributes(const LogFields& fields) {
  Json list = Json::array();
  for (const auto& [name, value] : fields) {
    const auto* text = std::get_if<std::string>(&value.value());
    if (text != nullptr && text->empty()) continue;
    list.push_back(
        {{"key", name}, {"value", std::visit(AnyValue(), value.value())}});
  }
  return list;
}

std::string UnixNanos(absl::Time time) {
  return absl::StrCat(absl::ToUnixNanos(time));
}

Json SpanJson(const Span& span) {
  Json json = {{"traceId", span.trace_id}, {"spanId", span.span_id}};
  if (!span.parent_id.empty()) json["parentSpanId"] = span.parent_id;
  json["name"] = span.name;
  json["kind"] = span.of_server ? kKindServer : kKindInternal;
  json["startTimeUnixNano"] = UnixNanos(span.start);
  json["endTimeUnixNano"] = UnixNanos(span.end);
  json["attributes"] = Attributes(span.attributes);
  json["status"] = {{"code", span.ok ? kStatusOk : kStatusError}};
  if (!span.ok) json["status"]["message"] = span.error;
  return json;
}

}  // namespace

std::string OtlpLine(const std::vector<Span>& spans) {
  Json list = Json::array();
  for (const Span& span : spans) list.push_back(SpanJson(span));
  const Json scope = {{"scope", {{"name", "txl-server"}}},
                      {"spans", std::move(list)}};
  const Json resource = {
      {"resource",
       {{"attributes", Attributes({{"service.name", "txl-server"}})}}},
      {"scopeSpans", Json::array({scope})}};
  const Json request = {{"resourceSpans", Json::array({resource})}};
  return request.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace txl
