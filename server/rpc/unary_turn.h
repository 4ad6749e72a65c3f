#pragma once

// The answer of AppendTokens and Score: collects what the scheduler reports and
// finishes the call once. Bounded by the limit on input tokens.

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/rpc/call_record.h"
#include "server/rpc/callback_thread.h"
#include "server/scheduler/token_sink.h"
#include "server/scheduler/turn.h"

namespace txl {

struct UnaryTurnOptions {
  // Serialises the answer; called once, on the callback thread.
  std::function<grpc::ByteBuffer(const TurnFinished&,
                                 const std::vector<ScoredToken>&)>
      answer;
  std::optional<absl::Duration> deadline;  // on the record's clock
  std::function<void()> wake;              // the scheduler
  CallbackThread* callbacks = nullptr;
  CallRecord record;
};

class UnaryTurn final : public grpc::ServerUnaryReactor, public TokenSink {
 public:
  // `response` is gRPC's own and lives until OnDone.
  static std::shared_ptr<UnaryTurn> Create(grpc::ByteBuffer* response,
                                           UnaryTurnOptions options);

  const std::shared_ptr<CancelToken>& cancel() const { return cancel_; }
  std::optional<absl::Duration> deadline() const { return options_.deadline; }

  // TokenSink.
  void Started(const TurnStarted& started) override;
  void Token(TokenEvent event) override;
  void Scored(std::vector<ScoredToken> tokens) override;
  void Finished(const TurnFinished& finished) override;
  void Failed(const absl::Status& status) override;
  int Unsent() const override { return 0; }

  // ServerUnaryReactor.
  void OnCancel() override;
  void OnDone() override;

 private:
  UnaryTurn(grpc::ByteBuffer* response, UnaryTurnOptions options);
  void End(const absl::Status& status, TurnFinished finished);

  grpc::ByteBuffer* const response_;
  const UnaryTurnOptions options_;
  const std::shared_ptr<CancelToken> cancel_ = std::make_shared<CancelToken>();

  absl::Mutex mutex_;
  std::shared_ptr<UnaryTurn> self_ ABSL_GUARDED_BY(mutex_);  // until OnDone
  std::vector<ScoredToken> scored_ ABSL_GUARDED_BY(mutex_);
  std::optional<absl::Status> end_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace txl
