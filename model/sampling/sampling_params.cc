#include "model/sampling/sampling_params.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace txl {
namespace {

constexpr double kMaxTemperature = 100;
constexpr double kMaxRepetitionPenalty = 10;
constexpr double kMaxAdditivePenalty = 2;
constexpr double kMaxLogitBias = 100;

template <typename T>
void Override(const std::optional<T>& from, T& to) {
  if (from.has_value()) to = *from;
}

absl::Status OutOfRange(absl::string_view field, absl::string_view range,
                        double value) {
  return absl::InvalidArgumentError(
      absl::StrCat(field, ": must be in ", range, ", is ", value));
}

// Written so that NaN is in no range.
bool InClosed(double value, double low, double high) {
  return value >= low && value <= high;
}

bool InHalfOpen(double value, double low, double high) {
  return value > low && value <= high;
}

absl::Status ValidateFilters(const SamplingParams& params, int64_t vocab_size) {
  if (params.top_k < 0 || params.top_k > vocab_size) {
    return absl::InvalidArgumentError(absl::StrCat(
        "top_k: must be in [0, ", vocab_size, "], is ", params.top_k));
  }
  if (!InHalfOpen(params.top_p, 0, 1)) {
    return OutOfRange("top_p", "(0, 1]", params.top_p);
  }
  if (!InClosed(params.min_p, 0, 1)) {
    return OutOfRange("min_p", "[0, 1]", params.min_p);
  }
  if (!InHalfOpen(params.typical_p, 0, 1)) {
    return OutOfRange("typical_p", "(0, 1]", params.typical_p);
  }
  return absl::OkStatus();
}

absl::Status ValidatePenalties(const SamplingParams& params) {
  if (!InHalfOpen(params.repetition_penalty, 0, kMaxRepetitionPenalty)) {
    return OutOfRange("repetition_penalty", "(0, 10]",
                      params.repetition_penalty);
  }
  if (!InClosed(params.presence_penalty, -kMaxAdditivePenalty,
                kMaxAdditivePenalty)) {
    return OutOfRange("presence_penalty", "[-2, 2]", params.presence_penalty);
  }
  if (!InClosed(params.frequency_penalty, -kMaxAdditivePenalty,
                kMaxAdditivePenalty)) {
    return OutOfRange("frequency_penalty", "[-2, 2]", params.frequency_penalty);
  }
  if (params.penalty_window < 0 || params.penalty_window > kMaxPenaltyWindow) {
    return OutOfRange("penalty_window", "[0, 4096]", params.penalty_window);
  }
  return absl::OkStatus();
}

absl::Status CheckId(absl::string_view field, int32_t id, int64_t vocab_size) {
  if (id >= 0 && id < vocab_size) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      field, ": token id ", id, " is outside the vocabulary of ", vocab_size));
}

absl::Status ValidateAllowed(const SamplingParams& params, int64_t vocab_size) {
  const std::vector<int32_t>& ids = params.allowed_token_ids;
  if (ids.size() > kMaxAllowedTokens) {
    return absl::InvalidArgumentError(
        absl::StrCat("allowed_token_ids: must have at most ", kMaxAllowedTokens,
                     " ids, has ", ids.size()));
  }
  for (const int32_t id : ids) {
    absl::Status status = CheckId("allowed_token_ids", id, vocab_size);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status ValidateLogitBias(const SamplingParams& params,
                               int64_t vocab_size) {
  if (params.logit_bias.size() > kMaxLogitBiasEntries) {
    return absl::InvalidArgumentError(
        absl::StrCat("logit_bias: must have at most ", kMaxLogitBiasEntries,
                     " entries, has ", params.logit_bias.size()));
  }
  for (const auto& [id, bias] : params.logit_bias) {
    absl::Status status = CheckId("logit_bias", id, vocab_size);
    if (!status.ok()) return status;
    if (!InClosed(bias, -kMaxLogitBias, kMaxLogitBias)) {
      return OutOfRange("logit_bias", "[-100, 100]", bias);
    }
  }
  return absl::OkStatus();
}

}  // namespace

SamplingParams ApplyOverrides(SamplingParams base,
                              const SamplingOverrides& overrides) {
  Override(overrides.temperature, base.temperature);
  Override(overrides.top_k, base.top_k);
  Override(overrides.top_p, base.top_p);
  Override(overrides.min_p, base.min_p);
  Override(overrides.typical_p, base.typical_p);
  Override(overrides.repetition_penalty, base.repetition_penalty);
  Override(overrides.presence_penalty, base.presence_penalty);
  Override(overrides.frequency_penalty, base.frequency_penalty);
  Override(overrides.penalty_window, base.penalty_window);
  if (!overrides.logit_bias.empty()) base.logit_bias = overrides.logit_bias;
  if (!overrides.allowed_token_ids.empty()) {
    base.allowed_token_ids = overrides.allowed_token_ids;
  }
  Override(overrides.follow_kinds, base.follow_kinds);
  Override(overrides.seed, base.seed);
  Override(overrides.min_tokens, base.min_tokens);
  return base;
}

absl::Status ValidateSamplingParams(const SamplingParams& params,
                                    int64_t vocab_size, bool has_kinds) {
  if (!InClosed(params.temperature, 0, kMaxTemperature)) {
    return OutOfRange("temperature", "[0, 100]", params.temperature);
  }
  if (absl::Status status = ValidateFilters(params, vocab_size); !status.ok()) {
    return status;
  }
  if (absl::Status status = ValidatePenalties(params); !status.ok()) {
    return status;
  }
  if (absl::Status status = ValidateLogitBias(params, vocab_size);
      !status.ok()) {
    return status;
  }
  if (absl::Status status = ValidateAllowed(params, vocab_size); !status.ok()) {
    return status;
  }
  if (params.follow_kinds && !has_kinds) {
    return absl::InvalidArgumentError(
        "follow_kinds: the model has no kinds of tokens (kinds.json)");
  }
  if (params.min_tokens < 0) {
    return OutOfRange("min_tokens", "[0, max_tokens]", params.min_tokens);
  }
  return absl::OkStatus();
}

}  // namespace txl
