#include "tests/bench/step_costs.h"

#include <algorithm>
#include <cmath>

namespace txl {
namespace {

double Bytes(NumberFormat format) {
  return static_cast<double>(NumberBits(format)) / 8;
}

double AttentionWidth(const ModelConfig& config) {
  return static_cast<double>(config.n_head * config.d_head);
}

// Query, key, value and output projections, two feed-forward matrices.
double LayerNumbers(const ModelConfig& config) {
  const double d = static_cast<double>(config.d_model);
  return static_cast<double>(config.n_layer) *
         (4 * d * AttentionWidth(config) +
          2 * d * static_cast<double>(config.d_inner));
}

// Words (and, in bin 0, clusters) with the projection before them.
double BinNumbers(const ModelConfig& config, int64_t bin) {
  const double width = static_cast<double>(config.bin_width(bin));
  const double outputs = static_cast<double>(
      config.bin_size(bin) + (bin == 0 ? config.n_bins() - 1 : 0));
  const bool projected = config.bin_width(bin) != config.d_model ||
                         config.emb_proj_bin0.value_or(false);
  return width * outputs +
         (projected ? width * static_cast<double>(config.d_model) : 0);
}

PhaseCost SoftmaxCost(const ModelConfig& config, const StepWork& work) {
  const double bytes = Bytes(BinFormat(work.formats.weights));
  const double sessions = static_cast<double>(work.sessions);
  PhaseCost cost;
  for (int64_t bin = 0; bin < config.n_bins(); ++bin) {
    const double numbers = BinNumbers(config, bin);
    const double share =
        bin == 0 ? 1
                 : work.tail_share / static_cast<double>(config.n_bins() - 1);
    cost.bytes += numbers * bytes * (1 - std::pow(1 - share, sessions));
    cost.flops += 2 * numbers * share * sessions;
  }
  return cost;
}

PhaseCost MemoryCost(const ModelConfig& config, const StepWork& work) {
  const double keys = static_cast<double>(config.serving_window());
  const double old_keys = keys - 1;
  const double times = static_cast<double>(config.n_layer * work.sessions);
  if (work.form == AttentionForm::kAbsorbed) {
    const double d = static_cast<double>(config.d_model);
    const double heads = static_cast<double>(config.n_head);
    return {times * old_keys * d * Bytes(work.formats.memory),
            times * 4 * keys * heads * d};
  }
  const double width = AttentionWidth(config);
  return {times * 2 * old_keys * width * Bytes(work.formats.derived),
          times * 4 * keys * width};
}

PhaseCost DistanceCost(const ModelConfig& config, const StepWork& work) {
  const double numbers =
      static_cast<double>(config.n_layer * config.position_distances()) *
      AttentionWidth(config);
  return {numbers * Bytes(work.formats.derived),
          2 * numbers * static_cast<double>(work.sessions)};
}

double Seconds(const PhaseCost& cost, const MachineRates& rates) {
  return std::max(cost.bytes / rates.bytes_per_second,
                  cost.flops / rates.flops_per_second);
}

}  // namespace

double StepCosts::bytes() const {
  return weights.bytes + softmax.bytes + attention.bytes + distances.bytes;
}

double StepCosts::flops() const {
  return weights.flops + softmax.flops + attention.flops + distances.flops;
}

StepCosts DecodeCosts(const ModelConfig& config, const StepWork& work) {
  const double numbers = LayerNumbers(config);
  return {.weights = {numbers * Bytes(work.formats.weights),
                      2 * numbers * static_cast<double>(work.sessions)},
          .softmax = SoftmaxCost(config, work),
          .attention = MemoryCost(config, work),
          .distances = DistanceCost(config, work)};
}

StepCosts ScoreCosts(const ModelConfig& config, const StepWork& work,
                     int64_t segment_rows) {
  StepWork rows = work;
  rows.sessions *= segment_rows;
  StepCosts costs = DecodeCosts(config, rows);
  costs.attention.bytes /= static_cast<double>(segment_rows);
  return costs;
}

double PromptFlops(const ModelConfig& config, int64_t begin, int64_t rows) {
  const bool zeros = config.mem_init == MemoryInit::kZeros;
  const int64_t window = config.serving_window();
  int64_t keys = 0;
  int64_t distances = 0;
  for (int64_t t = begin; t < begin + rows; ++t) {
    const int64_t seen = std::min(window, t + 1 + (zeros ? config.mem_len : 0));
    keys += seen;
    distances += std::min(seen, config.position_distances());
  }
  const double layers = static_cast<double>(config.n_layer);
  return 2 * LayerNumbers(config) * static_cast<double>(rows) +
         layers * AttentionWidth(config) *
             (4 * static_cast<double>(keys) +
              2 * static_cast<double>(distances));
}

double PhasesAddedSeconds(const StepCosts& costs, const MachineRates& rates) {
  return Seconds(costs.weights, rates) + Seconds(costs.softmax, rates) +
         Seconds(costs.attention, rates) + Seconds(costs.distances, rates);
}

}  // namespace txl
