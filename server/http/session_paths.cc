#include "server/http/session_paths.h"

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "server/http/http_call.h"
#include "server/http/http_error.h"
#include "server/session/session_name.h"
#include "txl/v1/session_service.pb.h"

namespace txl {
namespace {

using google::protobuf::Message;
using Json = nlohmann::json;

Json SessionOf(const Message& message) {
  return MessageToJson(message).value("session", Json::object());
}

Json PageOf(const Message& message) {
  Json page = MessageToJson(message);
  return {{"object", "list"},
          {"data", std::move(page["sessions"])},
          {"next_page_token", std::move(page["next_page_token"])}};
}

void All(CallDesk* desk, const std::shared_ptr<Exchange>& exchange) {
  if (!AllowsMethod(*exchange, {"GET", "POST"})) return;
  if (exchange->request().method != "POST") {
    return CallWithQuery<v1::ListSessionsRequest>(
        desk, exchange, "SessionService/ListSessions", "", PageOf);
  }
  if (!HasNoQuery(*exchange)) return;
  CallWithBody<v1::CreateSessionRequest>(
      desk, exchange, "SessionService/CreateSession", "", ReadAll, SessionOf);
}

void One(CallDesk* desk, const std::shared_ptr<Exchange>& exchange,
         const std::string& id) {
  if (!AllowsMethod(*exchange, {"GET", "DELETE"})) return;
  if (exchange->request().method == "DELETE") {
    return CallWithQuery<v1::DeleteSessionRequest>(
        desk, exchange, "SessionService/DeleteSession", id,
        [id](const Message&) -> Json {
          return {{"id", id}, {"object", "session"}, {"deleted", true}};
        });
  }
  CallWithQuery<v1::GetSessionRequest>(
      desk, exchange, "SessionService/GetSession", id, MessageToJson);
}

// False: there is no such action.
bool Act(CallDesk* desk, const std::shared_ptr<Exchange>& exchange,
         const std::string& id, const std::string& action) {
  if (action != "append" && action != "fork" && action != "rewind") {
    return false;
  }
  if (!AllowsMethod(*exchange, {"POST"}) || !HasNoQuery(*exchange)) return true;
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
  // What proxies route by does not stand in for an id that a path lacks.
  if (parts.size() > 3 && parts[3].empty()) {
    exchange->Reply(ErrorReply(ValidateSessionId("")));
    return true;
  }
  if (parts.size() == 5) return Act(api.desk, exchange, parts[3], parts[4]);
  parts.size() == 4 ? One(api.desk, exchange, parts[3])
                    : All(api.desk, exchange);
  return true;
}

}  // namespace txl
