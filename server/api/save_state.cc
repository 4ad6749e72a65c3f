#include "server/api/save_state.h"

#include <utility>
#include <vector>

namespace txl {
namespace {

// Hears of the turn that saves, and of the call that waits for it.
class SaveSink final : public TokenSink, public CallEvents {
 public:
  // `fails`: whether `then` hears of every error.
  SaveSink(const ServiceContext& service, ApiCall& call, bool fails,
           std::function<void(const absl::Status&)> then)
      : service_(service),
        record_(call.record()),
        deadline_(call.Deadline()),
        fails_(fails),
        then_(std::move(then)) {}

  const std::shared_ptr<CancelToken>& cancel() const { return cancel_; }
  std::optional<absl::Duration> deadline() const { return deadline_; }

  // TokenSink.
  void Started(const TurnStarted&) override {}
  void Token(TokenEvent) override {}
  void Scored(std::vector<ScoredToken>) override {}
  void Finished(const TurnFinished&) override { End(absl::OkStatus()); }
  void Failed(const absl::Status& status) override {
    const bool left =
        absl::IsCancelled(status) || absl::IsDeadlineExceeded(status);
    End(left || fails_ ? status : absl::OkStatus());
  }
  int Unsent() const override { return 0; }

  // CallEvents.
  void OnCancel() override {
    CancelTurn(record_, deadline_, cancel_.get());
    service_.scheduler->Wake();
  }
  void OnDone() override {}

 private:
  // Called once: by the scheduler, or by who could not submit the turn.
  void End(const absl::Status& status) {
    service_.callbacks->Run(
        [then = std::exchange(then_, nullptr), status] { then(status); });
  }

  const ServiceContext& service_;
  const CallRecord record_;
  const std::optional<absl::Duration> deadline_;
  const bool fails_;
  const std::shared_ptr<CancelToken> cancel_ = std::make_shared<CancelToken>();
  std::function<void(const absl::Status&)> then_;
};

void SubmitSave(const ServiceContext& service, ApiCall& call,
                SessionLease lease, bool moves_out,
                const std::shared_ptr<SaveSink>& sink) {
  Turn turn;
  turn.kind = TurnKind::kSave;
  turn.moves_out = moves_out;
  turn.lease = std::move(lease);
  turn.sink = sink;
  turn.cancel = sink->cancel();
  turn.deadline = sink->deadline();
  call.HandOver(sink);
  const absl::Status status = service.scheduler->Submit(std::move(turn));
  if (!status.ok()) sink->Failed(status);
}

}  // namespace

void SaveState(const ServiceContext& service,
               const std::shared_ptr<ApiCall>& call, const SessionName& session,
               std::optional<int64_t> position,
               std::function<void(const absl::Status&)> then) {
  absl::StatusOr<SessionLease> lease = service.store->Acquire(session);
  if (!lease.ok()) return then(absl::OkStatus());
  if (position.value_or(lease->position()) != lease->position()) {
    lease->Release();
    return then(absl::OkStatus());
  }
  SubmitSave(service, *call, *std::move(lease), /*moves_out=*/false,
             std::make_shared<SaveSink>(service, *call, /*fails=*/false,
                                        std::move(then)));
}

void MoveOutState(const ServiceContext& service,
                  const std::shared_ptr<ApiCall>& call,
                  const SessionName& session,
                  std::function<void(const absl::StatusOr<bool>&)> then) {
  absl::StatusOr<SessionLease> lease = service.store->Acquire(session);
  if (!lease.ok()) return then(lease.status());
  // Nobody moves it while the lease is held.
  const absl::StatusOr<SessionInfo> info = service.store->Get(session);
  if (!info.ok() || !info->in_slot) {
    lease->Release();
    return then(info.ok() ? absl::StatusOr<bool>(false) : info.status());
  }
  const auto moved = [then = std::move(then)](const absl::Status& status) {
    then(status.ok() ? absl::StatusOr<bool>(true) : status);
  };
  SubmitSave(service, *call, *std::move(lease), /*moves_out=*/true,
             std::make_shared<SaveSink>(service, *call, /*fails=*/true, moved));
}

}  // namespace txl
