#include "server/http/http_call.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "model/text/utf8.h"
#include "server/access/key_ring.h"
#include "server/api/methods.h"
#include "server/base/error.h"
#include "server/http/http_error.h"
#include "server/http/message_json.h"

namespace txl {

std::shared_ptr<HttpCall> HttpCall::Start(
    const ApiMethod& method,
    std::shared_ptr<const google::protobuf::Message> request, CallDesk* desk,
    std::shared_ptr<Exchange> exchange, std::shared_ptr<HttpCallSink> sink) {
  std::shared_ptr<HttpCall> call(new HttpCall(
      method, std::move(request), desk, std::move(exchange), std::move(sink)));
  call->self_ = call;
  call->Run();
  return call;
}

HttpCall::HttpCall(const ApiMethod& method,
                   std::shared_ptr<const google::protobuf::Message> request,
                   CallDesk* desk, std::shared_ptr<Exchange> exchange,
                   std::shared_ptr<HttpCallSink> sink)
    : ApiCall(method.name, desk,
              {exchange->request().peer, exchange->NextTrace(),
               exchange->request().request_id}),
      method_(method),
      request_(std::move(request)),
      exchange_(std::move(exchange)),
      sink_(std::move(sink)) {
  SetCaller(exchange_->request().caller);
}

HttpCall::~HttpCall() {
  if (entered_) desk().Leave(method_.admission);
}

void HttpCall::Run() {
  // The path's rule let the caller in; a path makes several methods' calls.
  absl::Status status = CheckRole(caller(), method_.roles, method_.name);
  if (!status.ok()) return End(status);
  status = desk().Enter(method_.admission);
  if (!status.ok()) return End(status);
  entered_ = true;
  status = CheckCallQuota(method_.admission);
  if (!status.ok()) return End(status);
  if (method_.admission == Admission::kAlways) {
    return method_.handle(desk().context(), shared_from_this());
  }
  absl::StatusOr<ByteHold> room =
      desk().HoldRequest(static_cast<int64_t>(request_->ByteSizeLong()));
  if (!room.ok()) return End(room.status());
  room_ = *std::move(room);
  Work([call = shared_from_this()] {
    call->method_.handle(call->desk().context(), call);
  });
}

void HttpCall::Leave() {
  if (sink_ != nullptr) TellCancel();
}

absl::StatusOr<ApiCall::SharedMessage> HttpCall::Parse(
    const google::protobuf::Message&) const {
  return request_;
}

void HttpCall::ReturnSession(const std::string& session_id) {
  exchange_->Post([call = shared_from_this(), session_id] {
    if (call->sink_ != nullptr) call->sink_->OnSession(session_id);
  });
}

void HttpCall::Answer(const google::protobuf::Message& answer) {
  const absl::Status room =
      HoldAnswerBytes(static_cast<int64_t>(answer.ByteSizeLong()));
  if (!room.ok()) return End(room);
  EndRecord(record(), absl::OkStatus());
  Tell(answer, false);
  TellEnd(absl::OkStatus());
}

void HttpCall::End(const absl::Status& status) {
  EndRecord(record(), status);
  TellEnd(status);
}

void HttpCall::Write(const google::protobuf::Message& message) {
  Tell(message, true);
}

void HttpCall::WriteAndFinish(const google::protobuf::Message& message) {
  Tell(message, false);
  TellEnd(absl::OkStatus());
}

void HttpCall::Finish(const absl::Status& status) { TellEnd(status); }

void HttpCall::Cancel() {
  exchange_->Post([call = shared_from_this()] {
    if (call->sink_ != nullptr) call->exchange_->Cut();
  });
}

void HttpCall::After(absl::Duration delay, std::function<void()> then) {
  exchange_->Post([weak = weak_from_this(), delay, then = std::move(then)] {
    const auto call = weak.lock();
    if (call == nullptr || call->sink_ == nullptr) return;
    const int64_t timer = ++call->timer_;
    call->exchange_->After(delay, [weak, timer, then] {
      const auto call = weak.lock();
      if (call == nullptr || call->sink_ == nullptr) return;
      if (call->timer_ == timer) then();
    });
  });
}

void HttpCall::Tell(const google::protobuf::Message& message, bool more) {
  std::shared_ptr<google::protobuf::Message> copy(message.New());
  copy->CopyFrom(message);
  exchange_->Post([call = shared_from_this(), copy, more] {
    if (call->sink_ == nullptr) return;
    call->sink_->OnMessage(*copy,
                           [weak = call->weak_from_this(), more](bool ok) {
                             const auto call = weak.lock();
                             if (call == nullptr || !more) return;
                             if (const auto told = call->events())
                               told->OnWriteDone(ok);
                           });
  });
}

void HttpCall::TellEnd(const absl::Status& status) {
  exchange_->Post([call = shared_from_this(), status] {
    const auto sink = std::exchange(call->sink_, nullptr);
    if (sink == nullptr) return;
    sink->OnEnd(status);
    call->TellDone();
    call->self_ = nullptr;
  });
}

namespace {

using google::protobuf::Message;

// The name of a method's input in its body: "" where it is the method's own.
absl::string_view InputName(absl::string_view method) {
  if (method == "ModelService/Tokenize") return "prompt";
  if (method == "ModelService/Detokenize") return "tokens";
  return "";
}

// Answers with what a method with one answer says.
class AnswerSink final : public HttpCallSink {
 public:
  AnswerSink(std::shared_ptr<Exchange> exchange, const char* method,
             MethodAnswer answer)
      : exchange_(std::move(exchange)),
        input_(InputName(method)),
        answer_(std::move(answer)) {}
  void OnMessage(const Message& message, std::function<void(bool)>) override {
    reply_.body = DumpJson(answer_(message));
  }
  void OnSession(const std::string& id) override {
    reply_.headers.emplace_back("x-txl-session", id);
  }
  void OnEnd(const absl::Status& status) override {
    exchange_->OnLeave(nullptr);
    if (status.ok()) return exchange_->Reply(std::move(reply_));
    exchange_->Reply(
        ErrorReply(input_.empty() ? status : AsOfInput(status, input_)));
  }

 private:
  const std::shared_ptr<Exchange> exchange_;
  const absl::string_view input_;
  const MethodAnswer answer_;
  HttpReply reply_;
};

}  // namespace

void ReplyJson(Exchange& exchange, const nlohmann::json& json) {
  HttpReply reply;
  reply.body = DumpJson(json);
  exchange.Reply(std::move(reply));
}

bool AllowsMethod(Exchange& exchange, const std::vector<std::string>& methods) {
  const std::string& asked = exchange.request().method;
  const std::string wanted = asked == "HEAD" ? "GET" : asked;
  if (std::find(methods.begin(), methods.end(), wanted) != methods.end()) {
    return true;
  }
  const std::string list = absl::StrJoin(methods, ", ");
  HttpReply reply;
  if (asked == "OPTIONS") {
    reply.status = 204;
  } else {
    reply = PlainError(405, "METHOD_NOT_ALLOWED", absl::StrCat("takes ", list));
  }
  reply.headers.emplace_back("allow", list);
  exchange.Reply(std::move(reply));
  return false;
}

bool HasNoQuery(Exchange& exchange) {
  const auto& query = exchange.request().query;
  if (query.empty()) return true;
  exchange.Reply(ErrorReply(
      FieldError(ReplaceInvalidUtf8(query.front().first),
                 "is not a query parameter: this request takes none")));
  return false;
}

void CallMethod(CallDesk* desk, const std::shared_ptr<Exchange>& exchange,
                const char* method, std::shared_ptr<const Message> request,
                MethodAnswer answer) {
  const auto call = HttpCall::Start(
      *FindMethod(absl::StrCat("txl.v1.", method)), std::move(request), desk,
      exchange,
      std::make_shared<AnswerSink>(exchange, method, std::move(answer)));
  exchange->OnLeave([weak = std::weak_ptr<HttpCall>(call)] {
    if (const auto left = weak.lock()) left->Leave();
  });
}

absl::StatusOr<std::string> NamedSession(
    const std::optional<std::string>& of_body, const HttpRequest& http) {
  std::string session = of_body.value_or("");
  for (const char* name : {"x-txl-session", "x-session-id"}) {
    const std::string& value = http.header(name);
    if (value.empty()) continue;
    if (!session.empty() && session != value) {
      return FieldError("session_id",
                        absl::StrCat("the header ", name, " names another"));
    }
    session = value;
  }
  return session;
}

}  // namespace txl
