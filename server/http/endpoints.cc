#include "server/http/endpoints.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "model/base/status_macros.h"
#include "model/text/utf8.h"
#include "server/api/methods.h"
#include "server/base/error.h"
#include "server/http/completion_request.h"
#include "server/http/completions.h"
#include "server/http/http_call.h"
#include "server/http/http_error.h"
#include "server/http/message_json.h"
#include "server/http/read_body.h"
#include "txl/v1/generation_service.pb.h"
#include "txl/v1/model_service.pb.h"
#include "txl/v1/session_service.pb.h"

namespace txl {
namespace {

using google::protobuf::Message;
using Json = nlohmann::json;
using SharedExchange = std::shared_ptr<Exchange>;
using Answer = std::function<Json(const Message&)>;

void ReplyJson(const SharedExchange& exchange, const Json& json) {
  HttpReply reply;
  reply.body = json.dump();
  exchange->Reply(std::move(reply));
}

// Answers with what a method with one answer says.
class UnarySink final : public HttpCallSink {
 public:
  UnarySink(SharedExchange exchange, Answer answer)
      : exchange_(std::move(exchange)), answer_(std::move(answer)) {}
  void OnMessage(const Message& message, std::function<void(bool)>) override {
    reply_.body = answer_(message).dump();
  }
  void OnSession(const std::string& id) override {
    reply_.headers.emplace_back("x-txl-session", id);
  }
  void OnEnd(const absl::Status& status) override {
    exchange_->OnLeave(nullptr);
    exchange_->Reply(status.ok() ? std::move(reply_) : ErrorReply(status));
  }

 private:
  const SharedExchange exchange_;
  const Answer answer_;
  HttpReply reply_;
};

void Call(CallDesk* desk, const SharedExchange& exchange, const char* method,
          std::shared_ptr<const Message> request, Answer answer) {
  const auto call = HttpCall::Start(
      *FindMethod(absl::StrCat("txl.v1.", method)), std::move(request), desk,
      exchange, std::make_shared<UnarySink>(exchange, std::move(answer)));
  exchange->OnLeave([weak = std::weak_ptr<HttpCall>(call)] {
    if (const auto left = weak.lock()) left->Leave();
  });
}

// A request that is read from a body, with the session of the path in it.
template <typename Request>
using Reader = absl::Status (*)(JsonFields& fields, Request* request);

template <typename Request>
absl::Status ReadAll(JsonFields& fields, Request* request) {
  return ReadMessage(fields, request);
}

template <typename Request>
void CallWithBody(CallDesk* desk, const SharedExchange& exchange,
                  const char* method, const std::string& session_id,
                  Reader<Request> reader, Answer answer) {
  ReadBody<std::shared_ptr<Request>>(
      desk, exchange,
      [=](const HttpRequest& http) -> absl::StatusOr<std::shared_ptr<Request>> {
        TXL_ASSIGN_OR_RETURN(const Json body, ParseBody(http.body));
        JsonFields fields(body);
        auto request = std::make_shared<Request>();
        TXL_RETURN_IF_ERROR(reader(fields, request.get()));
        if constexpr (requires { request->session_id(); }) {
          if (!session_id.empty()) {
            // The path names it; a body that names another one is a mistake.
            if (!request->session_id().empty() &&
                request->session_id() != session_id) {
              return FieldError("session_id", "the path names another");
            }
            request->set_session_id(session_id);
          }
          TXL_ASSIGN_OR_RETURN(const std::string named,
                               NamedSession(request->session_id(), http));
          request->set_session_id(named);
        }
        return request;
      },
      [=](std::shared_ptr<Request> request) {
        Call(desk, exchange, method, std::move(request), answer);
      });
}

Json SessionOf(const Message& message) {
  return MessageToJson(message).value("session", Json::object());
}

// Alternatives are a list of texts and of lists of ids.
absl::Status ReadAlternativesBody(JsonFields& fields,
                                  v1::ScoreAlternativesRequest* request) {
  const Json* list = fields.Find("alternatives");
  if (!list->is_array()) return FieldError("alternatives", "must be a list");
  for (const Json& one : *list) {
    v1::Alternative* alternative = request->add_alternatives();
    if (one.is_string()) {
      alternative->set_text(one.get<std::string>());
      continue;
    }
    TXL_ASSIGN_OR_RETURN(const auto ids, ReadIdList(one, "alternatives"));
    alternative->mutable_tokens()->mutable_ids()->Add(ids.begin(), ids.end());
  }
  return ReadMessage(fields, request);
}

absl::Status ReadTokenizeBody(JsonFields& fields, v1::TokenizeRequest* to) {
  TXL_ASSIGN_OR_RETURN(const auto prompt, fields.String("prompt"));
  if (!prompt.has_value()) return FieldError("prompt", "must be set");
  to->set_text(*prompt);
  return absl::OkStatus();
}

absl::Status ReadDetokenizeBody(JsonFields& fields, v1::DetokenizeRequest* to) {
  TXL_ASSIGN_OR_RETURN(const auto ids, fields.Ids("tokens"));
  if (!ids.has_value()) return FieldError("tokens", "must be set");
  to->mutable_token_ids()->Add(ids->begin(), ids->end());
  return absl::OkStatus();
}

// What stands for the text's end or beginning: who wants to score a text from
// its first token on puts it before.
std::string BorderToken(const ModelFacts& facts, bool end) {
  const std::vector<int32_t>& first =
      end ? facts.generation.end_tokens : facts.generation.start_tokens;
  const std::vector<int32_t>& second =
      end ? facts.generation.start_tokens : facts.generation.end_tokens;
  if (facts.vocabulary == nullptr) return "";
  for (const auto* ids : {&first, &second}) {
    if (!ids->empty()) {
      return ReplaceInvalidUtf8(facts.vocabulary->TokenBytes(ids->front()));
    }
  }
  return "\n";
}

class Router {
 public:
  Router(const HttpApi& api, const SharedExchange& exchange)
      : api_(api), exchange_(exchange), http_(exchange->request()) {}

  void Route() {
    const std::string& path = http_.path;
    if (absl::StartsWith(path, "/v1/sessions")) {
      const std::vector<std::string> parts =
          absl::StrSplit(path.substr(1), '/');
      if (parts.size() == 2 && parts[1] == "sessions") return Sessions();
      if (parts.size() == 3 && parts[1] == "sessions") {
        return OneSession(parts[2]);
      }
      if (parts.size() == 4 && parts[1] == "sessions") {
        return SessionAction(parts[2], parts[3]);
      }
    }
    struct Entry {
      const char* path;
      const char* method;
      void (Router::*handle)();
    };
    constexpr Entry kEntries[] = {
        {"/v1/completions", "POST", &Router::Completions},
        {"/v1/chat/completions", "POST", &Router::Chat},
        {"/v1/models", "GET", &Router::Models},
        {"/v1/status", "GET", &Router::Status},
        {"/v1/score", "POST", &Router::ScoreText},
        {"/health", "GET", &Router::Health},
        {"/tokenize", "POST", &Router::TokenizeText},
        {"/detokenize", "POST", &Router::DetokenizeIds},
        {"/tokenizer_info", "GET", &Router::TokenizerInfo},
        {"/metrics", "GET", &Router::Metrics}};
    for (const Entry& entry : kEntries) {
      if (path != entry.path) continue;
      if (Allows({entry.method})) (this->*entry.handle)();
      return;
    }
    NotFound();
  }

 private:
  // False: the method was refused.
  bool Allows(std::vector<std::string> methods) {
    for (const std::string& method : methods) {
      if (http_.method == method) return true;
      if (http_.method == "HEAD" && method == "GET") return true;
    }
    const std::string list = absl::StrJoin(methods, ", ");
    HttpReply reply =
        PlainError(405, "METHOD_NOT_ALLOWED", absl::StrCat("takes ", list));
    reply.headers.emplace_back("allow", list);
    exchange_->Reply(std::move(reply));
    return false;
  }

  void NotFound() {
    exchange_->Reply(PlainError(404, "NOT_FOUND", "there is no such path"));
  }

  void Completions() { Complete(api_, exchange_); }

  void Chat() {
    exchange_->Reply(PlainError(
        400, "NO_CHAT_FORMAT",
        "the model's generation.json has no chat format; /v1/completions "
        "continues text"));
  }

  void Models() {
    Call(api_.desk, exchange_, "ModelService/GetModel",
         std::make_shared<v1::GetModelRequest>(),
         [start = StartTime()](const Message& message) -> Json {
           const auto& model =
               static_cast<const v1::GetModelResponse&>(message);
           const Json one = {
               {"id", model.name()},
               {"object", "model"},
               {"created", start},
               {"owned_by", "txl-server"},
               {"max_model_len", model.limits().max_prompt_tokens()},
               {"txl", MessageToJson(message)}};
           return {{"object", "list"}, {"data", Json::array({one})}};
         });
  }

  // Unix seconds of the server's start.
  int64_t StartTime() const {
    const ServiceContext& context = api_.desk->context();
    return absl::ToUnixSeconds(context.clock->Now() -
                               (context.clock->Monotonic() - context.start));
  }

  void Status() {
    Call(api_.desk, exchange_, "ModelService/GetServerStatus",
         std::make_shared<v1::GetServerStatusRequest>(), MessageToJson);
  }

  void Health() {
    const absl::Status serving = api_.desk->context().lifecycle->CheckServing();
    if (!serving.ok()) return exchange_->Reply(ErrorReply(serving));
    ReplyJson(exchange_, {{"status", "ok"}});
  }

  void Metrics() {
    HttpReply reply;
    reply.content_type = "text/plain; version=0.0.4; charset=utf-8";
    reply.body = api_.metrics();
    exchange_->Reply(std::move(reply));
  }

  void ScoreText() {
    const absl::StatusOr<Json> body = ParseBody(http_.body);
    const bool many = body.ok() && body->contains("alternatives") &&
                      !body->at("alternatives").is_null();
    if (many) {
      return CallWithBody<v1::ScoreAlternativesRequest>(
          api_.desk, exchange_, "GenerationService/ScoreAlternatives", "",
          ReadAlternativesBody, MessageToJson);
    }
    CallWithBody<v1::ScoreRequest>(api_.desk, exchange_,
                                   "GenerationService/Score", "", ReadAll,
                                   MessageToJson);
  }

  void TokenizeText() {
    const int64_t most = api_.desk->context().limits.prompt_tokens;
    CallWithBody<v1::TokenizeRequest>(
        api_.desk, exchange_, "ModelService/Tokenize", "", ReadTokenizeBody,
        [most](const Message& message) -> Json {
          const auto& ids =
              static_cast<const v1::TokenizeResponse&>(message).token_ids();
          return {{"tokens", std::vector<uint32_t>(ids.begin(), ids.end())},
                  {"count", ids.size()},
                  {"max_model_len", most}};
        });
  }

  void DetokenizeIds() {
    CallWithBody<v1::DetokenizeRequest>(
        api_.desk, exchange_, "ModelService/Detokenize", "", ReadDetokenizeBody,
        [](const Message& message) -> Json {
          return {{"prompt",
                   static_cast<const v1::DetokenizeResponse&>(message).text()}};
        });
  }

  void TokenizerInfo() {
    const ModelFacts& facts = *api_.desk->context().facts;
    if (facts.vocabulary == nullptr) {
      return exchange_->Reply(
          PlainError(404, "NOT_FOUND", "the model has no tokenizer"));
    }
    ReplyJson(exchange_, {{"tokenizer_class", facts.vocabulary->kind()},
                          {"eos_token", BorderToken(facts, true)},
                          {"bos_token", BorderToken(facts, false)}});
  }

  void Sessions() {
    if (!Allows({"GET", "POST"})) return;
    if (http_.method == "POST") {
      return CallWithBody<v1::CreateSessionRequest>(
          api_.desk, exchange_, "SessionService/CreateSession", "", ReadAll,
          SessionOf);
    }
    const auto request = std::make_shared<v1::ListSessionsRequest>();
    const std::optional<int32_t> size = PageSize();
    if (!size.has_value()) return;
    request->set_page_size(*size);
    request->set_page_token(Query("page_token"));
    Call(api_.desk, exchange_, "SessionService/ListSessions", request,
         [](const Message& message) -> Json {
           Json page = MessageToJson(message);
           return {{"object", "list"},
                   {"data", std::move(page["sessions"])},
                   {"next_page_token", std::move(page["next_page_token"])}};
         });
  }

  void OneSession(const std::string& id) {
    if (!Allows({"GET", "DELETE"})) return;
    if (http_.method == "DELETE") {
      const auto request = std::make_shared<v1::DeleteSessionRequest>();
      request->set_session_id(id);
      return Call(
          api_.desk, exchange_, "SessionService/DeleteSession", request,
          [id](const Message&) -> Json {
            return {{"id", id}, {"object", "session"}, {"deleted", true}};
          });
    }
    const auto request = std::make_shared<v1::GetSessionRequest>();
    const std::optional<int32_t> size = PageSize();
    if (!size.has_value()) return;
    request->set_session_id(id);
    request->set_page_size(*size);
    request->set_page_token(Query("page_token"));
    request->set_include_tokens(Query("include_tokens") == "true");
    Call(api_.desk, exchange_, "SessionService/GetSession", request,
         MessageToJson);
  }

  void SessionAction(const std::string& id, const std::string& action) {
    if (action != "append" && action != "fork" && action != "rewind") {
      return NotFound();
    }
    if (!Allows({"POST"})) return;
    if (action == "append") {
      return CallWithBody<v1::AppendTokensRequest>(
          api_.desk, exchange_, "SessionService/AppendTokens", id, ReadAll,
          MessageToJson);
    }
    if (action == "fork") {
      return CallWithBody<v1::ForkSessionRequest>(api_.desk, exchange_,
                                                  "SessionService/ForkSession",
                                                  id, ReadAll, MessageToJson);
    }
    CallWithBody<v1::RewindSessionRequest>(api_.desk, exchange_,
                                           "SessionService/RewindSession", id,
                                           ReadAll, MessageToJson);
  }

  std::string Query(const std::string& name) const {
    const auto found = http_.query.find(name);
    return found == http_.query.end() ? "" : found->second;
  }

  // Absent: it was refused.
  std::optional<int32_t> PageSize() {
    const std::string text = Query("page_size");
    int32_t size = 0;
    if (text.empty() || absl::SimpleAtoi(text, &size)) return size;
    exchange_->Reply(
        ErrorReply(FieldError("page_size", "must be a whole number")));
    return std::nullopt;
  }

  const HttpApi& api_;
  const SharedExchange exchange_;
  const HttpRequest& http_;
};

}  // namespace

void AnswerHttp(const HttpApi& api, const SharedExchange& exchange) {
  Router(api, exchange).Route();
}

}  // namespace txl
