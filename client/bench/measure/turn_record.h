#pragma once

// What became of one turn.

#include <cstdint>
#include <string>
#include <vector>

namespace txl::bench {

// Time as the load test counts it.

// Nanoseconds of a clock that never goes back.
using Nanos = int64_t;

constexpr Nanos kNanosPerSecond = 1'000'000'000;

constexpr double ToSeconds(Nanos time) {
  return static_cast<double>(time) / static_cast<double>(kNanosPerSecond);
}
// Rounded to the nearest. REQUIRES: less than 290 years.
constexpr Nanos FromSeconds(double seconds) {
  const double nanos = seconds * static_cast<double>(kNanosPerSecond);
  return static_cast<Nanos>(nanos + (nanos < 0 ? -0.5 : 0.5));
}

enum class Outcome {
  kOk,          // it came to its own end
  kCancelled,   // by its client, as planned
  kRejected,    // RESOURCE_EXHAUSTED or UNAVAILABLE before the first token
  kFailed,      // any other error
  kIncomplete,  // it still ran when the run was over
  kNotSent,     // it was due while too many turns ran
};

// "ok", "cancelled", "rejected", "failed", "incomplete", "not_sent".
const char* OutcomeName(Outcome outcome);

// Times in nanoseconds since the run's start.
struct TurnRecord {
  int64_t conversation = 0;
  int64_t turn = 0;
  // When it was due: by the schedule in an open loop, after its think time in a
  // conversation, else when its stream was free.
  Nanos scheduled = 0;
  Nanos sent = -1;            // when its first call was started; -1: not yet
  Nanos first_token = 0;      // of a turn with tokens
  Nanos last_token = 0;       // the same
  Nanos end = 0;              // when its status came
  Nanos longest_gap = 0;      // between tokens
  int64_t tokens = 0;         // received
  int64_t prompt_tokens = 0;  // as Started tells; 0 without it
  Outcome outcome = Outcome::kOk;
  bool slow_reader = false;
  bool cancels = false;      // its client meant to cancel it
  std::string status = "";   // "OK", "RESOURCE_EXHAUSTED (QUEUE_FULL)", ...
  std::string error = "";    // what was said of a refusal or a failure
  std::string problem = "";  // what was wrong with the stream; empty: nothing

  // Whether its times tell of the server: not of a client that reads slowly.
  bool ordinary() const { return !slow_reader && !cancels; }
  Nanos ToFirstToken() const { return first_token - scheduled; }
  Nanos ToEnd() const { return end - scheduled; }
  // Mean time between its tokens; 0 with fewer than two.
  Nanos PerToken() const {
    return tokens < 2 ? 0 : (last_token - first_token) / (tokens - 1);
  }
};

// How many tokens came when.

// Not thread-safe.
class Timeline {
 public:
  static constexpr Nanos kBin = kNanosPerSecond / 100;

  // `time` since the run's start; earlier ones count as 0.
  void Add(Nanos time, int64_t tokens);
  void Merge(const Timeline& other);

  // Tokens of [i, i + 1) times kBin, from the run's start to the last token.
  const std::vector<int64_t>& bins() const { return bins_; }
  // Tokens of the bins that begin within [from, to).
  int64_t Between(Nanos from, Nanos to) const;

 private:
  std::vector<int64_t> bins_;
};

}  // namespace txl::bench
