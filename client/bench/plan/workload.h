#pragma once

// What is asked of the server: every turn is a function of the seed and of its
// place in the run, so that two runs ask for the same.

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/bench/plan/distribution.h"
#include "txl/v1/generation_service.pb.h"

namespace txl::bench {

// A prompt of a file: either text or token ids.
struct Prompt {
  std::string text;
  std::vector<uint32_t> tokens;
  int64_t line = 0;  // of the file, from 1
};

// A conversation is a session with one or more turns; one of a single turn
// needs no session. Conversations are numbered from 0 in the order of their
// starts.
struct Workload {
  // Random token ids before each turn, unless `prompts` has some: those then
  // follow each other, from the first again after the last.
  Distribution prompt_tokens = Distribution::Fixed(32);
  std::vector<Prompt> prompts;
  Distribution max_tokens = Distribution::Fixed(128);   // end tokens do not end
  Distribution turns = Distribution::Fixed(1);          // of a conversation
  Distribution think_seconds = Distribution::Fixed(0);  // between its turns
  double cancel_share = 0;  // of the turns that their client cancels midway
  double slow_share = 0;    // of the turns whose client reads slowly
  double temperature = 1;
  int32_t tokens_per_message = 1;  // at most, if the server has more at once
  uint64_t seed = 0;
};

struct TurnPlan {
  v1::GenerateRequest request;  // without session_id
  // The client cancels when it has so many tokens; -1: it does not.
  int64_t cancel_after_tokens = -1;
  bool slow_reader = false;
};

// The prompt of a turn; null: it is random.
const Prompt* PromptOf(const Workload& workload, int64_t conversation,
                       int64_t turn);
// Turns of a conversation, >= 1.
int64_t PlanTurns(const Workload& workload, int64_t conversation);
// Seconds between the end of the turn before and the start of `turn`.
double PlanThinkSeconds(const Workload& workload, int64_t conversation,
                        int64_t turn);
TurnPlan PlanTurn(const Workload& workload, int64_t vocabulary,
                  int64_t conversation, int64_t turn);

// What a user calls fast enough.

// Upper limits in seconds; a turn is good when it ends well within all of them.
struct Limits {
  static constexpr double kNone = std::numeric_limits<double>::infinity();
  double time_to_first_token = kNone;
  double inter_token = kNone;  // of the longest gap of the turn
  double per_token = kNone;    // of the mean gap of the turn
  double end_to_end = kNone;

  bool any() const;
};

// Each as NAME=DURATION with ttft, itl, tpot or e2e and a unit ("ttft=200ms").
// Errors: InvalidArgument for anything else and for a name given twice.
absl::StatusOr<Limits> ParseLimits(const std::vector<std::string>& texts);

// Prompts from a file.

// One prompt a line; empty lines are skipped.
std::vector<Prompt> ParsePromptLines(absl::string_view text);
// One JSON object a line with either "text" or "tokens" (ids); other fields are
// ignored. Errors: InvalidArgument naming the line.
absl::StatusOr<std::vector<Prompt>> ParsePromptObjects(absl::string_view text);

// A file of objects when its name ends in .jsonl, else of lines. Errors: those
// of ParsePromptObjects; InvalidArgument for a file without prompts; NotFound
// for one that cannot be read.
absl::StatusOr<std::vector<Prompt>> ReadPrompts(const std::string& path);

}  // namespace txl::bench
