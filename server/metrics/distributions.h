#pragma once

// Every histogram of the server, with its bounds. Seconds are differences of
// Clock::Monotonic. Bounds of requests and tokens are those of OpenTelemetry's
// conventions for generative models, with finer ones in front because a step
// may take less than 10 ms, and 0.2 s and 2 s for the first token, where
// objectives usually stand.

#include <array>

#include "server/metrics/histogram.h"

namespace txl {

inline constexpr std::array kFirstTokenBounds = {
    .0005, .001, .002, .003, .005, .0075, .01, .02, .04, .06, .08,
    .1,    .2,   .25,  .5,   .75,  1.,    2.,  2.5, 5.,  7.5, 10.};
inline constexpr std::array kTokenBounds = {
    .0005, .001, .002, .003, .005, .0075, .01, .025, .05, .075,
    .1,    .15,  .2,   .3,   .4,   .5,    .75, 1.,   2.5};
inline constexpr std::array kRequestBounds = {
    .0005, .001, .002, .003, .005, .0075, .01,   .02,   .04,   .08,
    .16,   .32,  .64,  1.28, 2.56, 5.12,  10.24, 20.48, 40.96, 81.92};
// A small model's step takes less than half a millisecond.
inline constexpr std::array kStepBounds = {
    .0001, .00025, .0005, .001, .002, .003, .005, .0075, .01, .025, .05,
    .075,  .1,     .15,   .2,   .3,   .4,   .5,   .75,   1.,  2.5};
inline constexpr std::array kIdleBounds = {
    .1, 1., 5., 15., 60., 300., 900., 3600., 14400., 86400., 604800.};
// A disk syncs within a tenth of a millisecond (its own memory) to seconds (a
// busy one).
inline constexpr std::array kCommitBounds = {
    .0001, .00025, .0005, .001, .0025, .005, .01, .025,
    .05,   .1,     .25,   .5,   1.,    2.5,  5.,  10.};
// Numbers of tokens, rows and turns.
inline constexpr std::array kSizeBounds = {
    1.,   2.,    4.,    8.,    16.,   32.,    64.,    128.,  256.,
    512., 1024., 2048., 4096., 8192., 16384., 32768., 65536.};

// What stood in a step.
enum class StepKind {
  kDecode,  // running streams only
  kPrompt,  // prompts, input to score or restored states only
  kMixed,   // both
};
inline constexpr int kStepKinds = 3;

struct Distributions {
  // Turns. Queue: those that have left it, to run or because they ended.
  // Request: all that have ended, from submission on.
  Histogram queue_seconds{kRequestBounds};
  Histogram request_seconds{kRequestBounds};
  Histogram prompt_tokens{kSizeBounds};     // of turns that have ended
  Histogram generated_tokens{kSizeBounds};  // of GENERATE turns that have ended
  Histogram cancel_to_release_seconds{kFirstTokenBounds};

  // Tokens handed to streams: each is in one of the first two.
  Histogram first_token_seconds{kFirstTokenBounds};  // since submission
  Histogram inter_token_seconds{kTokenBounds};
  // Mean over a GENERATE turn of two tokens or more.
  Histogram time_per_output_token_seconds{kTokenBounds};
  Histogram stall_seconds{kRequestBounds};  // a stream was parked

  // Steps; the time is the device's and only of those that did not fail.
  std::array<Histogram, kStepKinds> step_seconds = {
      Histogram(kStepBounds), Histogram(kStepBounds), Histogram(kStepBounds)};
  Histogram step_batch_size{kSizeBounds};  // turns
  Histogram step_tokens{kSizeBounds};      // rows through the layers

  // Sessions.
  Histogram restore_seconds{kRequestBounds};         // image -> slot
  Histogram idle_before_evict_seconds{kIdleBounds};  // slot -> image
};

}  // namespace txl
