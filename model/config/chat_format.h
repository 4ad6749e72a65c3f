#pragma once

// How a model was trained to read a conversation: what stands around the text
// of each role, and where an answer begins and ends. The member `chat` of
// generation.json.

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace txl {

class JsonFields;

struct ChatRole {
  std::string before;
  std::string after;
};

struct ChatFormat {
  std::optional<ChatRole> system;  // absent: the model knows none
  ChatRole user;
  ChatRole assistant;
  // What the model continues with its answer, behind the last message.
  std::string answer;
  std::vector<std::string> stop_texts;  // that end it
};

// Reads `{"system": {"before", "after"}, "user": ..., "assistant": ...,
// "answer", "stop_texts"}`: `user` and `assistant` are required, `answer`
// defaults to the assistant's `before`. Null where `defaults`, of
// generation.json, have no `chat`; an error is that of `defaults`.
std::optional<ChatFormat> ReadChatFormat(JsonFields& defaults);

nlohmann::json ChatFormatToJson(const ChatFormat& format);

}  // namespace txl
