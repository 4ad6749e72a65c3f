#pragma once

// What a seed decides before it begins: how large the server is, what goes
// wrong and how often. Odds differ from seed to seed (as FoundationDB's
// "buggify"), so that some seeds have a fault all the time and others never.

#include <cstdint>
#include <vector>

#include "server/quota/tenant_account.h"
#include "server/scheduler/scheduler_options.h"
#include "server/session/session_store.h"
#include "tests/fakes/fake_step_runner.h"
#include "tests/server/simulation/random.h"

namespace txl::simulation {

// Probabilities at each occasion.
struct FaultOdds {
  double step_fails = 0;
  double step_short = 0;
  double row_not_finite = 0;
  double export_fails = 0;
  double export_late = 0;
  double import_fails = 0;
  double import_late = 0;
  double image_bad = 0;      // an import that fails so
  double interleaved = 0;    // at a point where another thread might run
  double callback_late = 0;  // a lease that was waited for is used later
  double deadline = 0;       // a turn has one
  double slow_reader = 0;
};

// How often the driver does what, relative to each other.
struct OperationWeights {
  int run = 40;
  int create = 4;
  int look = 3;  // get, list
  int remove = 2;
  int generate = 12;
  int append = 5;
  int score = 3;
  int save = 2;
  int retry = 5;
  int other_request = 1;
  int cancel = 2;
  int read = 6;
  int time_passes = 6;
  int long_time_passes = 1;
  int wall_clock = 1;
};

enum class Ending { kAtRest, kDrain, kSchedulerEnds };

struct Odds {
  FakeStepRunnerOptions runner;
  SchedulerOptions scheduler;
  SessionStoreOptions store;
  FaultOdds faults;
  OperationWeights weights;
  int sessions = 1;  // names in use
  int events = 0;
  Ending ending = Ending::kAtRest;
  bool few_parked = false;  // turns may be without a slot
  bool few_sessions = false;
  bool few_ids = false;      // of sessions
  bool few_images = false;   // fit into the budget
  bool few_records = false;  // likewise
  bool priorities = false;   // turns have some
  bool prefixes = false;     // prompts are looked for, and begin alike
  // Of each tenant; none: turns have no accounts.
  std::vector<TenantLimits> tenants;
  // Of the one tenant whose all sessions are.
  SessionLimits keeps;

  // Empty sessions may have to make room.
  bool scarce() const { return few_sessions || few_ids; }
};

Odds DrawOdds(Random& random);

}  // namespace txl::simulation
