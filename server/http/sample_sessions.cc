#include "server/http/sample_sessions.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "server/api/methods.h"
#include "server/base/digest.h"

namespace txl {
namespace {

using google::protobuf::Message;

// Sessions are deleted when they are done with; of a server that was killed
// before, they end by themselves.
constexpr int64_t kTtlSeconds = 600;

// Hands on the one message of a call, or its error.
class OneMessage final : public HttpCallSink {
 public:
  explicit OneMessage(
      std::function<void(const absl::Status&, const Message*)> end)
      : end_(std::move(end)) {}
  void OnMessage(const Message& message, std::function<void(bool)>) override {
    message_.reset(message.New());
    message_->CopyFrom(message);
  }
  void OnEnd(const absl::Status& status) override {
    end_(status, message_.get());
  }

 private:
  const std::function<void(const absl::Status&, const Message*)> end_;
  std::unique_ptr<Message> message_;
};

}  // namespace

SampleSessions::SampleSessions(CallDesk* desk,
                               std::shared_ptr<Exchange> exchange,
                               int64_t count, std::optional<uint32_t> logprobs)
    : desk_(desk), exchange_(std::move(exchange)), logprobs_(logprobs) {
  for (int64_t i = 0; i < count; ++i) {
    ids_.push_back(
        absl::StrFormat("sample-%016x%016x", RandomBits(), RandomBits()));
  }
}

void SampleSessions::Start(const v1::GenerateRequest& turn, Ready ready) {
  ready_ = std::move(ready);
  auto append = std::make_shared<v1::AppendTokensRequest>();
  append->set_session_id(ids_[0]);
  if (turn.has_text()) append->set_text(turn.text());
  if (turn.has_tokens()) *append->mutable_tokens() = turn.tokens();
  append->set_unknown(turn.unknown());
  if (turn.has_expected_position()) {
    append->set_expected_position(turn.expected_position());
  }
  append->set_return_logprobs(logprobs_.has_value());
  append->set_logprobs(logprobs_.value_or(0));
  if (logprobs_.has_value()) {
    *append->mutable_logprob_token_ids() = turn.output().logprob_token_ids();
  }
  auto create = std::make_shared<v1::CreateSessionRequest>();
  create->set_session_id(ids_[0]);
  create->mutable_ttl()->set_seconds(kTtlSeconds);
  Call("CreateSession", std::move(create),
       [this, append = std::move(append)](const Message&) { Append(append); });
}

void SampleSessions::Append(
    std::shared_ptr<const v1::AppendTokensRequest> append) {
  Call("AppendTokens", std::move(append), [this](const Message& message) {
    fed_ = static_cast<const v1::AppendTokensResponse&>(message);
    Fork(1);
  });
}

// One after the other: a session is busy while one of it is being made.
void SampleSessions::Fork(size_t next) {
  if (next == ids_.size()) {
    const auto ready = std::exchange(ready_, nullptr);
    return ready(std::move(fed_));
  }
  auto fork = std::make_shared<v1::ForkSessionRequest>();
  fork->set_session_id(ids_[0]);
  fork->set_new_session_id(ids_[next]);
  Call("ForkSession", std::move(fork),
       [this, next](const Message&) { Fork(next + 1); });
}

void SampleSessions::Fail(const absl::Status& status) {
  const auto ready = std::exchange(ready_, nullptr);
  Stop();
  if (ready != nullptr) ready(status);
}

void SampleSessions::Call(const char* method,
                          std::shared_ptr<const Message> request,
                          std::function<void(const Message&)> then) {
  if (stopped_) return;
  calls_.push_back(HttpCall::Start(
      *FindMethod(absl::StrCat("txl.v1.SessionService/", method)),
      std::move(request), desk_, exchange_,
      std::make_shared<OneMessage>(
          [self = shared_from_this(), then = std::move(then)](
              const absl::Status& status, const Message* message) {
            if (self->stopped_) return;
            status.ok() ? then(*message) : self->Fail(status);
          })));
}

void SampleSessions::Stop() {
  if (std::exchange(stopped_, true)) return;
  ready_ = nullptr;
  for (const auto& call : std::exchange(calls_, {})) call->Leave();
  for (const std::string& id : ids_) {
    auto request = std::make_shared<v1::DeleteSessionRequest>();
    request->set_session_id(id);
    // One that was never made is not found, which is as good.
    HttpCall::Start(*FindMethod("txl.v1.SessionService/DeleteSession"),
                    std::move(request), desk_, exchange_,
                    std::make_shared<OneMessage>(
                        [](const absl::Status&, const Message*) {}));
  }
}

}  // namespace txl
