#pragma once

// Whether tokens are guessed ahead of streams, and which guesses are worth
// their rows: pure functions.
//
// A sampled token is a function of distribution, parameters, seed and position,
// and on a runner that verifies guesses a row's bits depend on no cut. So a
// stream's next tokens, guessed, can be fed as a prompt is; each row samples,
// and as far as the samples are the guesses they are the tokens that the stream
// would have had one step at a time (speculative decoding, arXiv:2211.17192,
// but exact to the bit, and with guesses from what texts repeat:
// arXiv:2304.04487).

#include <cstdint>

#include "server/scheduler/step_cost.h"

namespace txl {

// The least probability of being accepted with which a guess is worth its row
// among so many streams: what it costs beside what a token costs without it,
// with a margin. 1 or more: none is. REQUIRES: streams >= 1.
double GuessFloor(const StepCost& cost, int64_t streams);
// The same with which it is worth asking a draft for it, whose steps cost
// `draft`.
double DraftFloor(const StepCost& cost, const StepCost& draft, int64_t streams);

// Whether streams do better to wait for a step's tokens, and guess behind them,
// than to be planned one step ahead without knowing them. `gain`: tokens that a
// step's guesses give a stream, the mean over all streams.
bool WorthGuessing(double floor, double gain);

// Most guesses of one stream in a step.
struct GuessRoom {
  int64_t wanted = 0;       // by the settings
  int64_t rows = 0;         // that the step has left
  int64_t spare_rows = 0;   // of a slot, the stream's own row included
  int64_t tokens_left = 0;  // that the turn may sample behind that row's
  int64_t events_left = 0;  // that its sink takes behind that row's
};
int64_t MostGuesses(const GuessRoom& room);

}  // namespace txl
