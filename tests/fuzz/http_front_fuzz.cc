// A body's bytes through the HTTP front's reading of JSON, as completions and
// as each request that is read from a body, and whatever is refused into the
// answer that says so. The first byte of the input says as what.

#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "server/http/completion_request.h"
#include "server/http/guard.h"
#include "server/http/http_error.h"
#include "server/http/http_options.h"
#include "server/http/json_in.h"
#include "server/http/message_json.h"
#include "txl/v1/session_service.pb.h"

namespace txl {
namespace {

// What was read must be within the limits.
void Check(bool holds) {
  if (!holds) std::abort();
}

// An error is the client's, and can be told.
void CheckRefusal(const absl::Status& status) {
  const HttpReply reply = ErrorReply(status);
  Check(reply.status >= 400 && reply.status < 500);
  Check(nlohmann::json::parse(reply.body).contains("error"));
}

void RunCompletion(const nlohmann::json& body, const HttpRequest& http) {
  ModelFacts facts;
  facts.name = "model";
  const auto request = ReadCompletion(body, http, facts);
  if (!request.ok()) return CheckRefusal(request.status());
  const auto prompts = static_cast<int64_t>(request->turns.size());
  Check(prompts >= 1 && prompts * request->best_of <= kMaxChoices);
  Check(request->n >= 1 && request->n <= request->best_of);
  Check(request->skip_events >= 0);
  Check(!request->stream || request->n == request->best_of);
  for (const v1::GenerateRequest& turn : request->turns) {
    Check(turn.session_id().empty() || request->best_of == 1);
    // What becomes of a turn's text in an answer, as JSON.
    MessageToJson(turn).dump();
  }
}

template <typename Message>
void RunMessage(const nlohmann::json& body) {
  Message message;
  BodyFields fields(body);
  const absl::Status status = ReadMessage(fields, &message);
  if (!status.ok()) return CheckRefusal(status);
  MessageToJson(message).dump();
}

void Run(uint8_t kind, const std::string& bytes) {
  HttpRequest http;
  if (ParseTarget(bytes, &http)) Check(http.path[0] == '/');
  const auto body = ParseBody(bytes);
  if (!body.ok()) return CheckRefusal(body.status());
  Check(body->is_object());
  switch (kind % 6) {
    case 0:
      return RunCompletion(*body, http);
    case 1:
      return RunMessage<v1::CreateSessionRequest>(*body);
    case 2:
      return RunMessage<v1::AppendTokensRequest>(*body);
    case 3:
      return RunMessage<v1::ForkSessionRequest>(*body);
    case 4:
      return RunMessage<v1::RewindSessionRequest>(*body);
    default:
      return RunMessage<v1::ScoreRequest>(*body);
  }
}

}  // namespace
}  // namespace txl

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  txl::Run(data[0],
           std::string(reinterpret_cast<const char*>(data) + 1, size - 1));
  return 0;
}
