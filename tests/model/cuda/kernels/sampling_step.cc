#include "tests/model/cuda/kernels/sampling_step.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "model/sampling/sampler.h"
#include "tests/model/cuda/device_data.h"
#include "tests/model/sampling/some_kinds.h"

namespace txl::cuda {
namespace {

// log-softmax of random logits, plus `mass`.
std::vector<float> RandomLogSoftmax(std::mt19937& random, int64_t size,
                                    double spread, double grain, double mass) {
  std::normal_distribution<double> normal(0, spread);
  std::vector<double> logits(size);
  double sum = 0;
  for (double& logit : logits) {
    logit = normal(random);
    if (grain > 0) logit = std::round(logit / grain) * grain;
    sum += std::exp(logit);
  }
  std::vector<float> logprobs;
  for (const double logit : logits) {
    logprobs.push_back(static_cast<float>(logit - std::log(sum) + mass));
  }
  return logprobs;
}

// What the CPU's sampler reads.
class KnownRow final : public NextTokenDistribution {
 public:
  KnownRow(const VocabularyBins& bins, const RowToSample& row)
      : bins_(bins), row_(row) {}

  const VocabularyBins& bins() const override { return bins_; }
  absl::Span<const float> Words() override {
    return absl::MakeConstSpan(row_.head).first(bins_.ends[0]);
  }
  double ClusterMass(size_t c) override { return row_.head[bins_.ends[0] + c]; }
  absl::Span<const float> ClusterWords(size_t c) override {
    return row_.clusters[c];
  }
  bool IsEvaluated(size_t) const override { return true; }

 private:
  const VocabularyBins& bins_;
  const RowToSample& row_;
};

// NaN and infinities too.
bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() &&
         (a.empty() ||
          std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

// A step's memory on the device, sized exactly.
class Step {
 public:
  Step(const VocabularyBins& bins, const std::vector<RowToSample>& rows,
       const StepOptions& options);
  std::vector<SampledToken> Run();

 private:
  void SetSlots(const SamplingLimits& limits);
  void SetArgs(const StepOptions& options);
  void HandOverClusters();
  void ExpectNothingChanged() const;
  void ReadSlot(int64_t r, SampledToken& result) const;
  std::vector<SampledToken> Results() const;

  int64_t count() const { return static_cast<int64_t>(rows_.size()); }
  int64_t clusters() const { return static_cast<int64_t>(bins_.clusters()); }
  int64_t head_stride() const { return bins_.ends[0] + clusters() + 3; }
  int64_t stride(int64_t c) const { return bins_.cluster_size(c) + 1; }

  const VocabularyBins& bins_;
  const std::vector<RowToSample>& rows_;
  Stream stream_;
  SamplingArgs args_;
  Array<unsigned char> records_;
  Array<uint8_t> kinds_;
  Array<KindRule> rules_;
  Array<int32_t> slot_, targets_, top_counts_, named_;
  Array<int64_t> position_;
  Array<float> head_;
  std::vector<Array<float>> words_;
  std::vector<std::vector<float>> handed_over_;
  Array<SamplingRowState> states_;
  Array<AdjustedWord> adjusted_;
  Array<int> finished_;
  Array<int32_t> list_rows_, place_, begin_, end_;
  Array<int32_t> tokens_, top_ids_;
  Array<float> logprobs_, top_logprobs_;
  Array<SampleStatus> statuses_;
  std::vector<uint32_t> evaluated_;
};

Step::Step(const VocabularyBins& bins, const std::vector<RowToSample>& rows,
           const StepOptions& options)
    : bins_(bins), rows_(rows), evaluated_(rows.size()) {
  SetSlots(options.limits);
  std::vector<float> head(count() * head_stride(),
                          std::numeric_limits<float>::quiet_NaN());
  for (size_t r = 0; r < rows.size(); ++r) {
    std::copy(rows[r].head.begin(), rows[r].head.end(),
              head.begin() + r * head_stride());
  }
  head_ = ToDevice(head);
  for (int64_t c = 0; c < clusters(); ++c) {
    words_.push_back(Unwritten<float>(count() * stride(c)));
    handed_over_.push_back(ToHost(words_.back()));
  }
  states_ = Unwritten<SamplingRowState>(count());
  adjusted_ = Unwritten<AdjustedWord>(count() * options.limits.total());
  finished_ = ToDevice(std::vector<int>{0});
  list_rows_ = Unwritten<int32_t>(clusters() * count());
  place_ = Unwritten<int32_t>(clusters() * count());
  begin_ = Unwritten<int32_t>(clusters());
  end_ = Unwritten<int32_t>(clusters());
  tokens_ = Unwritten<int32_t>(count());
  logprobs_ = Unwritten<float>(count());
  statuses_ = Unwritten<SampleStatus>(count());
  top_ids_ = Unwritten<int32_t>(count() * kMaxReported);
  top_logprobs_ = Unwritten<float>(count() * kMaxReported);
  SetArgs(options);
}

// Row r has slot count - 1 - r.
void Step::SetSlots(const SamplingLimits& limits) {
  args_.slots.limits = limits;
  std::vector<unsigned char> records(count() * args_.slots.record_bytes(),
                                     0xff);
  args_.slots.records = records.data();
  std::vector<int32_t> slot, targets, top_counts;
  std::vector<int64_t> position;
  bool has_top = false;
  // A column for each of a row's ids, with a row to spare.
  args_.named_stride = count() + 1;
  std::vector<int32_t> named(kMaxNamedIds * args_.named_stride, -1);
  for (const RowToSample& row : rows_) {
    const int32_t index = static_cast<int32_t>(count() - 1 - slot.size());
    SlotContext context;
    context.recent_ids = row.recent_ids;
    context.banned_ids = row.banned_ids;
    context.min_position = row.min_position;
    ASSERT_TRUE(
        SampledOnDevice(row.params, context.banned_ids.size(), bins_, limits));
    FillSamplingSlot(row.params, context, args_.slots, index);
    if (static_cast<int>(row.recent_ids.size()) >= limits.recent) {
      int32_t* ring = args_.slots.recent(index);
      std::rotate(ring, ring + limits.recent - row.forgotten % limits.recent,
                  ring + limits.recent);
      args_.slots.slot(index)->recent_count += row.forgotten;
    }
    slot.push_back(row.is_used ? index : -1);
    targets.push_back(row.target);
    top_counts.push_back(row.top_count);
    has_top |= row.top_count > 0 || !row.named.empty();
    for (size_t i = 0; i < row.named.size(); ++i) {
      named[i * args_.named_stride + slot.size() - 1] = row.named[i];
    }
    position.push_back(row.position - 1);
  }
  records_ = ToDevice(records);
  args_.slots.records = records_.data();
  slot_ = ToDevice(slot);
  targets_ = ToDevice(targets);
  top_counts_ = ToDevice(top_counts);
  named_ = ToDevice(named);
  position_ = ToDevice(position);
  args_.rows = {static_cast<int>(count()), slot_.data(), position_.data()};
  args_.targets = targets_.data();
  args_.top_counts = has_top ? top_counts_.data() : nullptr;
  args_.named = has_top ? named_.data() : nullptr;
}

void Step::SetArgs(const StepOptions& options) {
  const auto kinds = SomeTable(bins_.ends.back());
  kinds_ = ToDevice(kinds->kind_of());
  rules_ = ToDevice(
      std::vector<KindRule>(kinds->rules().begin(), kinds->rules().end()));
  args_.kinds = kinds_.data();
  args_.rules = rules_.data();
  args_.clusters = static_cast<int>(clusters());
  std::copy(bins_.ends.begin(), bins_.ends.end(), args_.ends);
  args_.head = head_.data();
  args_.head_stride = head_stride();
  for (int64_t c = 0; c < clusters(); ++c) {
    args_.words[c] = {words_[c].data(), stride(c)};
  }
  args_.work = {states_.data(), adjusted_.data(), finished_.data()};
  args_.lists = {list_rows_.data(), place_.data(), begin_.data(), end_.data()};
  args_.rounds = options.rounds;
  args_.tokens = tokens_.data();
  args_.logprobs = logprobs_.data();
  args_.statuses = statuses_.data();
  args_.top_ids = top_ids_.data();
  args_.top_logprobs = top_logprobs_.data();
  args_.threads = options.threads;
}

void Step::HandOverClusters() {
  const std::vector<int32_t> begin = ToHost(begin_), end = ToHost(end_);
  const std::vector<int32_t> rows = ToHost(list_rows_), place = ToHost(place_);
  for (int64_t c = 0; c < clusters(); ++c) {
    ASSERT_LE(0, begin[c]);
    ASSERT_LE(begin[c], end[c]);
    ASSERT_LE(end[c], count());
    for (int32_t i = begin[c]; i < end[c]; ++i) {
      const int32_t row = rows[c * count() + i];
      EXPECT_TRUE(i == begin[c] || rows[c * count() + i - 1] < row);
      EXPECT_EQ(place[c * count() + row], i);
      EXPECT_EQ(evaluated_[row] >> c & 1, 0u) << "asked for twice";
      evaluated_[row] |= uint32_t{1} << c;
      const std::vector<float>& words = rows_[row].clusters[c];
      std::copy(words.begin(), words.end(),
                handed_over_[c].begin() + i * stride(c));
    }
    CopyTo(words_[c], handed_over_[c]);
  }
}

void Step::ExpectNothingChanged() const {
  const std::vector<float> head = ToHost(head_);
  for (int64_t r = 0; r < count(); ++r) {
    const auto begin = head.begin() + r * head_stride();
    const std::vector<float> now(begin, begin + rows_[r].head.size());
    EXPECT_TRUE(SameBits(now, rows_[r].head)) << "row " << r;
  }
  for (int64_t c = 0; c < clusters(); ++c) {
    EXPECT_TRUE(SameBits(ToHost(words_[c]), handed_over_[c]))
        << "cluster " << c;
  }
}

// What the slot of row r holds.
void Step::ReadSlot(int64_t r, SampledToken& result) const {
  std::vector<unsigned char> records = ToHost(records_);
  SamplingSlots slots = args_.slots;
  slots.records = records.data();
  const int32_t index = static_cast<int32_t>(count() - 1 - r);
  const SamplingSlot& slot = *slots.slot(index);
  const int64_t capacity = slots.limits.recent;
  result.last_sampled = slot.last_sampled;
  for (int64_t n = std::max<int64_t>(0, slot.recent_count - capacity);
       n < slot.recent_count; ++n) {
    result.recent_ids.push_back(slots.recent(index)[n % capacity]);
  }
}

std::vector<SampledToken> Step::Results() const {
  const std::vector<SampleStatus> statuses = ToHost(statuses_);
  const std::vector<int32_t> tokens = ToHost(tokens_), ids = ToHost(top_ids_);
  const std::vector<float> logprobs = ToHost(logprobs_);
  const std::vector<float> top_logprobs = ToHost(top_logprobs_);
  std::vector<SampledToken> results(rows_.size());
  for (int64_t r = 0; r < count(); ++r) {
    SampledToken& result = results[r];
    result.status = statuses[r];
    result.token = tokens[r];
    if (result.status == SampleStatus::kOk) result.logprob = logprobs[r];
    for (int64_t i = r * kMaxReported; i < (r + 1) * kMaxReported; ++i) {
      if (args_.top_counts == nullptr || ids[i] < 0) break;
      result.top.push_back({ids[i], top_logprobs[i]});
    }
    result.evaluated = evaluated_[r];
    ReadSlot(r, result);
  }
  return results;
}

std::vector<SampledToken> Step::Run() {
  for (args_.round = 0; args_.round <= args_.rounds; ++args_.round) {
    if (args_.round > 0) HandOverClusters();
    LaunchSampling(stream_, args_);
    stream_.Wait();
    ExpectNothingChanged();
  }
  EXPECT_EQ(ToHost(finished_)[0], 0);
  return Results();
}

}  // namespace

RowToSample RandomRow(std::mt19937& random, const VocabularyBins& bins,
                      double spread, double grain) {
  RowToSample row;
  const size_t clusters = bins.clusters();
  row.head =
      RandomLogSoftmax(random, bins.ends[0] + clusters, spread, grain, 0);
  for (size_t c = 0; c < clusters; ++c) {
    row.clusters.push_back(RandomLogSoftmax(random, bins.cluster_size(c),
                                            spread, grain,
                                            row.head[bins.ends[0] + c]));
  }
  return row;
}

std::vector<SampledToken> SampleOnDevice(const VocabularyBins& bins,
                                         const std::vector<RowToSample>& rows,
                                         const StepOptions& options) {
  return Step(bins, rows, options).Run();
}

SampledToken SampleOnHost(const VocabularyBins& bins, const RowToSample& row) {
  SampledToken result;
  if (!row.is_used) {
    result.status = SampleStatus::kUnused;
    return result;
  }
  KnownRow distribution(bins, row);
  SampleContext context;
  context.recent_ids = row.recent_ids;
  context.position = row.position;
  if (row.position < row.min_position) context.banned_ids = row.banned_ids;
  absl::StatusOr<int32_t> token = row.target;
  if (row.target < 0) {
    token = Sampler(bins, SomeTable(bins.ends.back()))
                .Sample(distribution, row.params, context);
  }
  if (!token.ok()) {
    const bool is_nothing = token.status() == NothingToSample();
    result.status =
        is_nothing ? SampleStatus::kNothingLeft : SampleStatus::kNotFinite;
    return result;
  }
  result.status = SampleStatus::kOk;
  result.token = *token;
  result.logprob = LogprobOf(distribution, *token);
  result.top = TopLogprobs(distribution, row.top_count);
  AppendLogprobs(distribution, row.named, result.top);
  return result;
}

}  // namespace txl::cuda
