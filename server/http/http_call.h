#pragma once

// A call of an API method that an HTTP request makes. Its messages go to the
// handler of the request, on the front's thread.

#include <google/protobuf/message.h>

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "model/base/status_macros.h"
#include "server/api/api_call.h"
#include "server/base/error.h"
#include "server/http/http_api.h"
#include "server/http/http_error.h"
#include "server/http/http_message.h"
#include "server/http/json_in.h"
#include "server/http/message_json.h"

namespace txl {

// Which session a request is about.

// The session that body and headers (x-txl-session, X-Session-ID) name, ""
// where none does. FIELD_INVALID where two differ.
absl::StatusOr<std::string> NamedSession(
    const std::optional<std::string>& of_body, const HttpRequest& http);

// Where the answer of a call goes. All on the front's thread.
class HttpCallSink {
 public:
  virtual ~HttpCallSink() = default;
  // The only message of a method with one answer, or the next one of a stream.
  // `taken` is called when there may be another: false, the client is gone.
  virtual void OnMessage(const google::protobuf::Message& message,
                         std::function<void(bool)> taken) = 0;
  // The session that the call has found or made.
  virtual void OnSession(const std::string& /*session_id*/) {}
  // Last of all.
  virtual void OnEnd(const absl::Status& status) = 0;
};

class HttpCall final : public ApiCall,
                       public std::enable_shared_from_this<HttpCall> {
 public:
  // Runs `method` with `request`, which is of its type. The desk outlives the
  // call.
  static std::shared_ptr<HttpCall> Start(
      const ApiMethod& method,
      std::shared_ptr<const google::protobuf::Message> request, CallDesk* desk,
      std::shared_ptr<Exchange> exchange, std::shared_ptr<HttpCallSink> sink);
  ~HttpCall() override;

  // The client has left, or the answer is no longer wanted. On the front's
  // thread.
  void Leave();

  // ApiCall.
  std::optional<absl::Duration> Deadline() const override {
    return std::nullopt;
  }
  void ReturnSession(const std::string& session_id) override;
  void Answer(const google::protobuf::Message& answer) override;
  void End(const absl::Status& status) override;
  void WritePiece(const google::protobuf::Message& message) override {
    Write(message);
  }
  // A request is one message.
  void ReadMore(std::function<void(bool)> then) override {
    Work([then = std::move(then)] { then(false); });
  }

  // CallWriter.
  void Write(const google::protobuf::Message& message) override;
  void WriteAndFinish(const google::protobuf::Message& message) override;
  void Finish(const absl::Status& status) override;
  void Cancel() override;
  void After(absl::Duration delay, std::function<void()> then) override;

 private:
  HttpCall(const ApiMethod& method,
           std::shared_ptr<const google::protobuf::Message> request,
           CallDesk* desk, std::shared_ptr<Exchange> exchange,
           std::shared_ptr<HttpCallSink> sink);
  void Run();
  absl::StatusOr<SharedMessage> Parse(
      const google::protobuf::Message& type) const override;
  std::shared_ptr<ApiCall> self() override { return shared_from_this(); }
  // The handler has compared headers and body.
  absl::Status CheckRoute(const std::string&) const override {
    return absl::OkStatus();
  }
  // `more`: the call's events hear when there may be another.
  void Tell(const google::protobuf::Message& message, bool more);
  void TellEnd(const absl::Status& status);

  const ApiMethod& method_;
  const std::shared_ptr<const google::protobuf::Message> request_;
  const std::shared_ptr<Exchange> exchange_;
  // The front's thread has these; null: the call has ended.
  std::shared_ptr<HttpCallSink> sink_;
  std::shared_ptr<HttpCall> self_;
  bool entered_ = false;
  int64_t timer_ = 0;  // the newest of After; of the front's thread
  ByteHold room_;
};

// Paths that are methods with one answer: JSON in, the method's message, JSON
// out.

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

// Call for a request whose fields are in the query.
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
