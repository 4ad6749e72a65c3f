#pragma once

// Paths that are methods with one answer: JSON in, the method's message, JSON
// out.

#include <google/protobuf/message.h>

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "model/base/status_macros.h"
#include "server/base/error.h"
#include "server/http/exchange.h"
#include "server/http/http_error.h"
#include "server/http/json_in.h"
#include "server/http/message_json.h"
#include "server/http/named_session.h"
#include "server/http/read_body.h"

namespace txl {

// What is answered of a method's message.
using MethodAnswer =
    std::function<nlohmann::json(const google::protobuf::Message&)>;

void ReplyJson(Exchange& exchange, const nlohmann::json& json);

// False: the method was refused, or was OPTIONS and is answered; "GET" allows
// HEAD too.
bool AllowsMethod(Exchange& exchange, const std::vector<std::string>& methods);

// False: the request has a query, and was refused.
bool HasNoQuery(Exchange& exchange);

// Calls "SessionService/GetSession" or the like, and answers.
void CallMethod(CallDesk* desk, const std::shared_ptr<Exchange>& exchange,
                const char* method,
                std::shared_ptr<const google::protobuf::Message> request,
                MethodAnswer answer);

// Sets the session of a request from the path, "" where that names none, the
// body and the headers. FIELD_INVALID where two differ.
template <typename Request>
absl::Status SetSession(const std::string& of_path, const HttpRequest& http,
                        Request* request) {
  const std::string& of_body = request->session_id();
  if (!of_path.empty() && !of_body.empty() && of_path != of_body) {
    return FieldError("session_id", "the path names another");
  }
  TXL_ASSIGN_OR_RETURN(const std::string named,
                       NamedSession(of_path.empty() ? of_body : of_path, http));
  request->set_session_id(named);
  return absl::OkStatus();
}

// Calls a method with a request that `reader` makes of the body.
template <typename Request>
void CallWithBody(CallDesk* desk, const std::shared_ptr<Exchange>& exchange,
                  const char* method, const std::string& session_of_path,
                  absl::Status (*reader)(BodyFields& fields, Request* request),
                  MethodAnswer answer) {
  ReadBody<std::shared_ptr<Request>>(
      desk, exchange,
      [=](const HttpRequest& http) -> absl::StatusOr<std::shared_ptr<Request>> {
        TXL_ASSIGN_OR_RETURN(const nlohmann::json body, ParseBody(http.body));
        BodyFields fields(body);
        auto request = std::make_shared<Request>();
        TXL_RETURN_IF_ERROR(reader(fields, request.get()));
        if constexpr (requires { request->session_id(); }) {
          TXL_RETURN_IF_ERROR(SetSession(session_of_path, http, request.get()));
        }
        return request;
      },
      [=](std::shared_ptr<Request> request) {
        CallMethod(desk, exchange, method, std::move(request), answer);
      });
}

// Reads every field of a request, and refuses every other.
template <typename Request>
absl::Status ReadAll(BodyFields& fields, Request* request) {
  TXL_RETURN_IF_ERROR(ReadMessage(fields, request));
  return fields.RefuseUnknown();
}

// The same with a request whose fields are in the query.
template <typename Request>
void CallWithQuery(CallDesk* desk, const std::shared_ptr<Exchange>& exchange,
                   const char* method, const std::string& session_of_path,
                   MethodAnswer answer) {
  const auto read = [&](Request* request) -> absl::Status {
    const HttpRequest& http = exchange->request();
    TXL_ASSIGN_OR_RETURN(const nlohmann::json query, QueryObject(http));
    BodyFields fields(query, BodyFields::Spelling::kText);
    TXL_RETURN_IF_ERROR(ReadAll(fields, request));
    if constexpr (requires { request->session_id(); }) {
      return SetSession(session_of_path, http, request);
    }
    return absl::OkStatus();
  };
  const auto request = std::make_shared<Request>();
  const absl::Status status = read(request.get());
  if (!status.ok()) return exchange->Reply(ErrorReply(status));
  CallMethod(desk, exchange, method, request, std::move(answer));
}

}  // namespace txl
