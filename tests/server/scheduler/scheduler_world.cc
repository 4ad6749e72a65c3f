#include "tests/server/scheduler/scheduler_world.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "tests/server/metrics/conservation.h"

namespace txl {

WorldOptions OneSlot() {
  WorldOptions options;
  options.runner.slots = 1;
  return options;
}

World::World(WorldOptions options) {
  Clock* const clock = options.clock != nullptr ? options.clock : &fake_clock;
  // Ids before those that a state depends on matter too.
  if (options.runner.by_position) options.runner.beats = kFakeBeats;
  runner = std::make_unique<FakeStepRunner>(options.runner);
  store = std::make_unique<SessionStore>(options.store, clock);
  scheduler =
      std::make_unique<Scheduler>(options.scheduler, runner.get(), store.get(),
                                  &metrics, clock, options.thread);
}

Ids World::SomeIds(int count, int salt) {
  Ids ids;
  for (int i = 0; i < count; ++i) ids.push_back((i * 7 + salt * 13 + 3) % 50);
  return ids;
}

void World::CreateSession(const std::string& id) {
  ASSERT_TRUE(
      store->Create(SessionName::OfDefaultTenant(id), std::nullopt).ok());
}

TestTurn World::Submit(const std::string& session, TurnKind kind, Ids input,
                       const std::function<void(Turn&)>& change) {
  auto lease = session.empty()
                   ? store->AcquireTemporary()
                   : store->Acquire(SessionName::OfDefaultTenant(session));
  TestTurn test;
  test.sink = std::make_shared<RecordingSink>();
  test.cancel = std::make_shared<CancelToken>();
  if (!lease.ok()) {
    test.submitted = lease.status();
    return test;
  }
  Turn turn{.kind = kind,
            .lease = *std::move(lease),
            .input = std::move(input),
            .sampling = {},
            .stop = {},
            .identity = {},
            .resumed = nullptr,
            .deadline = std::nullopt,
            .prefix_tenant = "",
            .sink = test.sink,
            .cancel = test.cancel};
  if (change) change(turn);
  test.submitted = scheduler->Submit(std::move(turn));
  sinks_.push_back(test.sink);
  return test;
}

TestTurn World::Generate(const std::string& session, Ids input, int max_tokens,
                         const std::function<void(Turn&)>& change) {
  return Submit(session, TurnKind::kGenerate, std::move(input),
                [&](Turn& turn) {
                  turn.stop.max_tokens = max_tokens;
                  if (change) change(turn);
                });
}

void World::Run() {
  int iterations = 0;
  while (Step()) ASSERT_LT(++iterations, 1'000'000);
}

Ids World::TokensOf(const std::string& session) const {
  auto text =
      store->GetTokens(SessionName::OfDefaultTenant(session), 0, 1'000'000);
  return text.ok() ? text->token_ids : Ids{-1};
}

void World::ExpectHealthy(const std::string& session, int count) {
  const Ids before = TokensOf(session);
  const Ids input = before.empty() ? SomeIds(2) : Ids{};
  Ids ids = before;
  ids.insert(ids.end(), input.begin(), input.end());
  const TestTurn turn = Generate(session, input, count);
  Run();
  EXPECT_EQ(turn.sink->ids(), runner->Continue(ids, count))
      << "session " << session << " of " << before.size()
      << " tokens: " << turn.submitted << " " << turn.sink->failed();
}

void World::ExpectAtRest() {
  EXPECT_TRUE(scheduler->Idle());
  EXPECT_EQ(scheduler->StallTime(), absl::ZeroDuration());
  EXPECT_EQ(runner->violations(), std::vector<std::string>());
  for (const auto& sink : sinks_) {
    EXPECT_EQ(sink->violations(), std::vector<std::string>());
  }
  const Snapshot s = metrics.Get();
  EXPECT_EQ(BrokenLaws(s), std::vector<std::string>());
  EXPECT_EQ(s.turns_active, 0);
  EXPECT_EQ(s.queued_calls, 0);
  EXPECT_EQ(s.queued_tokens, 0);
  EXPECT_EQ(s.turns_parked, 0);
  // Every token that went through the device is booked once.
  int64_t rows = 0;
  for (const StepPlan& plan : runner->plans()) {
    rows += std::count_if(
        plan.rows.begin(), plan.rows.end(),
        [](const StepRow& row) { return row.kind != RowKind::kDerive; });
  }
  EXPECT_EQ(s.rows_run, rows);
  EXPECT_EQ(s.steps, static_cast<int64_t>(runner->plans().size()));
  const SessionStore::Counts counts = store->counts();
  EXPECT_EQ(counts.busy, 0);
  EXPECT_EQ(BrokenLaws(counts), std::vector<std::string>());
  EXPECT_LE(s.slots_used, counts.idle);
  int64_t delivered = 0;
  for (const auto& sink : sinks_) {
    delivered += static_cast<int64_t>(sink->ids().size());
  }
  EXPECT_EQ(s.tokens_delivered, delivered);
  EXPECT_EQ(s.distributions.generated_tokens.sum(), delivered);
  EXPECT_EQ(s.distributions.step_tokens.sum(), rows);
}

void Fill(World& world, int sessions, int count) {
  for (int i = 0; i < sessions; ++i) {
    world.CreateSession(absl::StrCat("s", i));
    world.Submit(absl::StrCat("s", i), TurnKind::kAppend,
                 World::SomeIds(count, i));
    world.Run();
  }
}

void ExpectStaggeredTurns(World& world, int longest) {
  std::vector<TestTurn> turns;
  std::vector<Ids> expected;
  for (int i = 0; i < 64; ++i) {
    const Ids prompt = World::SomeIds(1 + (i * 11) % 60, i);
    const int count = 1 + (i * 5) % longest;
    turns.push_back(world.Generate("", prompt, count));
    expected.push_back(world.runner->Continue(prompt, count));
    for (int step = 0; step < i % 4; ++step) world.Step();
  }
  world.Run();
  for (size_t i = 0; i < turns.size(); ++i) {
    EXPECT_EQ(turns[i].sink->ids(), expected[i]) << "turn " << i;
  }
}

std::string Outcome(const absl::Status& status) {
  if (status.ok()) return "OK";
  return absl::StrCat(absl::StatusCodeToString(status.code()), " ",
                      GetErrorDetails(status).reason);
}

}  // namespace txl
