#include "tests/model/cuda/step/sampling_driver.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "model/cuda/step/cuda_bins.h"
#include "model/step/model_step.h"
#include "tests/model/cuda/kernels/sampling_rows.h"
#include "tests/model/sampling/some_kinds.h"

namespace txl {
namespace {

SlotSampling AnySampling(std::mt19937& random, const VocabularyBins& bins,
                         int32_t slot) {
  const cuda::RowToSample any = cuda::AnyRow(random, bins);
  SlotSampling sampling = {slot, any.params, any.recent_ids, any.banned_ids,
                           any.min_position};
  // Some token must be left.
  if (bins.ends.back() < 20 || any.params.follow_kinds) {
    sampling.banned_ids.clear();
  }
  if (any.params.follow_kinds) sampling.params.allowed_token_ids.clear();
  return sampling;
}

// What the oracle keeps of a slot.
struct HostSlot {
  SlotSampling sampling;
  int32_t last = -1;
};

RowResult SampleRow(NextTokenDistribution& distribution, HostSlot& slot,
                    const StepRow& row) {
  RowResult sampled;
  const SlotSampling& how = slot.sampling;
  SampleContext context;
  context.recent_ids = how.recent_ids;
  context.position = row.position + 1;
  if (context.position < how.min_position) context.banned_ids = how.banned_ids;
  const VocabularyBins& bins = distribution.bins();
  const auto token = Sampler(bins, SomeTable(bins.ends.back()))
                         .Sample(distribution, how.params, context);
  slot.last = token.ok() ? *token : -1;
  if (!token.ok()) {
    sampled.status = token.status() == NothingToSample()
                         ? token.status()
                         : NotFinite(row.position);
    return sampled;
  }
  sampled.token_id = *token;
  slot.sampling.recent_ids.push_back(*token);
  return sampled;
}

RowResult RowOnHost(NextTokenDistribution& distribution, HostSlot& slot,
                    const StepRow& row) {
  RowResult sampled;
  if (row.kind == RowKind::kDecode) {
    sampled = SampleRow(distribution, slot, row);
    if (!sampled.status.ok()) return sampled;
  } else {
    sampled.token_id = row.score_target;
  }
  sampled.logprob = LogprobOf(distribution, sampled.token_id);
  sampled.top_logprobs = TopLogprobs(distribution, row.top_logprobs);
  if (row.logprob_ids != nullptr) {
    AppendLogprobs(distribution, *row.logprob_ids, sampled.top_logprobs);
  }
  return sampled;
}

// Rows of one slot as the plain step takes them.
struct HostSegment {
  int32_t slot;
  int64_t position;
  std::vector<int32_t> tokens, outputs, ticks;
};

std::vector<HostSegment> SegmentsOf(const std::vector<StepRow>& rows,
                                    std::map<int32_t, HostSlot>& slots) {
  std::vector<HostSegment> segments;
  for (const StepRow& row : rows) {
    if (segments.empty() || segments.back().slot != row.slot) {
      segments.push_back({row.slot, row.position, {}, {}, {}});
    }
    HostSegment& segment = segments.back();
    if (HasOutput(row.kind)) {
      segment.outputs.push_back(static_cast<int32_t>(segment.tokens.size()));
    }
    segment.tokens.push_back(row.token_id == kLastSampled ? slots[row.slot].last
                                                          : row.token_id);
    segment.ticks.push_back(row.ticks);
  }
  return segments;
}

std::vector<RowResult> StepOnHost(ModelStep& step,
                                  const std::vector<StepRow>& rows,
                                  std::map<int32_t, HostSlot>& slots) {
  const std::vector<HostSegment> segments = SegmentsOf(rows, slots);
  std::vector<StepSegment> views;
  for (const HostSegment& segment : segments) {
    views.push_back({segment.slot, segment.position, segment.tokens,
                     segment.outputs, segment.ticks});
  }
  const auto distributions = step.Run(views);
  std::vector<RowResult> sampled;
  size_t wanted = 0;
  for (const StepRow& row : rows) {
    if (!HasOutput(row.kind)) {
      sampled.emplace_back();
    } else {
      sampled.push_back(
          RowOnHost(*distributions[wanted++], slots[row.slot], row));
    }
  }
  return sampled;
}

// Sessions on their way through a script.
class Sessions {
 public:
  Sessions(const RandomCase& model, int32_t count, uint32_t seed)
      : model_(model), random_(seed), positions_(count), samples_(count) {}

  bool OneIn(int n) { return random_() % n == 0; }
  std::mt19937& random() { return random_; }

  // A prompt, of which rows are scored and the last one samples at times; or
  // the token that was sampled last.
  void AddRows(int32_t slot, int64_t room, std::vector<StepRow>& rows) {
    const bool goes_on = samples_[slot] && !OneIn(4);
    const int64_t count = goes_on ? 1 + random_() % 2 : 1 + random_() % 7;
    for (int64_t i = 0; i < std::min(count, room); ++i) {
      StepRow row;
      row.slot = slot;
      row.position = positions_[slot]++;
      row.ticks = static_cast<int32_t>(7 * row.position % 100);
      row.token_id = goes_on && i == 0 ? kLastSampled : AnyToken();
      if (OneIn(3)) row.kind = RowKind::kScore;
      if (i + 1 == std::min(count, room) && !OneIn(4)) {
        row.kind = RowKind::kDecode;
      }
      samples_[slot] = row.kind == RowKind::kDecode;
      if (row.kind == RowKind::kScore) row.score_target = AnyToken();
      const bool has_top = HasOutput(row.kind) && OneIn(6);
      if (has_top) row.top_logprobs = 1 + static_cast<int>(random_() % 20);
      if (HasOutput(row.kind) && OneIn(6)) {
        row.logprob_ids = std::make_shared<const std::vector<int32_t>>(
            std::vector<int32_t>{AnyToken(), AnyToken()});
      }
      rows.push_back(row);
    }
  }
  // What was sampled before is forgotten.
  void Forget(int32_t slot) { samples_[slot] = false; }

 private:
  int32_t AnyToken() {
    return static_cast<int32_t>(random_() % model_.config.vocab_size);
  }

  const RandomCase& model_;
  std::mt19937 random_;
  std::vector<int64_t> positions_;
  std::vector<bool> samples_;  // the last row did
};

}  // namespace

Script RandomScript(const RandomCase& model, int32_t sessions, int steps,
                    int64_t max_rows, uint32_t seed) {
  Sessions all(model, sessions, seed);
  const VocabularyBins bins = BinsOf(model.config);
  Script script(steps);
  for (int i = 0; i < steps; ++i) {
    std::vector<int32_t> order(sessions);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), all.random());
    for (const int32_t slot : order) {
      const int64_t room =
          max_rows - static_cast<int64_t>(script[i].rows.size());
      if (room == 0 || (all.OneIn(3) && !script[i].rows.empty())) continue;
      if (i == 0 || all.OneIn(8)) {
        script[i].configured.push_back(AnySampling(all.random(), bins, slot));
        all.Forget(slot);
      }
      all.AddRows(slot, room, script[i].rows);
    }
  }
  return script;
}

std::vector<SampledRows> RunScript(SamplingStep& step, const Script& script,
                                   int in_flight) {
  std::vector<std::unique_ptr<QueuedStep>> queued;
  std::vector<SampledRows> results;
  for (size_t i = 0; i < script.size(); ++i) {
    for (const SlotSampling& sampling : script[i].configured) {
      EXPECT_TRUE(step.CanSample(
          sampling.params, static_cast<int64_t>(sampling.banned_ids.size())));
      step.Configure(sampling.slot, sampling.params, sampling.context());
    }
    queued.push_back(step.Queue(script[i].rows));
    if (static_cast<int>(i) + 1 < in_flight) continue;
    results.push_back(queued[results.size()]->Collect());
  }
  while (results.size() < script.size()) {
    results.push_back(queued[results.size()]->Collect());
  }
  return results;
}

std::vector<std::vector<RowResult>> RunScriptOnHost(ModelStep& step,
                                                    const Script& script) {
  std::map<int32_t, HostSlot> slots;
  std::vector<std::vector<RowResult>> results;
  for (const ScriptedStep& scripted : script) {
    for (const SlotSampling& sampling : scripted.configured) {
      slots[sampling.slot] = {sampling, -1};
    }
    results.push_back(StepOnHost(step, scripted.rows, slots));
  }
  return results;
}

void ExpectSameRows(const std::vector<RowResult>& found,
                    const std::vector<RowResult>& expected, double tolerance,
                    const std::string& where) {
  ASSERT_EQ(found.size(), expected.size()) << where;
  for (size_t r = 0; r < found.size(); ++r) {
    const std::string row = absl::StrCat(where, ", row ", r);
    EXPECT_EQ(found[r].status, expected[r].status) << row;
    EXPECT_EQ(found[r].rejected, expected[r].rejected) << row;
    EXPECT_EQ(found[r].token_id, expected[r].token_id) << row;
    EXPECT_NEAR(found[r].logprob, expected[r].logprob, tolerance) << row;
    ASSERT_EQ(found[r].top_logprobs.size(), expected[r].top_logprobs.size())
        << row;
    for (size_t i = 0; i < found[r].top_logprobs.size(); ++i) {
      const TokenLogprob& a = found[r].top_logprobs[i];
      const TokenLogprob& b = expected[r].top_logprobs[i];
      EXPECT_EQ(a.token_id, b.token_id) << row << ", best word " << i;
      EXPECT_NEAR(a.logprob, b.logprob, tolerance) << row;
    }
  }
}

bool SameSampledRows(const std::vector<SampledRows>& a,
                     const std::vector<SampledRows>& b) {
  const auto same_bits = [](float x, float y) {
    return std::memcmp(&x, &y, sizeof(x)) == 0;
  };
  const auto same_top = [&](const TokenLogprob& x, const TokenLogprob& y) {
    return x.token_id == y.token_id && same_bits(x.logprob, y.logprob);
  };
  const auto same_row = [&](const RowResult& x, const RowResult& y) {
    return x.status == y.status && x.rejected == y.rejected &&
           x.token_id == y.token_id && same_bits(x.logprob, y.logprob) &&
           std::equal(x.top_logprobs.begin(), x.top_logprobs.end(),
                      y.top_logprobs.begin(), y.top_logprobs.end(), same_top);
  };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](const SampledRows& x, const SampledRows& y) {
                      return x.evaluated == y.evaluated &&
                             std::equal(x.rows.begin(), x.rows.end(),
                                        y.rows.begin(), y.rows.end(), same_row);
                    });
}

std::vector<StepRow> ScoringRows(int32_t slot, const std::vector<int32_t>& ids,
                                 int64_t begin, int64_t end) {
  std::vector<StepRow> rows;
  for (int64_t t = begin; t < end; ++t) {
    StepRow row;
    row.slot = slot;
    row.position = t;
    row.token_id = ids[t];
    row.kind = RowKind::kScore;
    row.score_target = ids[t + 1];
    rows.push_back(row);
  }
  return rows;
}

SampledRows RunRows(SamplingStep& step, const std::vector<StepRow>& rows) {
  return step.Queue(rows)->Collect();
}

}  // namespace txl
