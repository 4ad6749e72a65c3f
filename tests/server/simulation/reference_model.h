#pragma once

// What sessions and their turns must be, said as simply as it can be: a map of
// names to lists of ids, each with at most one call that has the lease. No
// slots, no images, no steps, no threads.
//
// While the server is within a call (the scheduler's loop, the release of a
// lease), a turn may have let go of its session before it hears of its end. So
// answers are sets of what may be true; between two calls there is one.

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "tests/fakes/fake_step_runner.h"
#include "tests/server/simulation/call.h"
#include "tests/server/simulation/odds.h"

namespace txl::simulation {

struct ModelSession {
  std::string name;  // empty: temporary
  Ids ids;           // as of the last turn that ended
  absl::Duration ttl = absl::InfiniteDuration();
  // When its last use was, at the earliest and at the latest.
  absl::Duration used_after;
  absl::Duration used_before;
  bool deleted = false;
  Call* holder = nullptr;   // the call that has the lease
  Call* waiter = nullptr;   // the call that gets it next
  Call* granted = nullptr;  // ... and that no other can displace any more
  // The last call that changed the session: what a retry of it must hear.
  std::shared_ptr<Call> last;
  std::vector<std::string> earlier;  // request ids of those before
};

using SessionPtr = std::shared_ptr<ModelSession>;
using Outcomes = std::set<std::string>;  // "OK", "CODE REASON"

// What a request finds in the session that it gets.
enum class Found {
  kNew,
  kFinished,
  kBroken,
  kBrokenOrFinished,
  kOtherRequest,
  kEarlier,  // another turn came after it
};

class ReferenceModel {
 public:
  // `runner`: the arithmetic of ids only.
  ReferenceModel(const Odds& odds, const FakeStepRunner* runner)
      : odds_(odds), runner_(runner) {}

  // Sessions that the server may have ended by itself: those whose time has
  // passed, for certain or perhaps, and empty ones where room is scarce.
  std::vector<SessionPtr> MayHaveEnded(absl::Duration now) const;
  // It did, and says so with `reason`.
  void Ended(const SessionPtr& session, const std::string& reason);

  // Null: there is none of this name.
  SessionPtr Find(const std::string& name) const;
  // What may be said of one that there is not.
  Outcomes WhyNot(const std::string& name) const;
  SessionPtr Create(const std::string& name, absl::Duration ttl,
                    absl::Duration now);
  void Delete(const SessionPtr& session);

  // What may come of a request for the session's lease. `within`: see above.
  Outcomes OfAcquire(const ModelSession& session, const TurnIdentity& identity,
                     bool within) const;
  Found Lookup(const ModelSession& session, const TurnIdentity& identity) const;
  // What the session may hold. `within`: see above.
  std::vector<Ids> IdsOf(const ModelSession& session, bool within) const;

  // What it may hold when its holder lets go of it.
  std::vector<Ids> IdsLeft(const ModelSession& session) const;

  // The call gets the lease: whoever had it has let go of it, and left `ids`.
  void Acquired(const SessionPtr& session, Call& call, const Ids& ids,
                absl::Duration since, absl::Duration now);
  // The call has let go of the lease; `ids` as it left them.
  void Released(Call& call, const Ids& ids, absl::Duration since,
                absl::Duration now);

  // The token that must follow in the call's turn.
  int32_t NextToken(const Call& call) const;
  float LogProb(const Ids& context, int32_t id) const;
  // Whether the turn is over with its newest token, and how.
  std::optional<FinishReason> ReasonToStop(const Call& call) const;
  // Ids that the call's session holds after it ended so.
  Ids IdsAfter(const Call& call, bool finished) const;

  const std::map<std::string, SessionPtr>& named() const { return named_; }

 private:
  const Odds& odds_;
  const FakeStepRunner* const runner_;
  std::map<std::string, SessionPtr> named_;
  std::map<std::string, std::string> ended_;  // why
};

}  // namespace txl::simulation
