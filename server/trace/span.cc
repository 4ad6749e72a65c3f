#include "server/trace/span.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <type_traits>
#include <variant>

#include "absl/strings/str_cat.h"

namespace txl {
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
