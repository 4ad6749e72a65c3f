#include "server/http/session_paths.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "server/http/http_error.h"
#include "server/http/method_call.h"
#include "txl/v1/session_service.pb.h"

namespace txl {
namespace {

using google::protobuf::Message;
using Json = nlohmann::json;

std::string Query(const Exchange& exchange, const std::string& name) {
  const auto& query = exchange.request().query;
  const auto found = query.find(name);
  return found == query.end() ? "" : found->second;
}

// Absent: it was refused.
std::optional<int32_t> PageSize(Exchange& exchange) {
  const std::string text = Query(exchange, "page_size");
  int32_t size = 0;
  if (text.empty() || absl::SimpleAtoi(text, &size)) return size;
  exchange.Reply(ErrorReply(FieldError("page_size", "must be a whole number")));
  return std::nullopt;
}

Json SessionOf(const Message& message) {
  return MessageToJson(message).value("session", Json::object());
}

Json PageOf(const Message& message) {
  Json page = MessageToJson(message);
  return {{"object", "list"},
          {"data", std::move(page["sessions"])},
          {"next_page_token", std::move(page["next_page_token"])}};
}

void List(CallDesk* desk, const std::shared_ptr<Exchange>& exchange) {
  const std::optional<int32_t> size = PageSize(*exchange);
  if (!size.has_value()) return;
  const auto request = std::make_shared<v1::ListSessionsRequest>();
  request->set_page_size(*size);
  request->set_page_token(Query(*exchange, "page_token"));
  CallMethod(desk, exchange, "SessionService/ListSessions", request, PageOf);
}

void Get(CallDesk* desk, const std::shared_ptr<Exchange>& exchange,
         const std::string& id) {
  const std::optional<int32_t> size = PageSize(*exchange);
  if (!size.has_value()) return;
  const auto request = std::make_shared<v1::GetSessionRequest>();
  request->set_session_id(id);
  request->set_page_size(*size);
  request->set_page_token(Query(*exchange, "page_token"));
  request->set_include_tokens(Query(*exchange, "include_tokens") == "true");
  CallMethod(desk, exchange, "SessionService/GetSession", request,
             MessageToJson);
}

void Delete(CallDesk* desk, const std::shared_ptr<Exchange>& exchange,
            const std::string& id) {
  const auto request = std::make_shared<v1::DeleteSessionRequest>();
  request->set_session_id(id);
  CallMethod(desk, exchange, "SessionService/DeleteSession", request,
             [id](const Message&) -> Json {
               return {{"id", id}, {"object", "session"}, {"deleted", true}};
             });
}

void All(CallDesk* desk, const std::shared_ptr<Exchange>& exchange) {
  if (!AllowsMethod(*exchange, {"GET", "POST"})) return;
  if (exchange->request().method != "POST") return List(desk, exchange);
  CallWithBody<v1::CreateSessionRequest>(
      desk, exchange, "SessionService/CreateSession", "", ReadAll, SessionOf);
}

void One(CallDesk* desk, const std::shared_ptr<Exchange>& exchange,
         const std::string& id) {
  if (!AllowsMethod(*exchange, {"GET", "DELETE"})) return;
  exchange->request().method == "DELETE" ? Delete(desk, exchange, id)
                                         : Get(desk, exchange, id);
}

// False: there is no such action.
bool Act(CallDesk* desk, const std::shared_ptr<Exchange>& exchange,
         const std::string& id, const std::string& action) {
  if (action != "append" && action != "fork" && action != "rewind") {
    return false;
  }
  if (!AllowsMethod(*exchange, {"POST"})) return true;
  if (action == "append") {
    CallWithBody<v1::AppendTokensRequest>(desk, exchange,
                                          "SessionService/AppendTokens", id,
                                          ReadAll, MessageToJson);
  } else if (action == "fork") {
    CallWithBody<v1::ForkSessionRequest>(desk, exchange,
                                         "SessionService/ForkSession", id,
                                         ReadAll, MessageToJson);
  } else {
    CallWithBody<v1::RewindSessionRequest>(desk, exchange,
                                           "SessionService/RewindSession", id,
                                           ReadAll, MessageToJson);
  }
  return true;
}

// "", "v1", "sessions", the session, the action; empty: the path is another.
std::vector<std::string> PartsOf(const std::string& path) {
  std::vector<std::string> parts = absl::StrSplit(path, '/');
  const bool ours = parts.size() >= 3 && parts.size() <= 5 &&
                    parts[1] == "v1" && parts[2] == "sessions";
  return ours ? parts : std::vector<std::string>();
}

}  // namespace

bool IsSessionPath(const std::string& path) { return !PartsOf(path).empty(); }

bool AnswerSessionPath(const HttpApi& api,
                       const std::shared_ptr<Exchange>& exchange) {
  const std::vector<std::string> parts = PartsOf(exchange->request().path);
  if (parts.empty()) return false;
  if (parts.size() == 5) return Act(api.desk, exchange, parts[3], parts[4]);
  parts.size() == 4 ? One(api.desk, exchange, parts[3])
                    : All(api.desk, exchange);
  return true;
}

}  // namespace txl
