#pragma once

// The answer of AppendTokens and Score: collects what the scheduler reports and
// ends the call once. Bounded by the limit on input tokens.

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/api/api_call.h"
#include "server/api/work_pool.h"
#include "server/base/task_thread.h"
#include "server/scheduler/token_sink.h"
#include "server/scheduler/turn.h"

namespace txl {

struct UnaryTurnOptions {
  // Serialises the answer; called once, on the callback thread or, when there
  // is much to it, on the pool.
  std::function<AnswerMessage(const TurnFinished&,
                              const std::vector<ScoredToken>&)>
      answer;
  std::optional<absl::Duration> deadline;  // on the record's clock
  std::function<void()> wake;              // the scheduler
  TaskThread* callbacks = nullptr;
  WorkPool* work = nullptr;
  ByteHold hold;  // room for the answer
};

class UnaryTurn final : public TokenSink, public CallEvents {
 public:
  // Takes the call over.
  static std::shared_ptr<UnaryTurn> Create(std::shared_ptr<ApiCall> call,
                                           UnaryTurnOptions options);

  const std::shared_ptr<CancelToken>& cancel() const { return cancel_; }
  std::optional<absl::Duration> deadline() const { return options_.deadline; }
  TenantAccount* account() const { return account_; }  // ApiCall's
  // A session that there is: returned to the client.
  void Found(const std::string& session_id);

  // TokenSink.
  void Started(const TurnStarted& started) override;
  void Token(TokenEvent event) override;
  void Scored(std::vector<ScoredToken> tokens) override;
  void Finished(const TurnFinished& finished) override;
  void Failed(const absl::Status& status) override;
  int Unsent() const override { return 0; }

  // CallEvents.
  void OnCancel() override;
  void OnDone() override {}

 private:
  UnaryTurn(std::shared_ptr<ApiCall> call, UnaryTurnOptions options);
  void End(const absl::Status& status, TurnFinished finished);
  absl::Duration Now() const { return clock_->Monotonic(); }

  const UnaryTurnOptions options_;
  TenantAccount* const account_;
  Clock* const clock_;
  const std::shared_ptr<CancelToken> cancel_ = std::make_shared<CancelToken>();

  absl::Mutex mutex_;
  std::shared_ptr<ApiCall> call_ ABSL_GUARDED_BY(mutex_);  // until its end
  std::vector<ScoredToken> scored_ ABSL_GUARDED_BY(mutex_);
  TurnTimes times_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace txl
