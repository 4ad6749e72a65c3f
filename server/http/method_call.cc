#include "server/http/method_call.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "model/text/utf8.h"
#include "server/api/methods.h"
#include "server/http/http_call.h"
#include "server/http/http_error.h"
#include "server/http/message_json.h"

namespace txl {
namespace {

using google::protobuf::Message;

// Answers with what a method with one answer says.
class AnswerSink final : public HttpCallSink {
 public:
  AnswerSink(std::shared_ptr<Exchange> exchange, MethodAnswer answer)
      : exchange_(std::move(exchange)), answer_(std::move(answer)) {}
  void OnMessage(const Message& message, std::function<void(bool)>) override {
    reply_.body = DumpJson(answer_(message));
  }
  void OnSession(const std::string& id) override {
    reply_.headers.emplace_back("x-txl-session", id);
  }
  void OnEnd(const absl::Status& status) override {
    exchange_->OnLeave(nullptr);
    exchange_->Reply(status.ok() ? std::move(reply_) : ErrorReply(status));
  }

 private:
  const std::shared_ptr<Exchange> exchange_;
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
      exchange, std::make_shared<AnswerSink>(exchange, std::move(answer)));
  exchange->OnLeave([weak = std::weak_ptr<HttpCall>(call)] {
    if (const auto left = weak.lock()) left->Leave();
  });
}

}  // namespace txl
