// World: what holds between any two events, whatever happened.

#include <algorithm>

#include "tests/server/metrics/conservation.h"
#include "tests/server/simulation/world.h"

namespace txl::simulation {
namespace {

constexpr int64_t kAllTokens = 1'000'000;

}  // namespace

int64_t World::MostSessions() const {
  auto sessions = static_cast<int64_t>(model.named().size());
  for (const auto& call : calls) {
    if (!call->active() || call->released) continue;
    const ModelSession& session = *call->session;
    if (session.deleted || session.name.empty()) ++sessions;
  }
  return sessions;
}

void World::CheckInvariants() {
  if (diverged()) return;
  Expire();
  CheckCounts();
  CheckKept();
  CheckSessions();
  CheckLaws();
  CheckQuotas();
}

// No tenant has got a token more than its quota has let through.
void World::CheckQuotas() {
  for (size_t i = 0; i < accounts.size(); ++i) {
    const auto& limit = odds.tenants[i].tokens_out_per_minute;
    if (!limit.has_value()) continue;
    int64_t tokens = 0;
    for (const auto& call : calls) {
      if (call->account != accounts[i].get()) continue;
      tokens += std::max<int64_t>(
          static_cast<int64_t>(call->tokens.size()) - call->resumed, 0);
    }
    const double minutes = absl::FDivDuration(Now() - begin_, absl::Minutes(1));
    const double most = static_cast<double>(*limit) * (1 + minutes);
    if (static_cast<double>(tokens) > most + 1e-3) {
      Diverge("tenant ", i, " has ", tokens, " tokens, over its ", most);
    }
  }
}

// As docs/operating.md tells users; sessions here have less than 4,096 ids.
int64_t World::BytesOf(int64_t ids) const {
  int64_t room = 16;
  while (room < ids) room *= 2;
  return 2048 + (ids > 0 ? 4 * room + 32 + 16 : 0) +
         (ids > 1 ? odds.store.bytes_per_slot : 0);
}

int64_t World::BytesKept() const {
  int64_t bytes = 0;
  for (const auto& [name, session] : model.named()) {
    const auto ids = static_cast<int64_t>(session->ids.size());
    const Call* const holder = session->holder;
    bytes += BytesOf(holder == nullptr ? ids : holder->reserved.value_or(ids));
  }
  return bytes;
}

bool World::MayKeep(int64_t sessions, int64_t bytes) const {
  const auto named = static_cast<int64_t>(model.named().size());
  return named + sessions <= odds.keeps.sessions.value_or(1 << 30) &&
         BytesKept() + bytes <= odds.keeps.bytes.value_or(1 << 30);
}

bool World::HasQuota(const ModelSession& session, int64_t held,
                     int64_t wanted) const {
  return session.deleted || session.name.empty() ||
         MayKeep(0, BytesOf(wanted) - BytesOf(held));
}

// A session counts as long as it can be named, with what its turn may give it.
void World::CheckKept() {
  const SessionUse use = store->tenant_uses()[kDefaultTenant];
  if (use.sessions != static_cast<int64_t>(model.named().size())) {
    Diverge(use.sessions, " sessions are counted, not ", model.named().size());
  }
  if (use.bytes != BytesKept()) {
    Diverge(use.bytes, " bytes of sessions are counted, not ", BytesKept());
  }
  if (!MayKeep(0, 0)) Diverge("a tenant keeps more than it may");
}

void World::CheckCounts() {
  int64_t busy = 0;
  for (const auto& call : calls) busy += call->active() ? 1 : 0;
  int64_t idle = 0;
  for (const auto& [name, session] : model.named()) {
    idle += session->holder == nullptr ? 1 : 0;
  }
  const SessionCounts counts = store->counts();
  if (counts.busy != busy) {
    Diverge(counts.busy, " sessions are busy, ", busy, " calls hold one");
  }
  if (counts.idle != idle) {
    Diverge(counts.idle, " sessions are idle, not ", idle);
  }
  if (counts.idle + counts.busy > odds.store.max_sessions ||
      counts.id_bytes > odds.store.id_bytes) {
    Diverge("a session too many");
  }
  if (counts.created != counts.ended + counts.idle + counts.busy) {
    Diverge("of ", counts.created, " sessions some are lost");
  }
  if (counts.image_bytes < 0 || counts.image_bytes > odds.store.image_bytes ||
      counts.turn_record_bytes < 0 ||
      counts.turn_record_bytes > odds.store.turn_record_bytes) {
    Diverge("a budget of the store is broken");
  }
}

void World::CheckSessions() {
  for (const auto& [name, session] : model.named()) {
    const absl::StatusOr<SessionText> text =
        store->GetTokens(SessionName::OfDefaultTenant(name), 0, kAllTokens);
    if (!text.ok()) {
      Diverge("'", name, "' is lost: ", Outcome(text.status()));
      continue;
    }
    if (text->token_ids != model.IdsOf(*session, false).front() ||
        text->info.position != static_cast<int64_t>(text->token_ids.size())) {
      Diverge("'", name, "' holds other ids than were handed out");
    }
    const bool busy = text->info.state == SessionState::kBusy;
    if (busy != (session->holder != nullptr)) {
      Diverge("'", name, "' is ", busy ? "busy" : "idle");
    }
  }
}

void World::CheckLaws() {
  const Snapshot snapshot = metrics.Get();
  for (const std::string& law : BrokenLaws(snapshot)) Diverge(law);
  for (const std::string& broken : runner.model().violations()) {
    Diverge("the device: ", broken);
  }
  int64_t submitted = 0;
  for (const auto& call : calls) {
    submitted += call->phase == Call::Phase::kSubmitted ? 1 : 0;
  }
  if (snapshot.turns_active != submitted) {
    Diverge(snapshot.turns_active, " turns are active, not ", submitted);
  }
  // It may be busy with states that are to be saved.
  if (scheduler != nullptr && scheduler->Idle() && submitted > 0) {
    Diverge("the scheduler is idle");
  }
}

void World::CheckAtRest() {
  CheckInvariants();
  for (const auto& call : calls) {
    if (call->phase != Call::Phase::kEnded) {
      Diverge("call ", call->id, " never ends");
    }
  }
  if (scheduler != nullptr && !scheduler->Idle()) {
    Diverge("the scheduler is busy");
  }
  const Snapshot snapshot = metrics.Get();
  if (snapshot.parked_moves > 0) faults.Fired(Fault::kSlotGivenUp);
  if (snapshot.turns_displaced > 0) faults.Fired(Fault::kDisplaced);
  if (odds.few_images && snapshot.rows_rebuild > 0) {
    faults.Fired(Fault::kImagesFull);
  }
  if (snapshot.turns_parked_out != 0 || snapshot.queued_calls != 0 ||
      snapshot.queued_tokens != 0 || snapshot.turns_parked != 0 ||
      snapshot.turns_active != 0) {
    Diverge("something of a turn is left");
  }
  // Every token that went through the device is booked once.
  if (snapshot.rows_run != runner.rows() || snapshot.steps != runner.steps()) {
    Diverge(runner.rows(), " rows ran, ", snapshot.rows_run, " are booked");
  }
  int64_t delivered = 0;
  for (const auto& call : calls) {
    delivered += std::max<int64_t>(
        static_cast<int64_t>(call->tokens.size()) - call->resumed, 0);
  }
  if (snapshot.tokens_delivered != delivered) {
    Diverge(delivered, " tokens came, ", snapshot.tokens_delivered,
            " are booked");
  }
  if (scheduler != nullptr && scheduler->StallTime() != absl::ZeroDuration()) {
    Diverge("the scheduler stalls with nothing to do");
  }
}

void World::CheckEmpty() {
  const SessionCounts counts = store->counts();
  if (counts.idle != 0 || counts.busy != 0 || counts.image_bytes != 0 ||
      counts.turn_record_bytes != 0 ||
      (odds.store.remembered_ends == 0 && counts.id_bytes != 0)) {
    Diverge("something of a session is left: ", counts.idle, " idle, ",
            counts.busy, " busy, ", counts.image_bytes, " of images, ",
            counts.turn_record_bytes, " of records");
  }
  if (scheduler != nullptr && metrics.Get().slots_used != 0) {
    Diverge(metrics.Get().slots_used, " slots are used by nobody");
  }
}

void World::CheckOverQuota(const Call& call) {
  faults.Fired(Fault::kOverQuota);
  if (call.limits.tokens_in_per_minute.has_value()) return;
  int64_t turns = 0;
  for (const auto& other : calls) {
    turns += other->account == call.account &&
                     other->phase == Call::Phase::kSubmitted
                 ? 1
                 : 0;
  }
  if (call.account == nullptr || !call.limits.turns.has_value() ||
      turns <= *call.limits.turns) {
    Diverge("call ", call.id, " is over no quota, with ", turns, " turns");
  }
}

}  // namespace txl::simulation
