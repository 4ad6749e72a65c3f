#pragma once

// Records of turns, as a test needs them.

#include "client/bench/measure/turn_record.h"

namespace txl::bench {

// A turn of one token that is due and sent at `scheduled` and ends well after
// `length`.
inline TurnRecord OkTurn(Nanos scheduled, Nanos length) {
  TurnRecord turn = {.scheduled = scheduled, .sent = scheduled};
  turn.first_token = turn.last_token = turn.end = scheduled + length;
  turn.tokens = 1;
  turn.status = "OK";
  return turn;
}

inline TurnRecord Refused(Nanos scheduled) {
  TurnRecord turn;
  turn.scheduled = turn.sent = turn.end = scheduled;
  turn.outcome = Outcome::kRejected;
  turn.status = "RESOURCE_EXHAUSTED (QUEUE_FULL)";
  return turn;
}

}  // namespace txl::bench
