#pragma once

// The server's own counters beside what a run received.

#include <cstdint>
#include <string>

#include "client/bench/measure/turn_record.h"
#include "client/bench/run/driver.h"
#include "txl/v1/model_service.pb.h"

namespace txl::bench {

struct ServerCounters {
  int64_t turns_ended_ok = 0;
  int64_t turns_ended = 0;  // however
  int64_t tokens_delivered = 0;
};

ServerCounters CountersOf(const v1::GetServerStatusResponse& status);

struct ServerCheck {
  enum class Verdict {
    kEqual,
    // Turns were cut short, and the server handed them more than was read.
    kConsistent,
    // The turns are the same but the tokens are not: tokens were lost or made.
    kUnequal,
    // Somebody else used the server meanwhile, or calls ended unseen.
    kNotComparable,
  };
  Verdict verdict = Verdict::kNotComparable;
  int64_t server_turns = 0;  // that ended OK meanwhile
  int64_t own_turns = 0;     // of this run that ended OK
  int64_t server_tokens = 0;
  int64_t own_tokens = 0;
};

// "equal", "consistent", "unequal", "not comparable".
const char* VerdictName(ServerCheck::Verdict verdict);

// `before` and `after` the run, when none of its turns was left.
ServerCheck CompareCounters(const ServerCounters& before,
                            const ServerCounters& after,
                            const DriverResult& run);

}  // namespace txl::bench
