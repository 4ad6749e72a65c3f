#include "client/fleet/cell.h"

#include <algorithm>
#include <cmath>

#include "client/fleet/placement.h"

namespace txl::fleet {
namespace {

int64_t AtLeastOne(int64_t count) { return std::max<int64_t>(1, count); }

}  // namespace

Cell::Cell(const CellOptions* options)
    : options_(*options),
      random_({options->seed}),
      sessions_(&options->mix, options->images.on, &random_),
      shards_(static_cast<size_t>(options->store.shards),
              StoreShard<Command>(&options->store.costs)),
      link_(options->images.bytes_per_second) {
  for (int32_t i = 0; i < options->servers; ++i) {
    servers_.emplace_back(&options_.server);
  }
}

Figures Cell::Run() {
  Warm();
  events_.Add(options_.warmup_seconds, {Kind::kMeasure});
  const std::vector<Failure>& failures = options_.recovery.failures;
  for (size_t i = 0; i < failures.size(); ++i) {
    events_.Add(failures[i].at_seconds,
                {Kind::kFailure, static_cast<int32_t>(i)});
  }
  events_.Add(0, {Kind::kConversation});
  const double upkeep = options_.store.upkeep_seconds;
  for (int32_t i = 0; upkeep > 0 && i < options_.servers; ++i) {
    events_.Add(upkeep * i / options_.servers, {Kind::kLook, i});
  }
  const double end = options_.warmup_seconds + options_.seconds;
  while (!events_.empty() && events_.next_time() <= end) {
    const auto event = events_.Pop();
    now_ = event.time;
    Happen(event.what);
  }
  now_ = end;
  Finish();
  return figures_;
}

void Cell::Happen(const What& what) {
  const auto current = [&] { return turns_[what.index].stamp == what.stamp; };
  switch (what.kind) {
    case Kind::kConversation:
      return BeginConversation();
    case Kind::kDue:
      return BeginTurn(what.index);
    case Kind::kCall:
      if (current()) Call(what.index);
      return;
    case Kind::kMoved:
      if (current()) Moved(what.index);
      return;
    case Kind::kCompany:
      if (servers_[what.index].version == what.stamp) EndFirst(what.index);
      return;
    case Kind::kRound:
      return EndRound(what.index);
    case Kind::kFailure:
      return Fail(options_.recovery.failures[what.index]);
    case Kind::kReturn:
      servers_[what.index].up = true;
      return;
    case Kind::kKeep:
      if (current()) Keep(what.index);
      return;
    case Kind::kLook:
      return LookForExpired(what.index);
    case Kind::kMeasure:
      return Measure();
  }
}

void Cell::BeginConversation() {
  const TurnMix& mix = options_.mix;
  events_.Add(now_ + random_.Exponential() / mix.conversations_per_second,
              {Kind::kConversation});
  const std::optional<uint64_t> session = sessions_.Take();
  if (!session) {
    figures_.conversations_refused += measuring_ ? 1 : 0;
    return;
  }
  if (free_turns_.empty()) {
    free_turns_.push_back(static_cast<int32_t>(turns_.size()));
    turns_.emplace_back();
  }
  const int32_t index = free_turns_.back();
  free_turns_.pop_back();
  turns_[index].session = *session;
  turns_[index].turns_left = AtLeastOne(mix.turns.DrawCount(random_));
  BeginTurn(index);
}

void Cell::BeginTurn(int32_t index) {
  const Turn last = turns_[index];
  Turn& turn = turns_[index] = Turn{};
  turn.session = last.session;
  turn.turns_left = last.turns_left - 1;
  turn.stamp = last.stamp + 1;
  turn.due = now_;
  turn.prompt = AtLeastOne(options_.mix.prompt_tokens.DrawCount(random_));
  turn.answer = AtLeastOne(options_.mix.answer_tokens.DrawCount(random_));
  ++in_flight_;
  figures_.turns_due += measuring_ ? 1 : 0;
  Call(index);
}

void Cell::Call(int32_t index) {
  Turn& turn = turns_[index];
  Session& session = sessions_.Of(turn.session);
  turn.state = State::kCalling;
  turn.server = PlaceTurn(
      turn.session, session.server, options_.servers, [&](int32_t server) {
        return servers_[server].up || now_ < servers_[server].missed_at;
      });
  if (turn.server < 0 || !servers_[turn.server].up) {
    figures_.failed_attempts += measuring_ ? 1 : 0;
    turn.server = -1;
    return CallAgain(index, now_);
  }
  session.server = turn.server;
  turn.failures = 0;
  turn.state = State::kAcquire;
  Send(index, /*awaited=*/true, 0);
}

// Waits are as client/retry_policy.h has them.
void Cell::CallAgain(int32_t index, double not_before) {
  const Recovery& recovery = options_.recovery;
  Turn& turn = turns_[index];
  const double wait =
      std::min(recovery.max_retry_seconds,
               recovery.first_retry_seconds * std::exp2(turn.failures));
  turn.failures = std::min(turn.failures + 1, 30);
  events_.Add(not_before + wait * (1 - random_.Uniform() / 2),
              {Kind::kCall, index, turn.stamp});
}

// A command that tells the store of so many tokens.
void Cell::Send(int32_t index, bool awaited, int64_t tokens) {
  Turn& turn = turns_[index];
  turn.unsaved = 0;
  turn.told_at = now_;
  SendTo(static_cast<int32_t>(Mix(~turn.session) % shards_.size()),
         {index, turn.stamp, awaited}, tokens);
}

void Cell::SendTo(int32_t shard, const Command& command, int64_t tokens) {
  if (measuring_) {
    figures_.store_bytes +=
        options_.store.command_bytes +
        options_.store.token_bytes * static_cast<double>(tokens);
  }
  if (shards_[shard].Send(command, now_)) {
    events_.Add(shards_[shard].round_end(), {Kind::kRound, shard});
  }
}

// The turn is still its server's, whatever it waits for.
void Cell::Keep(int32_t index) {
  const double upkeep = options_.store.upkeep_seconds;
  if (now_ >= turns_[index].told_at + upkeep) {
    Send(index, /*awaited=*/false, turns_[index].unsaved);
  }
  events_.Add(turns_[index].told_at + upkeep,
              {Kind::kKeep, index, turns_[index].stamp});
}

void Cell::LookForExpired(int32_t server) {
  events_.Add(now_ + options_.store.upkeep_seconds, {Kind::kLook, server});
  if (!servers_[server].up) return;
  for (int32_t shard = 0; shard < options_.store.shards; ++shard) {
    SendTo(shard, Command(), 0);
  }
}

void Cell::EndRound(int32_t index) {
  StoreShard<Command>& shard = shards_[index];
  const std::vector<Command> answered = shard.EndRound();
  if (shard.running()) events_.Add(shard.round_end(), {Kind::kRound, index});
  if (measuring_) figures_.commands += static_cast<int64_t>(answered.size());
  for (const Command& command : answered) {
    if (command.turn < 0) continue;
    const bool current = turns_[command.turn].stamp == command.stamp;
    if (command.awaited && current) Answered(command.turn);
  }
}

void Cell::Answered(int32_t index) {
  Turn& turn = turns_[index];
  // After a failure, too: the store has its end.
  if (turn.sent == turn.answer) return EndTurn(index);
  turn.state = State::kWaiting;
  // The turn begins; its prompt is in this command.
  Send(index, /*awaited=*/false, turn.fed ? 0 : turn.prompt);
  const double upkeep = options_.store.upkeep_seconds;
  if (upkeep > 0) {
    events_.Add(now_ + upkeep, {Kind::kKeep, index, turn.stamp});
  }
  servers_[turn.server].waiting.push_back(index);
  AdmitWaiting(turn.server);
}

void Cell::AdmitWaiting(int32_t index) {
  Server& server = servers_[index];
  while (!server.waiting.empty() && server.HasRoom()) {
    const int32_t turn = server.waiting.front();
    server.waiting.pop_front();
    Enter(turn);
  }
}

void Cell::Enter(int32_t index) {
  Turn& turn = turns_[index];
  const Session& session = sessions_.Of(turn.session);
  const Server::Entrance entrance = servers_[turn.server].Enter(turn.session);
  if (entrance.evicted && options_.images.on) WriteImage(*entrance.evicted);
  CountSlots(+1);
  turn.state = State::kMoving;
  Memory memory = entrance.found;
  double ready = now_;
  double missing = 0;
  if (memory == Memory::kLocalImage) {
    ready += options_.server.local_read_seconds;
  } else if (memory == Memory::kRebuilt) {
    missing = static_cast<double>(session.tokens);
    if (session.image_tokens >= 0) {
      memory = Memory::kSharedImage;
      missing = static_cast<double>(session.tokens - session.image_tokens);
      ready = link_.Transfer(options_.images.bytes, now_) +
              options_.images.read_seconds;
      figures_.image_reads += measuring_ ? 1 : 0;
    }
    missing = std::min(missing, options_.server.rebuild_rows);
  }
  // The last token of a session is always still to be fed.
  turn.rows = std::max(
      1.0, missing + (turn.fed ? 0 : static_cast<double>(turn.prompt)));
  if (measuring_) {
    ++figures_.memories[static_cast<int>(memory)];
    figures_.rebuilt_rows += std::llround(missing);
  }
  events_.Add(ready, {Kind::kMoved, index, turn.stamp});
}

void Cell::Moved(int32_t index) {
  Turn& turn = turns_[index];
  turn.state = State::kPrompt;
  servers_[turn.server].company.AddPrompt(index, turn.rows, now_);
  Plan(turn.server);
}

void Cell::Plan(int32_t index) {
  Server& server = servers_[index];
  const double end = server.company.NextEnd();
  ++server.version;
  if (end == Company::kNever) return;
  events_.Add(std::max(now_, end), {Kind::kCompany, index, server.version});
}

void Cell::EndFirst(int32_t index) {
  const int32_t turn = servers_[index].company.PopNext();
  if (turns_[turn].state == State::kPrompt) {
    FirstToken(turn);
  } else {
    GoOn(turn);
  }
  Plan(index);
}

}  // namespace txl::fleet
