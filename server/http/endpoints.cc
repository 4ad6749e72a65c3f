#include "server/http/endpoints.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "model/base/status_macros.h"
#include "model/text/utf8.h"
#include "server/http/completion_request.h"
#include "server/http/completion_run.h"
#include "server/http/guard.h"
#include "server/http/http_call.h"
#include "server/http/http_error.h"
#include "server/http/page.h"
#include "server/http/session_paths.h"
#include "txl/v1/generation_service.pb.h"
#include "txl/v1/model_service.pb.h"

namespace txl {
namespace {

using google::protobuf::Message;
using Json = nlohmann::json;
using SharedExchange = std::shared_ptr<Exchange>;

constexpr absl::string_view kModelPath = "/v1/models/";

struct ScoreBody {
  const char* method = nullptr;
  std::shared_ptr<Message> request;
};

// Alternatives are a list of texts and of lists of ids.
absl::Status ReadAlternatives(const Json& list,
                              v1::ScoreAlternativesRequest* request) {
  if (!list.is_array()) return FieldError("alternatives", "must be a list");
  for (const Json& one : list) {
    v1::Alternative* alternative = request->add_alternatives();
    if (one.is_string()) {
      alternative->set_text(one.get<std::string>());
      continue;
    }
    TXL_ASSIGN_OR_RETURN(const auto ids, ReadIdList(one, "alternatives"));
    alternative->mutable_tokens()->mutable_ids()->Add(ids.begin(), ids.end());
  }
  return absl::OkStatus();
}

absl::StatusOr<ScoreBody> ReadScoreBody(const HttpRequest& http) {
  TXL_ASSIGN_OR_RETURN(const Json body, ParseBody(http.body));
  BodyFields fields(body);
  if (const Json* list = fields.Find("alternatives")) {
    auto request = std::make_shared<v1::ScoreAlternativesRequest>();
    TXL_RETURN_IF_ERROR(ReadAlternatives(*list, request.get()));
    TXL_RETURN_IF_ERROR(ReadAll(fields, request.get()));
    TXL_RETURN_IF_ERROR(SetSession("", http, request.get()));
    return ScoreBody{"GenerationService/ScoreAlternatives", std::move(request)};
  }
  auto request = std::make_shared<v1::ScoreRequest>();
  TXL_RETURN_IF_ERROR(ReadAll(fields, request.get()));
  TXL_RETURN_IF_ERROR(SetSession("", http, request.get()));
  return ScoreBody{"GenerationService/Score", std::move(request)};
}

absl::Status ReadTokenizeBody(BodyFields& fields, v1::TokenizeRequest* to) {
  TXL_ASSIGN_OR_RETURN(const auto prompt, fields.String("prompt"));
  TXL_ASSIGN_OR_RETURN(const auto midi, fields.String("midi"));
  if (prompt.has_value() && midi.has_value()) {
    return FieldError("midi", "cannot be sent together with a prompt");
  }
  if (midi.has_value()) {
    if (!absl::Base64Unescape(*midi, to->mutable_midi())) {
      return FieldError("midi", "is not base64");
    }
  } else if (prompt.has_value()) {
    to->set_text(*prompt);
  } else {
    return FieldError("prompt", "must be set, or midi");
  }
  TXL_RETURN_IF_ERROR(ReadNamed(fields, "unknown", to));
  return fields.RefuseMisspelt();
}

absl::Status ReadDetokenizeBody(BodyFields& fields, v1::DetokenizeRequest* to) {
  TXL_ASSIGN_OR_RETURN(const auto ids, fields.Ids("tokens"));
  if (!ids.has_value()) return FieldError("tokens", "must be set");
  to->mutable_token_ids()->Add(ids->begin(), ids->end());
  return fields.RefuseMisspelt();
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

  struct Entry {
    const char* path;
    const char* method;
    void (Router::*handle)();
    PathRule rule;
  };
  static absl::Span<const Entry> Entries() {
    static constexpr Entry kEntries[] = {
        {"/v1/completions", "POST", &Router::Completions, {false, kUsers}},
        {"/v1/chat/completions",
         "POST",
         &Router::ChatCompletions,
         {false, kUsers}},
        {"/v1/models", "GET", &Router::Models, {false, kScorers}},
        {"/v1/status", "GET", &Router::Status, {false, kWatchers}},
        {"/v1/score", "POST", &Router::ScoreText, {false, kScorers}},
        {"/health", "GET", &Router::Health, {true, {}}},
        {"/tokenize", "POST", &Router::TokenizeText, {false, kScorers}},
        {"/detokenize", "POST", &Router::DetokenizeIds, {false, kScorers}},
        {"/tokenizer_info", "GET", &Router::TokenizerInfo, {false, kScorers}},
        {"/metrics", "GET", &Router::Metrics, {false, kWatchers}}};
    return kEntries;
  }

  void Route() {
    const std::string& path = http_.path;
    if (path == kWholeServer && http_.method == "OPTIONS") {
      AllowsMethod(*exchange_, {"GET", "POST", "DELETE"});
      return;
    }
    if (AnswerSessionPath(api_, exchange_) || AnswerPagePath(exchange_)) return;
    for (const Entry& entry : Entries()) {
      if (path != entry.path) continue;
      if (AllowsMethod(*exchange_, {entry.method})) (this->*entry.handle)();
      return;
    }
    if (absl::StartsWith(path, kModelPath)) {
      if (AllowsMethod(*exchange_, {"GET"})) {
        OneModel(path.substr(kModelPath.size()));
      }
      return;
    }
    NotFound();
  }

 private:
  void NotFound() {
    exchange_->Reply(PlainError(404, "NOT_FOUND", "there is no such path"));
  }

  void Completions() { Complete(api_, exchange_); }

  void ChatCompletions() { Chat(api_, exchange_); }

  void Models() {
    CallModel([start = StartTime()](const Message& message) -> Json {
      return {{"object", "list"},
              {"data", Json::array({ModelJson(message, start)})}};
    });
  }

  // What the path names below /v1/models/.
  void OneModel(const std::string& id) {
    const std::string& served = api_.desk->context().turns.model.facts->name;
    if (id != served) {
      return exchange_->Reply(ErrorReply(ModelUnknown(id, served)));
    }
    CallModel([start = StartTime()](const Message& message) -> Json {
      return ModelJson(message, start);
    });
  }

  void CallModel(MethodAnswer answer) {
    CallMethod(api_.desk, exchange_, "ModelService/GetModel",
               std::make_shared<v1::GetModelRequest>(), std::move(answer));
  }

  static Json ModelJson(const Message& message, int64_t created) {
    const auto& model = static_cast<const v1::GetModelResponse&>(message);
    return {{"id", model.name()},
            {"object", "model"},
            {"created", created},
            {"owned_by", "txl-server"},
            {"max_model_len", model.limits().max_prompt_tokens()},
            {"txl", MessageToJson(message)}};
  }

  // Unix seconds of the server's start.
  int64_t StartTime() const {
    const ServiceContext& context = api_.desk->context();
    return absl::ToUnixSeconds(context.clock->Now() -
                               (context.clock->Monotonic() - context.start));
  }

  void Status() {
    if (!HasNoQuery(*exchange_)) return;
    CallMethod(api_.desk, exchange_, "ModelService/GetServerStatus",
               std::make_shared<v1::GetServerStatusRequest>(), MessageToJson);
  }

  void Health() {
    const absl::Status serving =
        api_.desk->context().turns.lifecycle->CheckServing();
    if (!serving.ok()) return exchange_->Reply(ErrorReply(serving));
    ReplyJson(*exchange_, {{"status", "ok"}});
  }

  void Metrics() {
    HttpReply reply;
    reply.content_type = "text/plain; version=0.0.4; charset=utf-8";
    reply.body = api_.metrics();
    exchange_->Reply(std::move(reply));
  }

  // The body says which of two methods it is for.
  void ScoreText() {
    if (!HasNoQuery(*exchange_)) return;
    ReadBody<ScoreBody>(
        api_.desk, exchange_, ReadScoreBody,
        [desk = api_.desk, exchange = exchange_](ScoreBody body) {
          CallMethod(desk, exchange, body.method, std::move(body.request),
                     MessageToJson);
        });
  }

  void TokenizeText() {
    const int64_t most = api_.desk->context().turns.model.limits.prompt_tokens;
    CallWithBody<v1::TokenizeRequest>(
        api_.desk, exchange_, "ModelService/Tokenize", "", ReadTokenizeBody,
        [most](const Message& message) -> Json {
          Json answer = MessageToJson(message);
          const size_t count = answer["token_ids"].size();
          return {{"tokens", std::move(answer["token_ids"])},
                  {"count", count},
                  {"max_model_len", most},
                  {"left_out", std::move(answer["left_out"])}};
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
    const ModelFacts& facts = *api_.desk->context().turns.model.facts;
    if (facts.vocabulary == nullptr) {
      return exchange_->Reply(
          PlainError(404, "NOT_FOUND", "the model has no tokenizer"));
    }
    ReplyJson(*exchange_, {{"tokenizer_class", facts.vocabulary->kind()},
                           {"eos_token", BorderToken(facts, true)},
                           {"bos_token", BorderToken(facts, false)}});
  }

  const HttpApi& api_;
  const SharedExchange exchange_;
  const HttpRequest& http_;
};

// A browser asks for a page of another origin whether it may send its request.
bool IsPreflight(const HttpApi& api, const HttpRequest& request) {
  const auto& listed = api.options.origins;
  return request.method == "OPTIONS" &&
         !request.header("access-control-request-method").empty() &&
         std::find(listed.begin(), listed.end(), request.header("origin")) !=
             listed.end();
}

void AnswerPreflight(Exchange& exchange) {
  HttpReply reply;
  reply.status = 204;
  reply.headers = {{"access-control-allow-methods", "GET, POST, DELETE"},
                   // Clients in pages send headers of their own. "*" is all of
                   // them but this one, of a request without credentials.
                   {"access-control-allow-headers", "*, authorization"},
                   {"access-control-max-age", "600"}};
  exchange.Reply(std::move(reply));
}

}  // namespace

PathRule RuleOf(const std::string& path) {
  if (IsPagePath(path)) return {true, {}, "page"};
  if (path == kWholeServer) return {true, {}, "*"};
  if (IsSessionPath(path)) return {false, kUsers, "/v1/sessions"};
  if (absl::StartsWith(path, kModelPath)) {
    return {false, kScorers, "/v1/models"};
  }
  for (const Router::Entry& entry : Router::Entries()) {
    if (path != entry.path) continue;
    PathRule rule = entry.rule;
    rule.name = entry.path;
    return rule;
  }
  return {};
}

absl::Status LetInHttp(const HttpApi& api,
                       const std::vector<std::string>& authorization,
                       HttpRequest* head) {
  const PathRule rule =
      IsPreflight(api, *head) ? PathRule{true} : RuleOf(head->path);
  return LetInPath(*api.desk, rule, authorization, head);
}

void AnswerHttp(const HttpApi& api, const SharedExchange& exchange) {
  if (IsPreflight(api, exchange->request())) return AnswerPreflight(*exchange);
  Router(api, exchange).Route();
}

absl::StatusOr<std::unique_ptr<HttpFront>> HttpFront::Start(HttpOptions options,
                                                            HttpApi api) {
  std::unique_ptr<HttpFront> front(new HttpFront);
  front->api_ = std::move(api);
  const CallDesk& desk = *front->api_.desk;
  options.retry_after = desk.context().turns.model.scheduler.retry_after;
  options.trace_rate = desk.context().trace_rate;
  front->api_.options = options;
  HttpHandlers handlers;
  handlers.handle = [kept = front.get()](std::shared_ptr<Exchange> exchange) {
    AnswerHttp(kept->api_, exchange);
  };
  handlers.let_in = [kept = front.get()](
                        HttpRequest* head,
                        const std::vector<std::string>& authorization) {
    return LetInHttp(kept->api_, authorization, head);
  };
  handlers.refused = [desk = front->api_.desk](const HttpRequest& request,
                                               const absl::Status& status) {
    RecordRefusal(*desk, RuleOf(request.path), request, status);
  };
  handlers.hold_body = [desk = front->api_.desk](int64_t bytes) {
    return desk->HoldRequest(bytes);
  };
  TXL_ASSIGN_OR_RETURN(front->server_, HttpServer::Start(std::move(options),
                                                         std::move(handlers)));
  front->api_.desk->AddConnections(front->server_->Counts());
  return front;
}

}  // namespace txl
