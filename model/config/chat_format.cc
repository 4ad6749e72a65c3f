#include "model/config/chat_format.h"

#include <nlohmann/json.hpp>

#include "model/config/json_fields.h"

namespace txl {
namespace {

using nlohmann::json;

std::optional<ChatRole> ReadRole(JsonFields& in, const char* name) {
  std::optional<JsonFields> of_role = in.Object(name);
  if (!of_role.has_value()) return std::nullopt;
  of_role->RefuseUnknown({"before", "after"});
  ChatRole role;
  role.before = of_role->OptionalString("before").value_or("");
  role.after = of_role->OptionalString("after").value_or("");
  in.FailAs(*of_role);
  return role;
}

ChatRole ReadRequiredRole(JsonFields& in, const char* name) {
  const std::optional<ChatRole> role = ReadRole(in, name);
  if (!role.has_value()) in.Fail(name, "is missing");
  return role.value_or(ChatRole());
}

json ToJson(const ChatRole& role) {
  return {{"before", role.before}, {"after", role.after}};
}

}  // namespace

std::optional<ChatFormat> ReadChatFormat(JsonFields& defaults) {
  std::optional<JsonFields> in = defaults.Object("chat");
  if (!in.has_value()) return std::nullopt;
  in->RefuseUnknown({"system", "user", "assistant", "answer", "stop_texts"});
  ChatFormat format;
  format.system = ReadRole(*in, "system");
  format.user = ReadRequiredRole(*in, "user");
  format.assistant = ReadRequiredRole(*in, "assistant");
  format.answer =
      in->OptionalString("answer").value_or(format.assistant.before);
  format.stop_texts = in->StringList("stop_texts");
  defaults.FailAs(*in);
  return format;
}

json ChatFormatToJson(const ChatFormat& format) {
  json out = {{"user", ToJson(format.user)},
              {"assistant", ToJson(format.assistant)},
              {"answer", format.answer}};
  if (format.system.has_value()) out["system"] = ToJson(*format.system);
  if (!format.stop_texts.empty()) out["stop_texts"] = format.stop_texts;
  return out;
}

}  // namespace txl
