#pragma once

// One call of a client: what it asked for, and everything that it heard.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/scheduler/turn.h"
#include "tests/server/simulation/reader.h"

namespace txl::simulation {

using Ids = std::vector<int32_t>;

// Equal digests: equal requests.
struct Request {
  std::string session;  // empty: a temporary one
  TurnIdentity identity;
  TurnKind kind = TurnKind::kGenerate;
  Ids input;
  int max_tokens = 1;
  int min_tokens = 0;
  Ids stop_ids;
  Ids end_ids;
  int top_logprobs = 0;
  bool return_scored = false;
};

class Call;
struct ModelSession;  // reference_model.h

// Hears every event of a call before the call's own books do.
class CallObserver {
 public:
  virtual ~CallObserver() = default;
  virtual void OnStarted(Call& call, const TurnStarted& started) = 0;
  virtual void OnToken(Call& call, const TokenEvent& token) = 0;
  virtual void OnScored(Call& call, const std::vector<ScoredToken>& scored) = 0;
  virtual void OnFinished(Call& call, const TurnFinished& finished) = 0;
  virtual void OnFailed(Call& call, const absl::Status& status) = 0;
  virtual absl::Duration Now() = 0;
  // Between two events: another thread may do something.
  virtual void InSink() = 0;
};

class Call : public TokenSink, public std::enable_shared_from_this<Call> {
 public:
  enum class Phase {
    kNew,
    kWaiting,    // for the lease that another call has
    kHolding,    // it has the lease, and has not used it yet
    kSubmitted,  // the scheduler has the turn
    kEnded,      // it heard its one terminal event
  };

  Call(int number, Request asked, Reader call_reader, CallObserver* observer)
      : id(number),
        request(std::move(asked)),
        reader(call_reader),
        observer_(observer) {}

  void Started(const TurnStarted& event) override;
  void Token(TokenEvent event) override;
  void Scored(std::vector<ScoredToken> events) override;
  void Finished(const TurnFinished& event) override;
  void Failed(const absl::Status& status) override;
  int Unsent() const override;

  bool named() const { return request.identity.named(); }
  // It has the lease, as far as it was told.
  bool active() const {
    return phase == Phase::kHolding || phase == Phase::kSubmitted;
  }
  // Whether it may let go of the lease without having been told of its end.
  bool MayLetGo() const { return phase == Phase::kSubmitted || letting_go; }
  // Whether the session is changed by what it has heard.
  bool Committed() const;

  const int id;
  const Request request;
  Reader reader;

  // The client's side.
  Phase phase = Phase::kNew;
  uint64_t seed = 0;        // drawn for this call
  bool letting_go = false;  // of the lease, right now
  std::shared_ptr<CancelToken> cancel = std::make_shared<CancelToken>();
  std::optional<absl::Duration> deadline;
  absl::Duration submitted;
  TenantAccount* account = nullptr;
  TenantLimits limits;  // the account's
  int32_t priority = 0;
  bool superseded = false;  // the same request came while it had the lease

  // The model's side, from the moment on at which it gets the lease.
  std::shared_ptr<ModelSession> session;
  std::shared_ptr<ModelSession> waits_for;
  std::shared_ptr<Call> resumes;
  Ids before;           // the session's ids before the turn's input
  Ids context;          // with the input and all tokens
  int64_t resumed = 0;  // tokens that an earlier call had
  // Ids that its session may grow to in this turn; nothing: not yet reserved.
  std::optional<int64_t> reserved;
  uint64_t turn_seed = 0;
  // It let go of the lease, which shows in what others see, but has not been
  // told of its end yet.
  bool released = false;
  // What its end has to be, where others have seen it already.
  std::optional<bool> must_finish;
  bool must_end = false;  // before the scheduler's turn is over
  bool was_due = false;   // must_end of the scheduler's turn before
  // The reader as it was when the scheduler's turn began.
  std::optional<Reader> reader_before;

  // What it heard.
  std::optional<TurnStarted> started;
  std::vector<TokenEvent> tokens;
  std::vector<ScoredToken> scored;
  std::optional<TurnFinished> finished;
  absl::Status failed;

 private:
  CallObserver* const observer_;
};

}  // namespace txl::simulation
