// Sequence: alternatives that are scored in lanes.

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "server/scheduler/sequence.h"

namespace txl {

void Sequence::OpenLanes(const RunnerInfo& info, int32_t slot) {
  ScoringLanesOptions options;
  const int64_t position = turn_.lease.position();
  options.before =
      turn_.lease.token_ids().Last(std::min(position, info.rebuild_ids));
  options.before.insert(options.before.end(), turn_.input.begin(),
                        turn_.input.end());
  const auto ids = static_cast<int64_t>(options.before.size());
  options.before.erase(
      options.before.begin(),
      options.before.begin() + std::max<int64_t>(ids - info.rebuild_ids, 0));
  options.root = position + static_cast<int64_t>(turn_.input.size()) - 1;
  options.spare_rows = info.spare_rows;
  options.slot = slot;
  lanes_ =
      std::make_unique<ScoringLanes>(&turn_.alternatives, std::move(options));
}

std::vector<ScoredToken> Sequence::TakeLaneScores() {
  std::vector<ScoredToken> scores;
  const auto logprobs = lanes_->TakeLogprobs();
  for (size_t i = 0; i < logprobs.size(); ++i) {
    for (size_t j = 0; j < logprobs[i].size(); ++j) {
      ScoredToken token;
      token.token_id = turn_.alternatives[i][j];
      token.logprob = logprobs[i][j];
      scores.push_back(std::move(token));
    }
  }
  return scores;
}

}  // namespace txl
