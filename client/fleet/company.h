#pragma once

// The turns that share a server's steps, in time that runs without them.
//
// In every step each stream gets a token, and the prompt with the fewest rows
// left gets what a step may take of prompts (as server/scheduler/batch_policy
// has it; the share of the oldest prompt is left out). Between two changes of
// the company all steps take the same time, so that nothing has to be
// simulated but the changes: a stream ends when so many steps have gone by.
// Rows and steps are not rounded to whole ones.

#include <cstdint>
#include <limits>
#include <map>
#include <queue>
#include <vector>

#include "client/fleet/step_costs.h"

namespace txl::fleet {

struct DeviceCosts {
  StepCosts steps;
  double prompt_row_seconds = 0;    // of each row of a prompt, > 0
  double prompt_rows_per_step = 1;  // at least 1
};

// Times in seconds of one clock, never going back. Not thread-safe.
class Company {
 public:
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  explicit Company(const DeviceCosts* costs) : costs_(costs) {}

  // A turn that has so many rows to be fed, or so many tokens to come until
  // somebody wants to hear of it. REQUIRES: > 0.
  void AddPrompt(int32_t turn, double rows, double now);
  void AddStream(int32_t turn, double tokens, double now);
  // Everybody goes.
  void Clear(double now);

  // When the first turn has all that it was added for; kNever: no turn.
  double NextEnd() const;
  // That turn, which is no more in the company. REQUIRES: there is one.
  int32_t PopNext();

  int64_t prompts() const { return static_cast<int64_t>(prompts_.size()); }
  int64_t streams() const { return static_cast<int64_t>(streams_.size()); }
  // Of the present company; 0 without one.
  double StepSeconds() const;
  // In which a step ran. REQUIRES: `now` is not behind NextEnd().
  double BusySeconds(double now) const;

 private:
  struct Stream {
    double end = 0;  // in steps
    int64_t order = 0;
    int32_t turn = 0;
    bool operator>(const Stream& other) const {
      return end != other.end ? end > other.end : order > other.order;
    }
  };

  double RowsOfStep() const;
  void Advance(double now);

  const DeviceCosts* costs_;
  double now_ = 0;
  double steps_ = 0;  // so far
  double busy_seconds_ = 0;
  int64_t added_ = 0;
  std::priority_queue<Stream, std::vector<Stream>, std::greater<>> streams_;
  std::multimap<double, int32_t> prompts_;  // by the rows left
};

}  // namespace txl::fleet
