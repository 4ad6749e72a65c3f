#include "tests/server/simulation/odds.h"

#include <string>

#include "server/session/session_record.h"

namespace txl::simulation {
namespace {

// Never, seldom, often.
double DrawChance(Random& random, double often) {
  switch (random.Below(4)) {
    case 0:
      return often;
    case 1:
      return often / 8;
    default:
      return 0;
  }
}

FaultOdds DrawFaults(Random& random) {
  FaultOdds odds;
  odds.step_fails = DrawChance(random, 0.1);
  odds.step_short = DrawChance(random, 0.05);
  odds.row_not_finite = DrawChance(random, 0.1);
  odds.export_fails = DrawChance(random, 0.3);
  odds.export_late = DrawChance(random, 0.6);
  odds.import_fails = DrawChance(random, 0.3);
  odds.import_late = DrawChance(random, 0.6);
  odds.image_bad = DrawChance(random, 0.5);
  odds.interleaved = DrawChance(random, 0.12);
  odds.callback_late = DrawChance(random, 0.6);
  odds.deadline = DrawChance(random, 0.3);
  odds.slow_reader = DrawChance(random, 0.7);
  return odds;
}

FakeStepRunnerOptions DrawRunner(Random& random) {
  FakeStepRunnerOptions runner;
  runner.slots = static_cast<int32_t>(random.Between(1, 4));
  runner.spare_rows = random.Between(2, 6);
  runner.max_rows = static_cast<int32_t>(random.Between(1, 12));
  runner.depth = random.Chance(0.7) ? 2 : 1;
  runner.vocab_size = 11;
  runner.mem_len = random.Between(2, 9);
  runner.window = runner.mem_len + 1;
  runner.derives = random.Chance(0.3);
  runner.imports_aside = random.Chance(0.5);
  runner.verifies_guesses = random.Chance(0.5);
  runner.by_position = random.Chance(0.5);
  // Ids of the eleven. Tokens far behind a state count in it.
  if (random.Chance(0.5)) runner.beats = BeatPositions{3, 5, 4, 6, 4, 5};
  return runner;
}

SchedulerOptions DrawScheduler(Random& random) {
  SchedulerOptions options;
  options.max_queued_calls =
      static_cast<int32_t>(random.Chance(0.3) ? random.Between(1, 2) : 64);
  options.max_queued_tokens = random.Chance(0.2) ? random.Between(1, 12) : 1000;
  options.prompt_rows_per_step = static_cast<int32_t>(random.Between(1, 8));
  options.park_events = static_cast<int32_t>(random.Between(2, 5));
  options.slow_reader_limit = absl::Seconds(5);
  options.rate_window = absl::Seconds(8);
  options.least_rate = 0.5;
  options.queue_limit = random.Chance(0.3) ? absl::Seconds(2) : absl::Hours(9);
  options.longest_turn = random.Chance(0.3) ? absl::Seconds(9) : absl::Hours(9);
  if (random.Chance(0.2)) options.min_idle = absl::Seconds(2);
  return options;
}

TenantLimits DrawTenant(Random& random) {
  TenantLimits limits;
  limits.weight = static_cast<double>(random.Between(1, 8)) / 2;
  if (random.Chance(0.2)) limits.turns = random.Between(1, 3);
  if (random.Chance(0.2)) limits.tokens_in_per_minute = random.Between(5, 60);
  if (random.Chance(0.3)) limits.tokens_out_per_minute = random.Between(3, 90);
  if (random.Chance(0.1)) limits.longest_turn = absl::Seconds(7);
  return limits;
}

SessionLimits DrawKept(Random& random) {
  SessionLimits keeps;
  if (random.Chance(0.15)) keeps.sessions = random.Between(1, 3);
  if (random.Chance(0.15)) {
    keeps.bytes =
        random.Between(1, 3) * kSessionRecordBytes + random.Between(0, 500);
  }
  return keeps;
}

void DrawPrefixes(Random& random, Odds& odds) {
  odds.prefixes = random.Chance(0.5);
  if (!odds.prefixes) return;
  odds.scheduler.prefix_cache_bytes = random.Between(600, 6000);
  odds.scheduler.least_prefix_rows = random.Between(1, 3);
}

}  // namespace

Odds DrawOdds(Random& random) {
  Odds odds;
  odds.runner = DrawRunner(random);
  odds.scheduler = DrawScheduler(random);
  odds.faults = DrawFaults(random);
  odds.sessions = static_cast<int>(random.Between(1, 6));
  odds.events = static_cast<int>(random.Between(30, 90));

  SessionStoreOptions& store = odds.store;
  store.default_ttl = absl::Hours(1);
  odds.few_sessions = random.Chance(0.2);
  store.max_sessions = odds.few_sessions ? random.Between(1, 4) : 100;
  if (random.Chance(0.3)) store.temporary_reserve = 0.4;
  odds.few_ids = random.Chance(0.15);
  if (odds.few_ids) store.id_bytes = random.Between(2'000, 12'000);
  if (random.Chance(0.15)) store.max_session_tokens = random.Between(4, 40);
  odds.few_parked = random.Chance(0.1);
  if (odds.few_parked) {
    odds.scheduler.max_parked_turns = static_cast<int32_t>(random.Below(2));
  }
  odds.few_images = random.Chance(0.15);
  if (odds.few_images) {
    store.image_bytes = random.Between(0, 8 * odds.runner.mem_len);
  }
  odds.few_records = random.Chance(0.15);
  if (odds.few_records) store.turn_record_bytes = random.Between(0, 2000);
  store.remembered_ends = random.Chance(0.2) ? 0 : 1000;
  store.bytes_per_slot = 4 * odds.runner.mem_len;

  odds.priorities = random.Chance(0.4);
  if (random.Chance(0.5)) {
    odds.tenants.resize(static_cast<size_t>(random.Between(1, 4)));
    for (TenantLimits& limits : odds.tenants) limits = DrawTenant(random);
  }

  odds.keeps = DrawKept(random);
  store.limits_of = [keeps = odds.keeps](const std::string&) { return keeps; };

  // Some seeds hardly do anything but retry, or delete, or wait.
  OperationWeights& weights = odds.weights;
  if (random.Chance(0.3)) weights.retry = 25;
  if (random.Chance(0.2)) weights.remove = 8;
  if (random.Chance(0.2)) weights.long_time_passes = 5;
  if (random.Chance(0.2)) weights.run = 15;
  if (random.Chance(0.2)) weights.cancel = 8;
  switch (random.Below(8)) {
    case 0:
      odds.ending = Ending::kDrain;
      break;
    case 1:
      odds.ending = Ending::kSchedulerEnds;
      break;
    default:
      break;
  }
  DrawPrefixes(random, odds);
  return odds;
}

}  // namespace txl::simulation
