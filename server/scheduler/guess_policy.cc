#include "server/scheduler/guess_policy.h"

#include <algorithm>

namespace txl {
namespace {

// A guess has to pay so many times its cost: chances and costs are estimates.
constexpr double kMargin = 1.3;
// Where nothing is known: the likely ones show what they cost.
constexpr double kUnknownFloor = 0.5;
// What the step that could have been planned meanwhile is worth.
constexpr double kLeastGain = 0.2;

}  // namespace

double GuessFloor(const StepCost& cost, int64_t streams) {
  if (!cost.known()) return kUnknownFloor;
  const double of_token =
      cost.Seconds(streams, 0) / static_cast<double>(streams);
  if (of_token <= 0) return kUnknownFloor;
  return kMargin * cost.OfGuess() / of_token;
}

double DraftFloor(const StepCost& cost, const StepCost& draft,
                  int64_t streams) {
  const double floor = GuessFloor(cost, streams);
  if (!cost.known() || !draft.known()) return std::max(floor, kUnknownFloor);
  const double of_all = cost.Seconds(streams, 0);
  if (of_all <= 0) return kUnknownFloor;
  return floor + kMargin * draft.Seconds(streams, 0) / of_all;
}

bool WorthGuessing(double floor, double gain) {
  return floor < 1 && gain >= kLeastGain;
}

int64_t MostGuesses(const GuessRoom& room) {
  return std::max<int64_t>(
      std::min({room.wanted, room.rows, room.spare_rows - 1, room.tokens_left,
                room.events_left}),
      0);
}

}  // namespace txl
