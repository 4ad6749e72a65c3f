#pragma once

// The server's heart with everything around it simulated: a scheduler without
// its thread, a session store, a device, a clock, clients and their readers,
// and beside them the model that says what has to come of it.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/metrics/metrics.h"
#include "server/scheduler/scheduler.h"
#include "server/session/session_store.h"
#include "tests/fakes/fake_clock.h"
#include "tests/server/simulation/call.h"
#include "tests/server/simulation/faults.h"
#include "tests/server/simulation/faulty_runner.h"
#include "tests/server/simulation/interleaving.h"
#include "tests/server/simulation/odds.h"
#include "tests/server/simulation/random.h"
#include "tests/server/simulation/reference_model.h"

namespace txl::simulation {

// "OK", "CODE REASON".
std::string Outcome(const absl::Status& status);
// All of them.
Ids IdsOf(const SessionLease& lease);

class World : public CallObserver {
 public:
  // `meanwhile`: what another thread does when its turn comes in between.
  // `tracing`: keeps a line for everything that happens.
  World(uint64_t seed, bool tracing, std::function<void(World&)> meanwhile);
  ~World() override;

  // One turn of the scheduler's loop. False: it had nothing to do.
  bool RunScheduler();
  // Ends the scheduler, with what runs in it.
  void EndScheduler();

  // client.cc: what the RPC layer does for a call, around the product's store
  // and scheduler.
  void Send(Request request);
  // One of the leases that were waited for is used.
  void RunTask();

  // Brings the model's sessions up to the clock.
  void Expire();
  // invariants.cc: what holds between any two events.
  void CheckInvariants();
  // ... when nothing runs, and when there is no session left either.
  void CheckAtRest();
  void CheckEmpty();

  // The first thing that is not as the model has it ends the seed.
  template <typename... Parts>
  void Diverge(const Parts&... parts) {
    Note("DIVERGES: ", parts...);
    if (divergence.empty()) divergence = absl::StrCat(parts...);
  }
  template <typename... Parts>
  void Note(const Parts&... parts) {
    if (tracing) trace.push_back(absl::StrCat(parts...));
  }
  bool diverged() const { return !divergence.empty(); }

  // CallObserver, in turn_checks.cc.
  void OnStarted(Call& call, const TurnStarted& started) override;
  void OnToken(Call& call, const TokenEvent& token) override;
  void OnScored(Call& call, const std::vector<ScoredToken>& scored) override;
  void OnFinished(Call& call, const TurnFinished& finished) override;
  void OnFailed(Call& call, const absl::Status& status) override;
  // For the model and its clients: nobody comes in between.
  absl::Duration Now() override {
    const Interleaving::Alone alone;
    return clock.Monotonic();
  }
  void InSink() override { AtPoint(Fault::kInterleavedInSink); }

  Random random;
  const Odds odds;
  FaultCounts faults;
  FakeClock clock;
  Metrics metrics;
  std::vector<std::unique_ptr<TenantAccount>> accounts;  // of odds.tenants
  FaultyRunner runner;
  ReferenceModel model;
  std::unique_ptr<SessionStore> store;
  std::unique_ptr<Scheduler> scheduler;
  std::vector<std::shared_ptr<Call>> calls;
  std::vector<uint64_t> keys;  // of all leases that were submitted

  bool draining = false;
  bool end_all = false;
  bool mended = false;  // no new faults, readers read
  bool wall_clock_stands = false;
  const bool tracing;
  std::vector<std::string> trace;
  std::string divergence;

  // Whether product code that may let go of a lease is on the stack: another
  // thread's turn came in between.
  bool within() const { return depth_ > 0; }
  absl::Duration within_since() const { return within_since_; }

 private:
  // While it lives, other threads may come in between.
  class Within {
   public:
    explicit Within(World* world);
    ~Within() { --world_->depth_; }

   private:
    World* const world_;
  };
  struct Task {
    std::shared_ptr<Call> call;
    SessionLease lease;
  };

  void AtPoint(Fault where);
  void DrawNextPoint();

  // turn_checks.cc
  int64_t MostCached(const Call& call) const;

  // client.cc
  void CheckNoRoom(int64_t most_sessions);
  void SendTemporary(const std::shared_ptr<Call>& call);
  void OnLease(const std::shared_ptr<Call>& call,
               absl::StatusOr<SessionLease> lease);
  void CheckLeft(const ModelSession& session, const Ids& ids);
  void Waits(const std::shared_ptr<Call>& call, const SessionPtr& session);
  void Use(const std::shared_ptr<Call>& call, SessionLease lease);
  void CheckRecord(Call& call,
                   const absl::StatusOr<std::shared_ptr<const TurnRecord>>&);
  void Submit(const std::shared_ptr<Call>& call, SessionLease lease,
              std::shared_ptr<const TurnRecord> record);
  bool Reserve(Call& call, SessionLease& lease);
  void LetGo(Call& call, SessionLease lease);
  void Refused(Call& call, const absl::Status& status);
  void CheckReplay(Call& call, const TurnRecord& record);
  void CheckRefusal(Call& call, const std::string& outcome);
  void CheckOverQuota(const Call& call);
  bool HasQuota(const ModelSession& session, int64_t held,
                int64_t wanted) const;

  // turn_checks.cc
  Outcomes FailuresOf(const Call& call);
  // The turn has lasted for longer than its tenant's may.
  bool OverQuota(const Call& call);
  bool TooSlow(const Reader& reader);
  // The call has ended. A turn that a drain ends is `finished` for its caller,
  // but not `recorded` as such: it goes on where it is sent again.
  void Settle(Call& call, bool finished, bool recorded);
  void MarkDue();

  // invariants.cc
  void CheckSessions();
  void CheckCounts();
  void CheckLaws();
  void CheckQuotas();
  void CheckKept();
  int64_t BytesKept() const;

  std::vector<Task> tasks_;
  int depth_ = 0;
  bool acquiring_ = false;  // a lease, for another call of the same request
  absl::Duration within_since_;
  int64_t points_left_ = 0;
  absl::Duration begin_;
  int64_t steps_failed_ = 0;  // turns that ended so
  const std::function<void(World&)> meanwhile_;
  Interleaving interleaving_;

 public:
  bool has_tasks() const { return !tasks_.empty(); }
  // That the store may have.
  int64_t MostSessions() const;
  // What a session of so many ids counts with for its tenant, and whether the
  // tenant may keep so much more.
  int64_t BytesOf(int64_t ids) const;
  bool MayKeep(int64_t sessions, int64_t bytes) const;
};

}  // namespace txl::simulation
