#include "tests/client/bench/simulated_target.h"

#include <algorithm>

#include "tests/client/fake_service.h"

namespace txl::bench {

Nanos SimulatedServer::Done(Nanos from, Nanos work) const {
  for (const auto& [start, length] : stalls) {
    if (from >= start + length) continue;
    if (from >= start) from = start + length;
    if (from < start && from + work > start) work += length;
  }
  return from + work;
}

SimulatedTarget::Turn& SimulatedTarget::At(int32_t call) {
  return turns_[call];
}

void SimulatedTarget::Schedule(Nanos at, int32_t call, int64_t turn) {
  timers_.push({at, order_++, call, turn});
}

void SimulatedTarget::StartTurn(int32_t call,
                                const v1::GenerateRequest& request,
                                const TurnOptions& options) {
  Turn& turn = At(call);
  turn = Turn();
  turn.number = number_++;
  turn.tokens = request.stop().max_tokens();
  turn.prompt = request.has_text() ? static_cast<int64_t>(request.text().size())
                                   : request.tokens().ids_size();
  turn.alive = true;
  turn.reading = true;
  turn.session_id = options.session_id;
  turn.position = positions_[turn.session_id];
  requests_.push_back(request);
  if (!turn.session_id.empty() && !sessions_.contains(turn.session_id)) {
    End(call, absl::NotFoundError("no such session"));
  } else if (running_ < server_.slots) {
    Run(call);
  } else if (static_cast<int64_t>(waiting_.size()) < server_.queue) {
    waiting_.push_back(call);
  } else {
    End(call, absl::ResourceExhaustedError("full"));
  }
}

void SimulatedTarget::Run(int32_t call) {
  Turn& turn = At(call);
  turn.running = true;
  most_running_ = std::max(most_running_, ++running_);
  turn.ready.push_back(txl::testing::StartedEvent(turn.position, turn.prompt));
  Schedule(server_.Done(now_, server_.first_token(turn.number)), call,
           turn.number);
  Deliver(call);
}

void SimulatedTarget::NextToken(int32_t call) {
  Turn& turn = At(call);
  turn.ready.push_back(
      txl::testing::TokenEvent(static_cast<int32_t>(turn.sent), 'a'));
  ++turn.sent;
  if (turn.sent < turn.tokens) {
    Schedule(server_.Done(now_, server_.gap(turn.number, turn.sent)), call,
             turn.number);
  } else {
    const int64_t position = turn.position + turn.prompt + turn.tokens;
    if (!turn.session_id.empty()) positions_[turn.session_id] = position;
    turn.ready.push_back(
        txl::testing::FinishedEvent(position, turn.prompt, turn.tokens));
    turn.ended = true;
    Leave(call);
  }
  Deliver(call);
}

void SimulatedTarget::Leave(int32_t call) {
  if (!At(call).running) return;
  At(call).running = false;
  --running_;
  if (!waiting_.empty()) {
    const int32_t next = waiting_.front();
    waiting_.pop_front();
    Run(next);
  }
}

void SimulatedTarget::End(int32_t call, absl::Status status) {
  At(call).alive = false;
  events_.push_back({Event::Kind::kEnd, call, nullptr, std::move(status)});
}

void SimulatedTarget::Deliver(int32_t call) {
  Turn& turn = At(call);
  if (!turn.alive || !turn.reading) return;
  if (!turn.ready.empty()) {
    turn.reading = false;
    responses_.push_back(std::move(turn.ready.front()));
    turn.ready.pop_front();
    events_.push_back({Event::Kind::kResponse, call, nullptr, {}});
  } else if (turn.ended) {
    End(call, absl::OkStatus());
  }
}

void SimulatedTarget::CreateSession(int32_t call, const std::string& id) {
  At(call) = Turn();
  ++sessions_made_;
  sessions_.insert(id);
  Schedule(server_.Done(now_, server_.session_call), call, -1);
}

void SimulatedTarget::DeleteSession(int32_t call, const std::string& id) {
  At(call) = Turn();
  sessions_.erase(id);
  Schedule(server_.Done(now_, server_.session_call), call, -1);
}

void SimulatedTarget::Read(int32_t call) {
  At(call).reading = true;
  Deliver(call);
}

void SimulatedTarget::Cancel(int32_t call) {
  Turn& turn = At(call);
  if (!turn.alive) return;
  waiting_.erase(std::remove(waiting_.begin(), waiting_.end(), call),
                 waiting_.end());
  End(call,
      server_.cancels_come_late ? absl::OkStatus() : absl::CancelledError());
  Leave(call);
}

Event SimulatedTarget::Next(Nanos until) {
  while (events_.empty()) {
    if (timers_.empty() || timers_.top().at > until) {
      now_ = std::max(now_, until);
      return {};
    }
    const Timer timer = timers_.top();
    timers_.pop();
    now_ = std::max(now_, timer.at);
    if (timer.turn < 0) {
      events_.push_back({Event::Kind::kEnd, timer.call, nullptr, {}});
    } else if (At(timer.call).alive && At(timer.call).number == timer.turn) {
      NextToken(timer.call);
    }
  }
  Event event = std::move(events_.front());
  events_.pop_front();
  if (event.kind == Event::Kind::kResponse) {
    response_ = std::move(responses_.front());
    responses_.pop_front();
    event.response = &response_;
  }
  return event;
}

}  // namespace txl::bench
