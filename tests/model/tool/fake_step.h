#pragma once

// A ModelStep that computes nothing: log P(id) = -(id + 1) everywhere. It
// records what it was fed and which clusters it was told of.

#include <cstddef>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "model/step/model_step.h"

namespace txl {

class FakeStep final : public ModelStep {
 public:
  // `unannounced`: clusters that were looked at without being told of.
  struct Record {
    std::vector<std::string> runs;  // "slot@position:tokens" of each Run
    std::vector<std::pair<int64_t, size_t>> clusters;
    std::vector<int32_t> cleared;
    int unannounced = 0;
  };

  explicit FakeStep(VocabularyBins bins) : bins_(std::move(bins)) {}

  absl::Span<NextTokenDistribution* const> Run(
      absl::Span<const StepSegment> segments) override {
    rows_.clear();
    result_.clear();
    std::vector<std::string> texts;
    for (const StepSegment& s : segments) {
      texts.push_back(absl::StrCat(s.slot, "@", s.position, ":",
                                   absl::StrJoin(s.tokens, ",")));
      for (size_t i = 0; i < s.outputs.size(); ++i) {
        rows_.push_back(std::make_unique<Row>(*this, rows_.size()));
        result_.push_back(rows_.back().get());
      }
    }
    record_.runs.push_back(absl::StrJoin(texts, " "));
    return result_;
  }
  void EvaluateClusters(absl::Span<const ClusterOfRow> clusters) override {
    announced_.clear();
    for (const ClusterOfRow& wanted : clusters) {
      record_.clusters.emplace_back(wanted.row, wanted.cluster);
      announced_.emplace(wanted.row, wanted.cluster);
    }
  }
  void Clear(int32_t slot) override { record_.cleared.push_back(slot); }
  void Copy(int32_t, int32_t) override {}
  StateImage Export(int32_t, int64_t, int64_t) const override { return {}; }
  absl::Status Import(int32_t, const StateImage&) override {
    return absl::OkStatus();
  }
  const RingGeometry& ring() const override { return ring_; }
  const StateIdentity& identity() const override { return identity_; }
  int64_t BytesPerSlot() const override { return 0; }

  const Record& record() const { return record_; }

 private:
  class Row final : public NextTokenDistribution {
   public:
    Row(FakeStep& step, size_t index)
        : step_(step), index_(static_cast<int64_t>(index)) {
      for (int64_t id = 0; id < step.bins_.ends.back(); ++id) {
        logprobs_.push_back(-static_cast<float>(id + 1));
      }
    }
    const VocabularyBins& bins() const override { return step_.bins_; }
    absl::Span<const float> Words() override {
      return absl::MakeConstSpan(logprobs_).first(step_.bins_.ends[0]);
    }
    double ClusterMass(size_t) override { return 0; }
    absl::Span<const float> ClusterWords(size_t c) override {
      if (!step_.announced_.contains({index_, c})) ++step_.record_.unannounced;
      return absl::MakeConstSpan(logprobs_).subspan(
          step_.bins_.ends[c], step_.bins_.cluster_size(c));
    }
    bool IsEvaluated(size_t) const override { return true; }

   private:
    FakeStep& step_;
    const int64_t index_;
    std::vector<float> logprobs_;
  };

  const VocabularyBins bins_;
  const RingGeometry ring_;
  const StateIdentity identity_;
  std::vector<std::unique_ptr<Row>> rows_;
  std::vector<NextTokenDistribution*> result_;
  std::set<std::pair<int64_t, size_t>> announced_;
  Record record_;
};

}  // namespace txl
