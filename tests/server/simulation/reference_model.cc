#include "tests/server/simulation/reference_model.h"

#include <algorithm>

namespace txl::simulation {
namespace {

bool Contains(const Ids& ids, int32_t id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

}  // namespace

std::vector<SessionPtr> ReferenceModel::MayHaveEnded(absl::Duration now) const {
  std::vector<SessionPtr> may;
  for (const auto& [name, session] : named_) {
    if (session->holder != nullptr) continue;
    const bool due = session->used_after + session->ttl <= now;
    if (due || (odds_.scarce() && session->ids.empty())) may.push_back(session);
  }
  return may;
}

void ReferenceModel::Ended(const SessionPtr& session,
                           const std::string& reason) {
  named_.erase(session->name);
  ended_[session->name] = reason;
}

SessionPtr ReferenceModel::Find(const std::string& name) const {
  const auto found = named_.find(name);
  return found == named_.end() ? nullptr : found->second;
}

Outcomes ReferenceModel::WhyNot(const std::string& name) const {
  const Outcomes unknown = {"NOT_FOUND SESSION_UNKNOWN"};
  const auto ended = ended_.find(name);
  if (ended == ended_.end() || odds_.store.remembered_ends == 0) return unknown;
  // Where room is scarce it is forgotten.
  Outcomes may = {ended->second};
  if (odds_.few_ids) may.insert(unknown.begin(), unknown.end());
  return may;
}

SessionPtr ReferenceModel::Create(const std::string& name, absl::Duration ttl,
                                  absl::Duration now) {
  auto session = std::make_shared<ModelSession>();
  session->name = name;
  session->ttl = ttl;
  session->used_after = session->used_before = now;
  if (!name.empty()) {
    named_[name] = session;
    ended_.erase(name);
  }
  return session;
}

void ReferenceModel::Delete(const SessionPtr& session) {
  session->deleted = true;
  named_.erase(session->name);
}

Outcomes ReferenceModel::OfAcquire(const ModelSession& session,
                                   const TurnIdentity& identity,
                                   bool within) const {
  if (session.holder == nullptr) return {"OK"};
  Outcomes outcomes;
  // It may have let go already; but not for anybody where a call waits.
  const bool may_be_free = within && session.holder->MayLetGo() &&
                           session.waiter == nullptr &&
                           session.granted == nullptr;
  if (may_be_free) outcomes.insert("OK");
  const TurnIdentity& running = session.holder->request.identity;
  if (!identity.named() || identity.request_id != running.request_id) {
    outcomes.insert("ABORTED SESSION_BUSY");
  } else if (identity.digest != running.digest) {
    outcomes.insert("INVALID_ARGUMENT FIELD_INVALID");
  } else {
    outcomes.insert("WAITS");
  }
  return outcomes;
}

Found ReferenceModel::Lookup(const ModelSession& session,
                             const TurnIdentity& identity) const {
  const Call* const last = session.last.get();
  if (!identity.named() || last == nullptr) return Found::kNew;
  if (last->request.identity.request_id != identity.request_id) {
    const auto& earlier = session.earlier;
    return std::count(earlier.begin(), earlier.end(), identity.request_id) > 0
               ? Found::kEarlier
               : Found::kNew;
  }
  if (last->request.identity.digest != identity.digest) {
    return Found::kOtherRequest;
  }
  if (last->phase != Call::Phase::kEnded) return Found::kBrokenOrFinished;
  // What a drain ended goes on where it is sent again.
  const bool ended = last->finished.has_value() &&
                     last->finished->reason != FinishReason::kServerDrain;
  return ended ? Found::kFinished : Found::kBroken;
}

std::vector<Ids> ReferenceModel::IdsOf(const ModelSession& session,
                                       bool within) const {
  const Call* const holder = session.holder;
  if (holder == nullptr || holder->phase != Call::Phase::kSubmitted) {
    return {session.ids};
  }
  const bool generates = holder->request.kind == TurnKind::kGenerate;
  std::vector<Ids> may;
  may.push_back(generates && holder->Committed() ? holder->context
                                                 : session.ids);
  if (!within) return may;
  if (generates && !ReasonToStop(*holder).has_value()) {
    Ids more = holder->context;
    more.push_back(NextToken(*holder));
    may.push_back(std::move(more));
  } else if (holder->request.kind == TurnKind::kAppend) {
    may.push_back(holder->context);
  }
  return may;
}

std::vector<Ids> ReferenceModel::IdsLeft(const ModelSession& session) const {
  std::vector<Ids> may = IdsOf(session, /*within=*/false);
  const Call* const holder = session.holder;
  if (holder != nullptr && holder->phase == Call::Phase::kSubmitted &&
      holder->request.kind == TurnKind::kAppend) {
    may.push_back(holder->context);
  }
  return may;
}

void ReferenceModel::Acquired(const SessionPtr& session, Call& call,
                              const Ids& ids, absl::Duration since,
                              absl::Duration now) {
  if (session->holder != nullptr) Released(*session->holder, ids, since, now);
  session->holder = &call;
  session->waiter = session->waiter == &call ? nullptr : session->waiter;
  session->granted = nullptr;
  call.session = session;
  call.before = session->ids;
}

void ReferenceModel::Released(Call& call, const Ids& ids, absl::Duration since,
                              absl::Duration now) {
  ModelSession& session = *call.session;
  call.released = true;
  session.holder = nullptr;
  session.used_after = since;
  session.used_before = now;
  // What an APPEND did shows in the ids only.
  const bool appended =
      call.request.kind == TurnKind::kAppend && ids.size() > session.ids.size();
  if (call.request.kind == TurnKind::kAppend && !call.finished.has_value()) {
    call.must_finish = appended;
  }
  if (appended || call.Committed()) {
    const Call* const last = session.last.get();
    if (last != nullptr && last->named() &&
        last->request.identity.request_id != call.request.identity.request_id) {
      session.earlier.push_back(last->request.identity.request_id);
    }
    session.last = call.shared_from_this();
  }
  session.ids = ids;
}

int32_t ReferenceModel::NextToken(const Call& call) const {
  Ids banned;
  if (static_cast<int>(call.tokens.size()) < call.request.min_tokens) {
    banned = call.request.stop_ids;
    banned.insert(banned.end(), call.request.end_ids.begin(),
                  call.request.end_ids.end());
  }
  return runner_->NextToken(call.context, banned);
}

float ReferenceModel::LogProb(const Ids& context, int32_t id) const {
  return runner_->LogProbs(context).at(static_cast<size_t>(id));
}

std::optional<FinishReason> ReferenceModel::ReasonToStop(
    const Call& call) const {
  if (call.tokens.empty()) return std::nullopt;
  const int32_t newest = call.tokens.back().token_id;
  if (Contains(call.request.end_ids, newest)) return FinishReason::kEndToken;
  if (Contains(call.request.stop_ids, newest)) return FinishReason::kStopToken;
  if (static_cast<int>(call.tokens.size()) >= call.request.max_tokens) {
    return FinishReason::kMaxTokens;
  }
  return std::nullopt;
}

Ids ReferenceModel::IdsAfter(const Call& call, bool finished) const {
  switch (call.request.kind) {
    case TurnKind::kGenerate:
      return call.Committed() ? call.context : call.session->ids;
    case TurnKind::kAppend:
      return finished ? call.context : call.session->ids;
    case TurnKind::kScore:
    case TurnKind::kAlternatives:
    case TurnKind::kSave:
      break;
  }
  return call.session->ids;
}

}  // namespace txl::simulation
