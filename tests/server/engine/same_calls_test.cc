// The runner on the native step twice, sampled by a device (a fake that does
// everything as late as it may) and by the host: the same calls, random ones,
// give the same results bit for bit, whoever samples.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <random>
#include <utility>
#include <vector>

#include "tests/model/sampling/some_kinds.h"
#include "tests/server/engine/test_runners.h"

namespace txl {
namespace {

using ::testing::IsEmpty;

constexpr int kSlots = 3;
constexpr int kSteps = 150;

// Two runners that get every call, up to two steps in flight.
class Twins {
 public:
  explicit Twins(const GoldenCase& golden)
      : sampling_(
            MakeTestRunner(RunnerKind::kSampling, golden, WithKinds(golden))),
        host_(MakeTestRunner(RunnerKind::kNative, golden, WithKinds(golden))) {}

  void Submit(const StepPlan& plan) {
    in_flight_.push_back({sampling_->Submit(plan), host_->Submit(plan)});
    if (in_flight_.size() == 2) Collect();
  }
  void Collect() {
    const auto [sampling, host] = in_flight_.front();
    in_flight_.pop_front();
    const auto expected = host_->Collect(host);
    ExpectSameResults(sampling_->Collect(sampling), expected);
    if (!expected.ok()) return;
    for (const RowResult& row : expected->rows) {
      (row.status.ok() ? rows_ok : rows_failed) += 1;
    }
  }
  void CollectAll() {
    while (!in_flight_.empty()) Collect();
  }
  template <typename Call>
  void Both(const Call& call) {
    call(*sampling_);
    call(*host_);
  }
  // Moves a state; each runner its own.
  void Move(int32_t from, int64_t position, int32_t to) {
    auto sampling = sampling_->Export(from, position);
    auto host = host_->Export(from, position);
    StateImage image = sampling.get().value();
    StateImage expected = host.get().value();
    EXPECT_EQ(image.data, expected.data);
    sampling_->Import(to, Shared(std::move(image)));
    host_->Import(to, Shared(std::move(expected)));
  }
  std::vector<std::string> violations() const {
    return sampling_.control->violations();
  }

  int64_t rows_ok = 0, rows_failed = 0;

 private:
  static StepRunnerOptions WithKinds(const GoldenCase& golden) {
    StepRunnerOptions options = SmallOptions();
    options.kinds = SomeTable(golden.config.vocab_size);
    return options;
  }

  TestRunner sampling_, host_;
  std::deque<std::pair<StepId, StepId>> in_flight_;
};

// Random calls. What a session holds is only a position here.
class Caller {
 public:
  Caller(const GoldenCase& golden, Twins* twins)
      : vocabulary_(static_cast<int>(golden.config.vocab_size)),
        twins_(*twins),
        positions_(kSlots),
        has_token_(kSlots) {
    for (int32_t slot = 0; slot < kSlots; ++slot) {
      Clear(slot);
      Configure(slot);
    }
  }

  void Step() {
    const int32_t slot = Below(kSlots);
    switch (Below(12)) {
      case 0:
        Clear(slot);
        break;
      case 1:
        Configure(slot);
        break;
      case 2:
        Copy(slot, (slot + 1) % kSlots);
        break;
      case 3:
        Move(slot, (slot + 2) % kSlots);
        break;
      default:
        break;
    }
    StepPlan plan;
    for (int32_t s = 0; s < kSlots; ++s) AppendRows(s, plan);
    if (!plan.rows.empty()) twins_.Submit(plan);
  }

 private:
  int Below(int bound) {
    return static_cast<int>(random_() % static_cast<uint64_t>(bound));
  }
  int32_t Token() { return Below(vocabulary_); }

  void Clear(int32_t slot) {
    twins_.Both([&](StepRunner& runner) { runner.Clear(slot); });
    Written(slot, 0);
  }
  void Copy(int32_t from, int32_t to) {
    twins_.Both([&](StepRunner& runner) { runner.Copy(from, to); });
    Written(to, positions_[from]);
  }
  void Move(int32_t from, int32_t to) {
    twins_.Move(from, positions_[from], to);
    Written(to, positions_[from]);
  }
  void Written(int32_t slot, int64_t position) {
    positions_[slot] = position;
    has_token_[slot] = false;
  }
  void Configure(int32_t slot) {
    SlotSampling sampling;
    SamplingParams& params = sampling.params;
    params.seed = random_();
    params.temperature = Below(3) == 0 ? 0 : 0.5 + 0.25 * Below(4);
    if (Below(3) == 0) params.top_k = 1 + Below(9);
    if (Below(3) == 0) params.top_p = 0.8;
    if (Below(3) == 0) params.repetition_penalty = 1.3;
    if (Below(3) == 0) params.frequency_penalty = 0.4;
    if (Below(3) == 0) params.logit_bias = {{Token(), 2.5}, {Token(), -100}};
    // More than are banned.
    for (uint64_t i = 0; i < 12 && params.seed % 4 == 0; ++i) {
      params.allowed_token_ids.push_back(
          static_cast<int32_t>((params.seed + 7 * i) % vocabulary_));
    }
    params.follow_kinds = params.seed % 4 == 1;
    params.penalty_window = Below(9);
    for (int i = 1 + Below(8); i > 0; --i) {
      sampling.recent_ids.push_back(Token());
    }
    for (int i = Below(8); i > 0; --i) sampling.banned_ids.push_back(Token());
    sampling.min_position = positions_[slot] + Below(6);
    twins_.Both([&](StepRunner& runner) { runner.Configure(slot, sampling); });
    has_token_[slot] = false;
  }

  // Mostly the token sampled last; now and then where there is none.
  void AppendRows(int32_t slot, StepPlan& plan) {
    if (Below(5) == 0) return;
    const int count = Below(3) > 0 ? 1 : 1 + Below(8);
    const bool feeds_last = Below(8) == 0 || (has_token_[slot] && Below(4) > 0);
    for (int i = 0; i < count; ++i) {
      StepRow row = Row(slot, positions_[slot] + i, RowKind::kPrefill,
                        i == 0 && feeds_last ? kLastSampled : Token());
      if (Below(4) == 0) row.kind = RowKind::kScore;
      if (i + 1 == count && Below(6) > 0) row.kind = RowKind::kDecode;
      row.score_target = Token();
      row.top_logprobs = Below(2) * Below(6);
      plan.rows.push_back(row);
    }
    // Without its input nothing of it runs.
    if (feeds_last && !has_token_[slot]) return;
    positions_[slot] += count;
    if (plan.rows.back().kind == RowKind::kDecode) has_token_[slot] = true;
  }

  const int vocabulary_;
  Twins& twins_;
  std::mt19937_64 random_{5};
  std::vector<int64_t> positions_;
  std::vector<bool> has_token_;
};

class SameCallsTest : public testing::TestWithParam<const char*> {};

TEST_P(SameCallsTest, GiveTheSameResults) {
  const GoldenCase golden = LoadModel(RunnerKind::kSampling, GetParam());
  Twins twins(golden);
  Caller caller(golden, &twins);
  for (int step = 0; step < kSteps; ++step) caller.Step();
  twins.CollectAll();
  EXPECT_THAT(twins.violations(), IsEmpty());
  // The run was what it is meant to be.
  EXPECT_GT(twins.rows_ok, 3 * kSteps);
  EXPECT_GT(twins.rows_failed, 0);
}

// A plain softmax, an adaptive one, a zero start.
INSTANTIATE_TEST_SUITE_P(Models, SameCallsTest,
                         testing::Values("kimi-char", "kimi-adaptive-div2",
                                         "hf-prelnorm-tied-r"),
                         [](const auto& info) {
                           std::string name = info.param;
                           for (char& c : name) c = c == '-' ? '_' : c;
                           return name;
                         });

}  // namespace
}  // namespace txl
