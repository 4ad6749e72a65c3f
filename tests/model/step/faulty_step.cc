#include "tests/model/step/faulty_step.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

namespace txl {
namespace {

constexpr const char* kStepFaultNames[] = {
    "None",         "NanRow",          "LogprobOfNothing", "LogprobOfAnother",
    "SwappedRows",  "NeighbourScored", "Unnormalised",     "AlternativeMissing",
    "SecondBest",   "AlwaysRandom",    "OtherSeed",        "ForgottenToken",
    "LatePosition", "StaleSlot",       "LostCopy",         "RowNotKept",
    "ShortExport",  "ShiftedImport",   "LayersMixedUp",    "FlippedBit"};

// Where in the data of an image row `row` of layer `layer` is.
struct Rows {
  explicit Rows(StateImage& image)
      : data(image.data),
        rows(image.rows),
        bytes(image.rows == 0
                  ? 0
                  : image.Bytes() / (image.identity.n_layer * image.rows)) {}
  uint8_t* At(int64_t layer, int64_t row) {
    return data.data() + (layer * rows + row) * bytes;
  }

  LargeVector<uint8_t>& data;
  int64_t rows;
  int64_t bytes;
};

StateImage Exported(StateImage image, StepFault fault) {
  Rows rows(image);
  const int64_t layers = image.identity.n_layer;
  if (fault == StepFault::kRowNotKept && image.rows > 1) {
    for (int64_t layer = 0; layer < layers; ++layer) {
      std::memcpy(rows.At(layer, image.rows - 1),
                  rows.At(layer, image.rows - 2), rows.bytes);
    }
  }
  if (fault == StepFault::kShortExport && image.rows > 0) {
    LargeVector<uint8_t> rest;
    for (int64_t layer = 0; layer < layers; ++layer) {
      rest.insert(rest.end(), rows.At(layer, 0) + rows.bytes,
                  rows.At(layer, 0) + image.rows * rows.bytes);
    }
    image.data = std::move(rest);
    --image.rows;
  }
  image.Seal();
  return image;
}

StateImage Imported(StateImage image, StepFault fault) {
  Rows rows(image);
  const int64_t all = image.rows * rows.bytes;
  if (fault == StepFault::kShiftedImport && image.rows > 0) {
    for (int64_t layer = 0; layer < image.identity.n_layer; ++layer) {
      uint8_t* begin = rows.At(layer, 0);
      std::rotate(begin, begin + all - rows.bytes, begin + all);
    }
  }
  if (fault == StepFault::kLayersMixedUp && image.identity.n_layer > 1) {
    std::swap_ranges(rows.At(0, 0), rows.At(0, 0) + all, rows.At(1, 0));
  }
  if (fault == StepFault::kFlippedBit && !image.data.empty()) {
    image.data[image.data.size() / 2] ^= 1;
  }
  image.Seal();
  return image;
}

class FaultyTransfer final : public StateTransfer {
 public:
  FaultyTransfer(std::unique_ptr<StateTransfer> transfer, StepFault fault)
      : transfer_(std::move(transfer)), fault_(fault) {}
  StateImage Take() override { return Exported(transfer_->Take(), fault_); }

 private:
  const std::unique_ptr<StateTransfer> transfer_;
  const StepFault fault_;
};

class FaultyStep final : public SamplingStep {
 public:
  FaultyStep(std::unique_ptr<SamplingStep> step, StepFault fault)
      : step_(std::move(step)), fault_(fault) {}

  bool CanSample(const SamplingParams& params, int64_t banned) const override {
    return step_->CanSample(params, banned);
  }
  void Configure(int32_t slot, const SamplingParams& params,
                 const SampleContext& context) override {
    SamplingParams changed = params;
    if (fault_ == StepFault::kOtherSeed) changed.seed += 17;
    if (fault_ == StepFault::kAlwaysRandom && params.temperature == 0) {
      changed.temperature = 1;
    }
    step_->Configure(slot, changed, context);
  }
  std::unique_ptr<QueuedStep> Queue(absl::Span<const StepRow> rows) override {
    std::vector<StepRow> changed(rows.begin(), rows.end());
    for (StepRow& row : changed) Change(row);
    return std::make_unique<Queued>(this, step_->Queue(changed), rows);
  }
  void Clear(int32_t slot) override {
    if (fault_ != StepFault::kStaleSlot || first_clears_ > 0) {
      step_->Clear(slot);
      --first_clears_;
    }
  }
  void Copy(int32_t from, int32_t to) override {
    if (fault_ != StepFault::kLostCopy) step_->Copy(from, to);
  }
  std::unique_ptr<StateArrival> Import(
      int32_t slot, std::shared_ptr<const StateImage> image) override {
    return step_->Import(
        slot, std::make_shared<const StateImage>(Imported(*image, fault_)));
  }
  std::unique_ptr<StateTransfer> Export(int32_t slot,
                                        int64_t position) override {
    return std::make_unique<FaultyTransfer>(step_->Export(slot, position),
                                            fault_);
  }
  bool derives() const override { return step_->derives(); }
  const RingGeometry& ring() const override { return step_->ring(); }
  const StateIdentity& identity() const override { return step_->identity(); }
  int64_t BytesPerSlot() const override { return step_->BytesPerSlot(); }

 private:
  class Queued final : public QueuedStep {
   public:
    Queued(FaultyStep* faulty, std::unique_ptr<QueuedStep> step,
           absl::Span<const StepRow> rows)
        : faulty_(faulty),
          step_(std::move(step)),
          rows_(rows.begin(), rows.end()) {}
    SampledRows Collect() override {
      SampledRows results = step_->Collect();
      faulty_->Change(rows_, results.rows);
      return results;
    }

   private:
    FaultyStep* const faulty_;
    const std::unique_ptr<QueuedStep> step_;
    const std::vector<StepRow> rows_;
  };

  void Change(StepRow& row) const;
  void Change(absl::Span<const StepRow> rows, std::vector<RowResult>& results);

  const std::unique_ptr<SamplingStep> step_;
  const StepFault fault_;
  int first_clears_ = 2;  // of slots that nobody has used
  int steps_ = 0;         // collected
};

void FaultyStep::Change(StepRow& row) const {
  if (fault_ == StepFault::kNeighbourScored && row.kind == RowKind::kScore &&
      row.score_target > 0) {
    --row.score_target;
  }
  if (fault_ == StepFault::kForgottenToken && row.token_id == kLastSampled) {
    row.token_id = 0;
  }
  if (fault_ == StepFault::kLatePosition && row.position % 16 > 4) {
    ++row.position;
  }
}

void FaultyStep::Change(absl::Span<const StepRow> rows,
                        std::vector<RowResult>& results) {
  ++steps_;
  RowResult& last = results.back();
  switch (fault_) {
    case StepFault::kNanRow:
      if (steps_ == 5) last.status = NotFinite(5);
      break;
    case StepFault::kLogprobOfNothing:
      if (steps_ == 5) last.logprob = std::numeric_limits<float>::quiet_NaN();
      break;
    case StepFault::kLogprobOfAnother:
      if (steps_ == 5) last.logprob = last.top_logprobs[1].logprob;
      break;
    case StepFault::kSwappedRows:
      if (steps_ == 3) std::swap(results.front(), results.back());
      break;
    case StepFault::kUnnormalised:
      for (RowResult& row : results) {
        row.logprob += 0.5f;
        for (TokenLogprob& other : row.top_logprobs) other.logprob += 0.5f;
      }
      break;
    case StepFault::kAlternativeMissing:
      last.top_logprobs.erase(last.top_logprobs.begin());
      last.top_logprobs.push_back(last.top_logprobs.back());
      break;
    case StepFault::kNeighbourScored:
      for (size_t i = 0; i < rows.size(); ++i) {
        if (rows[i].kind == RowKind::kScore) {
          results[i].token_id = rows[i].score_target;
        }
      }
      break;
    case StepFault::kSecondBest:
      for (size_t i = 0; i < rows.size(); ++i) {
        if (rows[i].kind != RowKind::kDecode) continue;
        results[i].token_id = results[i].top_logprobs[1].token_id;
        results[i].logprob = results[i].top_logprobs[1].logprob;
      }
      break;
    default:
      break;
  }
}

}  // namespace

std::vector<StepFault> AllStepFaults() {
  std::vector<StepFault> faults;
  for (int i = 1; i <= static_cast<int>(kLastStepFault); ++i) {
    faults.push_back(static_cast<StepFault>(i));
  }
  return faults;
}

const char* NameOf(StepFault fault) {
  return kStepFaultNames[static_cast<int>(fault)];
}

std::unique_ptr<SamplingStep> MakeFaultyStep(std::unique_ptr<SamplingStep> step,
                                             StepFault fault) {
  return std::make_unique<FaultyStep>(std::move(step), fault);
}

}  // namespace txl
