#include "server/warm_up.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "model/base/status_macros.h"
#include "server/scheduler/turn.h"

namespace txl {
namespace {

class EndSink final : public TokenSink {
 public:
  void Started(const TurnStarted&) override {}
  void Token(TokenEvent) override {}
  void Scored(std::vector<ScoredToken>) override {}
  void Finished(const TurnFinished&) override { ended_.Notify(); }
  void Failed(const absl::Status& status) override {
    status_ = status;
    ended_.Notify();
  }
  int Unsent() const override { return 0; }

  absl::Status Wait() {
    ended_.WaitForNotification();
    return status_;
  }

 private:
  absl::Status status_;  // written before the notification
  absl::Notification ended_;
};

}  // namespace

absl::Status WarmUp(Scheduler* scheduler, SessionStore* store) {
  TXL_ASSIGN_OR_RETURN(SessionLease lease, store->AcquireTemporary());
  const auto sink = std::make_shared<EndSink>();
  Turn turn;
  turn.lease = std::move(lease);
  turn.input = {0};
  turn.stop.max_tokens = 1;
  turn.sink = sink;
  turn.cancel = std::make_shared<CancelToken>();
  TXL_RETURN_IF_ERROR(scheduler->Submit(std::move(turn)));
  return sink->Wait();
}

namespace {

constexpr int64_t kSmallModelParameters = 20'000'000;

}  // namespace

int ChooseThreads(int wanted, int cores, int64_t parameters) {
  if (wanted > 0) return wanted;
  if (parameters < kSmallModelParameters) return 1;
  return std::max(cores, 1);
}

void SetTorchThreads(int threads) { at::set_num_threads(threads); }

}  // namespace txl
