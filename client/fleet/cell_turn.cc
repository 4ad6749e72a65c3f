// The stream of a turn, its end, and what failures do to it.

#include <algorithm>
#include <cmath>

#include "client/fleet/cell.h"
#include "client/fleet/placement.h"

namespace txl::fleet {

using bench::FromSeconds;

// The prompt's last step has given the first token. A turn that comes meets a
// step that runs, half over on average, and its own last step is not cut
// short: together one step that Company does not know.
void Cell::FirstToken(int32_t index) {
  Turn& turn = turns_[index];
  const Company& company = servers_[turn.server].company;
  const double seen = now_ + std::max(company.StepSeconds(),
                                      options_.server.device.steps.Seconds(1));
  if (!turn.fed) sessions_.Of(turn.session).tokens += turn.prompt;
  if (measuring_) {
    figures_.prompt_rows += turn.fed ? 0 : turn.prompt;
    if (turn.sent == 0) figures_.first_token.Add(FromSeconds(seen - turn.due));
    if (turn.broken_at >= 0) {
      figures_.takeover.Add(FromSeconds(seen - turn.broken_at));
    }
  }
  turn.fed = true;
  turn.broken_at = -1;
  turn.state = State::kStream;
  turn.stretch = 1;
  GoOn(index);
}

// A stretch of its tokens is out.
void Cell::GoOn(int32_t index) {
  Turn& turn = turns_[index];
  turn.sent += turn.stretch;
  turn.unsaved += turn.stretch;
  sessions_.Of(turn.session).tokens += turn.stretch;
  figures_.tokens += measuring_ ? turn.stretch : 0;
  if (turn.sent == turn.answer) return LastToken(index);
  // The first token is appended with those that follow it.
  if (turn.unsaved > 1) Send(index, /*awaited=*/false, turn.unsaved);
  Company& company = servers_[turn.server].company;
  const double step =
      std::max(company.StepSeconds(), options_.server.device.steps.Seconds(1));
  const double in_time = std::ceil(options_.store.append_seconds / step);
  turn.stretch = std::min<int64_t>(
      {turn.answer - turn.sent, options_.store.append_tokens,
       in_time < 1e9 ? std::llround(in_time) : 1'000'000'000});
  turn.stretch = std::max<int64_t>(1, turn.stretch);
  company.AddStream(index, static_cast<double>(turn.stretch), now_);
}

void Cell::LastToken(int32_t index) {
  Turn& turn = turns_[index];
  turn.state = State::kFinish;
  servers_[turn.server].Leave(turn.session);
  CountSlots(-1);
  const Session& session = sessions_.Of(turn.session);
  const int64_t every = options_.images.snapshot_tokens;
  if (options_.images.on && every > 0 &&
      session.tokens - session.image_tokens >= every) {
    WriteImage(turn.session);
  }
  Send(index, /*awaited=*/true, turn.unsaved);
  AdmitWaiting(turn.server);
}

void Cell::EndTurn(int32_t index) {
  Turn& turn = turns_[index];
  --in_flight_;
  if (measuring_) {
    ++figures_.turns_ended;
    figures_.end_to_end.Add(FromSeconds(now_ - turn.due));
  }
  turn.state = State::kThinking;
  ++turn.stamp;
  if (turn.turns_left > 0) {
    events_.Add(now_ + options_.mix.think_seconds.Draw(random_),
                {Kind::kDue, index});
    return;
  }
  sessions_.Of(turn.session).in_use = false;
  free_turns_.push_back(index);
}

void Cell::WriteImage(uint64_t name) {
  Session& session = sessions_.Of(name);
  if (session.image_tokens == session.tokens) return;
  session.image_tokens = session.tokens;
  link_.Transfer(options_.images.bytes, now_);
  figures_.image_writes += measuring_ ? 1 : 0;
}

void Cell::Fail(const Failure& failure) {
  for (int32_t lost = 0; lost < failure.servers; ++lost) {
    // One that is up, at random: PlaceTurn finds one for any name.
    const int32_t server =
        PlaceTurn(random_.Bits(), -1, options_.servers,
                  [this](int32_t i) { return servers_[i].up; });
    if (server < 0) return;
    LoseServer(server, failure.silent);
    events_.Add(now_ + failure.for_seconds, {Kind::kReturn, server});
  }
}

void Cell::LoseServer(int32_t index, bool silent) {
  const Recovery& recovery = options_.recovery;
  Server& server = servers_[index];
  server.up = false;
  server.missed_at = now_ + recovery.detect_seconds;
  CountSlots(-server.running());
  server.Lose(now_);
  for (size_t i = 0; i < turns_.size(); ++i) {
    Turn& turn = turns_[i];
    if (turn.server != index || turn.state == State::kThinking) continue;
    ++turn.stamp;
    turn.state = State::kCalling;
    turn.server = -1;
    if (turn.broken_at < 0) turn.broken_at = now_;
    figures_.turns_broken += measuring_ ? 1 : 0;
    CallAgain(static_cast<int32_t>(i),
              now_ + (silent ? recovery.stall_seconds : 0));
  }
}

// As if so many conversations had been: which sessions are where, not when.
void Cell::Warm() {
  const TurnMix& mix = options_.mix;
  for (int64_t i = 0; i < options_.warm_conversations; ++i) {
    const std::optional<uint64_t> name = sessions_.Take();
    if (!name) return;
    Session& session = sessions_.Of(*name);
    session.in_use = false;
    session.server = PlaceTurn(*name, session.server, options_.servers,
                               [](int32_t) { return true; });
    const std::optional<uint64_t> evicted =
        servers_[session.server].Warm(*name);
    if (evicted && options_.images.on) {
      Session& other = sessions_.Of(*evicted);
      other.image_tokens = other.tokens;
    }
    const int64_t turns = std::max<int64_t>(1, mix.turns.DrawCount(random_));
    for (int64_t turn = 0; turn < turns; ++turn) {
      session.tokens += mix.prompt_tokens.DrawCount(random_) +
                        mix.answer_tokens.DrawCount(random_);
    }
  }
}

void Cell::CountSlots(int64_t more) {
  slot_seconds_ += static_cast<double>(in_slots_) * (now_ - slots_since_);
  slots_since_ = now_;
  in_slots_ += more;
}

// What rounds and transfers that have begun take later counts as of now.
Cell::Baseline Cell::Totals() {
  Baseline totals;
  CountSlots(0);
  totals.slots = slot_seconds_;
  for (const Server& server : servers_) {
    totals.device += server.company.BusySeconds(now_);
  }
  for (const StoreShard<Command>& shard : shards_) {
    totals.shards += shard.busy_seconds();
  }
  totals.link = link_.busy_seconds();
  return totals;
}

void Cell::Measure() {
  measuring_ = true;
  figures_.turns_at_start = in_flight_;
  baseline_ = Totals();
}

void Cell::Finish() {
  const Baseline totals = Totals();
  figures_.turns_left = in_flight_;
  figures_.cells = 1;
  figures_.seconds = options_.seconds;
  figures_.device_busy_seconds = totals.device - baseline_.device;
  figures_.slot_seconds = totals.slots - baseline_.slots;
  figures_.shard_busy_seconds = totals.shards - baseline_.shards;
  figures_.link_busy_seconds = totals.link - baseline_.link;
  figures_.server_seconds = options_.seconds * options_.servers;
  figures_.shard_seconds = options_.seconds * options_.store.shards;
  figures_.link_seconds = options_.seconds;
}

}  // namespace txl::fleet
