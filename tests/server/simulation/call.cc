#include "tests/server/simulation/call.h"

#include <utility>

namespace txl::simulation {

void Call::Started(const TurnStarted& event) {
  observer_->OnStarted(*this, event);
  started = event;
  reader.Add(observer_->Now());
  observer_->InSink();
}

void Call::Token(TokenEvent event) {
  observer_->OnToken(*this, event);
  // An earlier call's tokens are in the session already.
  if (static_cast<int64_t>(tokens.size()) >= resumed) {
    context.push_back(event.token_id);
  }
  tokens.push_back(std::move(event));
  reader.Add(observer_->Now());
  observer_->InSink();
}

void Call::Scored(std::vector<ScoredToken> events) {
  observer_->OnScored(*this, events);
  scored = std::move(events);
  observer_->InSink();
}

void Call::Finished(const TurnFinished& event) {
  observer_->InSink();
  observer_->OnFinished(*this, event);
  finished = event;
  phase = Phase::kEnded;
}

void Call::Failed(const absl::Status& status) {
  observer_->InSink();
  observer_->OnFailed(*this, status);
  failed = status;
  phase = Phase::kEnded;
}

int Call::Unsent() const {
  observer_->InSink();
  return reader.unsent();
}

bool Call::Committed() const {
  switch (request.kind) {
    case TurnKind::kGenerate:
      return static_cast<int64_t>(tokens.size()) > resumed;
    case TurnKind::kAppend:
      return finished.has_value();
    case TurnKind::kScore:
    case TurnKind::kSave:
    case TurnKind::kAlternatives:
      return false;
  }
  return false;
}

}  // namespace txl::simulation
