#include "client/bench/run/server_counters.h"

namespace txl::bench {

ServerCounters CountersOf(const v1::GetServerStatusResponse& status) {
  ServerCounters counters;
  for (const auto& [name, count] : status.turns_finished()) {
    counters.turns_ended += count;
    if (name == "OK") counters.turns_ended_ok = count;
  }
  counters.tokens_delivered = status.tokens_delivered();
  return counters;
}

const char* VerdictName(ServerCheck::Verdict verdict) {
  switch (verdict) {
    case ServerCheck::Verdict::kEqual:
      return "equal";
    case ServerCheck::Verdict::kConsistent:
      return "consistent";
    case ServerCheck::Verdict::kUnequal:
      return "unequal";
    case ServerCheck::Verdict::kNotComparable:
      return "not comparable";
  }
  return "";
}

ServerCheck CompareCounters(const ServerCounters& before,
                            const ServerCounters& after,
                            const DriverResult& run) {
  ServerCheck check;
  check.server_turns = after.turns_ended_ok - before.turns_ended_ok;
  check.server_tokens = after.tokens_delivered - before.tokens_delivered;
  int64_t not_ok = 0;
  int64_t called = 0;
  for (const TurnRecord& turn : run.turns) {
    const bool ok = turn.status == "OK";
    check.own_turns += ok;
    check.own_tokens += turn.tokens;
    called += turn.outcome != Outcome::kNotSent;
    // A call that was refused never had a token.
    not_ok += !ok && turn.outcome != Outcome::kNotSent &&
              turn.outcome != Outcome::kRejected;
  }
  // A cancel that comes too late ends OK at the server, so that with cancels
  // only the number of all turns can tell who else was there.
  const int64_t server_ended = after.turns_ended - before.turns_ended;
  const bool alone = not_ok == 0 ? check.server_turns == check.own_turns
                                 : server_ended <= called;
  if (!alone) {
    check.verdict = ServerCheck::Verdict::kNotComparable;
  } else if (check.server_tokens == check.own_tokens) {
    check.verdict = ServerCheck::Verdict::kEqual;
  } else if (not_ok > 0 && check.server_tokens > check.own_tokens) {
    check.verdict = ServerCheck::Verdict::kConsistent;
  } else {
    check.verdict = ServerCheck::Verdict::kUnequal;
  }
  return check;
}

}  // namespace txl::bench
