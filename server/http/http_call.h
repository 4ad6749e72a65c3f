#pragma once

// A call of an API method that an HTTP request makes. Its messages go to the
// handler of the request, on the front's thread.

#include <google/protobuf/message.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "server/api/api_call.h"
#include "server/http/exchange.h"

namespace txl {

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

  // The client has left, or nobody wants the answer any more. On the front's
  // thread.
  void Leave();

  // ApiCall.
  absl::Status Parse(google::protobuf::Message* request) const override;
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

}  // namespace txl
