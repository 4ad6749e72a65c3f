#include "server/api/convert_sampling.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "model/base/status_macros.h"
#include "server/base/error.h"

namespace txl {
namespace {

// -0.0 as 0.0: the same value must read the same in Started.
double Plain(double value) { return value + 0.0; }

absl::StatusOr<std::map<int32_t, double>> ReadBias(
    const google::protobuf::Map<uint32_t, float>& bias, int64_t vocab_size,
    const RequestLimits& limits) {
  constexpr char kField[] = "sampling.logit_bias";
  if (static_cast<int64_t>(bias.size()) > limits.logit_bias) {
    return OverLimitError(
        kField,
        absl::StrCat(bias.size(), " entries, at most ", limits.logit_bias));
  }
  std::map<int32_t, double> result;
  for (const auto& [id, value] : bias) {
    if (static_cast<int64_t>(id) >= vocab_size) {
      return FieldError(
          absl::StrCat(kField, "[", id, "]"),
          absl::StrCat("token id outside the vocabulary of ", vocab_size));
    }
    result[static_cast<int32_t>(id)] = Plain(value);
  }
  return result;
}

absl::StatusOr<SamplingOverrides> Overrides(const v1::SamplingParams& request,
                                            int64_t vocab_size,
                                            const RequestLimits& limits) {
  SamplingOverrides o;
  if (request.has_temperature()) o.temperature = Plain(request.temperature());
  if (request.has_top_k()) o.top_k = request.top_k();
  if (request.has_top_p()) o.top_p = Plain(request.top_p());
  if (request.has_min_p()) o.min_p = Plain(request.min_p());
  if (request.has_typical_p()) o.typical_p = Plain(request.typical_p());
  if (request.has_repetition_penalty()) {
    o.repetition_penalty = Plain(request.repetition_penalty());
  }
  if (request.has_presence_penalty()) {
    o.presence_penalty = Plain(request.presence_penalty());
  }
  if (request.has_frequency_penalty()) {
    o.frequency_penalty = Plain(request.frequency_penalty());
  }
  if (request.has_penalty_window()) o.penalty_window = request.penalty_window();
  if (request.has_follow_kinds()) o.follow_kinds = request.follow_kinds();
  if (request.has_seed()) o.seed = request.seed();
  if (request.has_min_tokens()) o.min_tokens = request.min_tokens();
  TXL_ASSIGN_OR_RETURN(o.logit_bias,
                       ReadBias(request.logit_bias(), vocab_size, limits));
  TXL_ASSIGN_OR_RETURN(
      o.allowed_token_ids,
      ReadFewIds(request.allowed_token_ids(), "sampling.allowed_token_ids",
                 limits.allowed_tokens, vocab_size));
  std::vector<int32_t>& allowed = o.allowed_token_ids;
  std::sort(allowed.begin(), allowed.end());
  allowed.erase(std::unique(allowed.begin(), allowed.end()), allowed.end());
  return o;
}

absl::StatusOr<TokenCount> ReadTokenCount(const v1::TokenCount& request,
                                          int64_t vocab_size) {
  if (!request.has_id()) {
    return FieldError("stop.token_count.id",
                      "must be set: the token that is counted");
  }
  if (static_cast<int64_t>(request.id()) >= vocab_size) {
    return FieldError("stop.token_count.id",
                      absl::StrCat("token id ", request.id(),
                                   " outside the vocabulary of ", vocab_size));
  }
  if (request.count() < 1) {
    return FieldError("stop.token_count.count", "must be at least 1");
  }
  return TokenCount{static_cast<int32_t>(request.id()), request.count()};
}

absl::Status CheckStopText(const std::string& text, const std::string& field,
                           const RequestLimits& limits) {
  if (text.empty()) return FieldError(field, "a stop text is empty");
  if (static_cast<int64_t>(text.size()) > limits.stop_text_bytes) {
    return OverLimitError(field, absl::StrCat(text.size(), " bytes, at most ",
                                              limits.stop_text_bytes));
  }
  return absl::OkStatus();
}

absl::Status ReadStopTexts(const v1::StopConditions& request,
                           const ModelFacts& facts, const RequestLimits& limits,
                           StopRules* stop) {
  constexpr char kField[] = "stop.stop_texts";
  if (request.stop_texts().empty()) return absl::OkStatus();
  if (request.stop_texts_size() > limits.stop_texts) {
    return OverLimitError(
        kField, absl::StrCat(request.stop_texts_size(), " texts, at most ",
                             limits.stop_texts));
  }
  if (facts.vocabulary == nullptr) {
    return FieldError(kField, "the model has no tokenizer, so no text");
  }
  stop->stop_texts.clear();
  for (int i = 0; i < request.stop_texts_size(); ++i) {
    TXL_RETURN_IF_ERROR(CheckStopText(
        request.stop_texts(i), absl::StrCat(kField, "[", i, "]"), limits));
    stop->stop_texts.push_back(request.stop_texts(i));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<int32_t>> ReadIds(
    const google::protobuf::RepeatedField<uint32_t>& ids,
    absl::string_view field, int64_t vocab_size) {
  std::vector<int32_t> result;
  result.reserve(ids.size());
  for (int i = 0; i < ids.size(); ++i) {
    if (static_cast<int64_t>(ids[i]) >= vocab_size) {
      return FieldError(
          absl::StrCat(field, "[", i, "]"),
          absl::StrCat("token id ", ids[i], " outside the vocabulary of ",
                       vocab_size));
    }
    result.push_back(static_cast<int32_t>(ids[i]));
  }
  return result;
}

absl::StatusOr<std::vector<int32_t>> ReadFewIds(
    const google::protobuf::RepeatedField<uint32_t>& ids,
    absl::string_view field, int64_t most, int64_t vocab_size) {
  if (ids.size() > most) {
    return OverLimitError(field,
                          absl::StrCat(ids.size(), " ids, at most ", most));
  }
  return ReadIds(ids, field, vocab_size);
}

absl::StatusOr<LogprobParams> ReadLogprobs(
    uint32_t logprobs, const google::protobuf::RepeatedField<uint32_t>& ids,
    absl::string_view prefix, const ModelFacts& facts,
    const RequestLimits& limits) {
  if (static_cast<int64_t>(logprobs) > limits.logprobs) {
    return OverLimitError(
        absl::StrCat(prefix, "logprobs"),
        absl::StrCat(logprobs, " alternatives, at most ", limits.logprobs));
  }
  LogprobParams params;
  params.top = static_cast<int32_t>(logprobs);
  if (ids.empty()) return params;
  TXL_ASSIGN_OR_RETURN(
      std::vector<int32_t> named,
      ReadFewIds(ids, absl::StrCat(prefix, "logprob_token_ids"),
                 limits.logprobs, facts.config.vocab_size));
  params.ids = std::make_shared<const std::vector<int32_t>>(std::move(named));
  return params;
}

SamplingParams DefaultSampling(const ModelFacts& facts) {
  return ApplyOverrides(SamplingParams{}, facts.generation.sampling);
}

StopRules DefaultStop(const ModelFacts& facts, const RequestLimits& limits) {
  StopRules stop;
  // A default is not a request: a lower limit of the server lowers it.
  stop.max_tokens = static_cast<int32_t>(
      std::min<int64_t>(facts.generation.max_tokens.value_or(kDefaultMaxTokens),
                        limits.max_tokens));
  if (facts.vocabulary != nullptr)
    stop.stop_texts = facts.generation.stop_texts;
  stop.end_token_ids = facts.generation.end_tokens;
  return stop;
}

absl::StatusOr<SamplingParams> ReadSampling(const v1::SamplingParams& request,
                                            const ModelFacts& facts,
                                            const RequestLimits& limits) {
  const int64_t vocab_size = facts.config.vocab_size;
  TXL_ASSIGN_OR_RETURN(const SamplingOverrides overrides,
                       Overrides(request, vocab_size, limits));
  const SamplingParams params =
      ApplyOverrides(DefaultSampling(facts), overrides);
  const absl::Status status =
      ValidateSamplingParams(params, vocab_size, facts.kinds != nullptr);
  if (status.ok()) return params;
  // "FIELD: what is wrong".
  const std::string message(status.message());
  const size_t colon = message.find(": ");
  if (colon == std::string::npos) return FieldError("sampling", message);
  return FieldError(absl::StrCat("sampling.", message.substr(0, colon)),
                    message.substr(colon + 2));
}

absl::StatusOr<StopRules> ReadStop(const v1::StopConditions& request,
                                   const ModelFacts& facts,
                                   const RequestLimits& limits) {
  StopRules stop = DefaultStop(facts, limits);
  if (request.has_max_tokens()) {
    if (request.max_tokens() < 1) {
      return FieldError("stop.max_tokens", "must be at least 1");
    }
    if (request.max_tokens() > limits.max_tokens) {
      return OverLimitError(
          "stop.max_tokens",
          absl::StrCat(request.max_tokens(), ", at most ", limits.max_tokens));
    }
    stop.max_tokens = request.max_tokens();
  }
  TXL_RETURN_IF_ERROR(ReadStopTexts(request, facts, limits, &stop));
  TXL_ASSIGN_OR_RETURN(
      stop.stop_token_ids,
      ReadFewIds(request.stop_token_ids(), "stop.stop_token_ids",
                 limits.stop_tokens, facts.config.vocab_size));
  if (request.has_token_count()) {
    TXL_ASSIGN_OR_RETURN(
        stop.token_count,
        ReadTokenCount(request.token_count(), facts.config.vocab_size));
  }
  stop.ignore_end_token = request.ignore_end_token();
  stop.include_stop_text = request.include_stop_text();
  return stop;
}

absl::StatusOr<OutputParams> ReadOutput(const v1::OutputOptions& request,
                                        const ModelFacts& facts,
                                        const RequestLimits& limits) {
  OutputParams output;
  TXL_ASSIGN_OR_RETURN(
      output.logprobs,
      ReadLogprobs(request.logprobs(), request.logprob_token_ids(), "output.",
                   facts, limits));
  output.include_token_bytes = request.include_token_bytes();
  if (output.include_token_bytes && facts.vocabulary == nullptr) {
    return FieldError("output.include_token_bytes",
                      "the model has no tokenizer, so no bytes");
  }
  if (!request.has_max_tokens_per_message()) return output;
  constexpr char kField[] = "output.max_tokens_per_message";
  if (request.max_tokens_per_message() < 1) {
    return FieldError(kField, "must be at least 1");
  }
  if (request.max_tokens_per_message() > limits.tokens_per_message) {
    return OverLimitError(
        kField, absl::StrCat(request.max_tokens_per_message(), ", at most ",
                             limits.tokens_per_message));
  }
  output.tokens_per_message =
      static_cast<int32_t>(request.max_tokens_per_message());
  return output;
}

absl::Status CheckMinTokens(const SamplingParams& sampling,
                            const StopRules& stop, int64_t vocab_size) {
  constexpr char kField[] = "sampling.min_tokens";
  if (sampling.min_tokens > stop.max_tokens) {
    return FieldError(kField,
                      absl::StrCat(sampling.min_tokens, " is above max_tokens ",
                                   stop.max_tokens));
  }
  if (sampling.min_tokens == 0) return absl::OkStatus();
  std::set<int32_t> banned(stop.stop_token_ids.begin(),
                           stop.stop_token_ids.end());
  if (!stop.ignore_end_token) {
    banned.insert(stop.end_token_ids.begin(), stop.end_token_ids.end());
  }
  const std::vector<int32_t>& allowed = sampling.allowed_token_ids;
  const bool leaves_one = allowed.empty()
                              ? static_cast<int64_t>(banned.size()) < vocab_size
                              : !std::includes(banned.begin(), banned.end(),
                                               allowed.begin(), allowed.end());
  if (leaves_one) return absl::OkStatus();
  return FieldError(kField,
                    "until then no token could be sampled: every token that is "
                    "allowed is a stop or end token");
}

void WriteSampling(const SamplingParams& params, v1::SamplingParams* message) {
  message->set_temperature(params.temperature);
  message->set_top_k(params.top_k);
  message->set_top_p(params.top_p);
  message->set_min_p(params.min_p);
  message->set_typical_p(params.typical_p);
  message->set_repetition_penalty(params.repetition_penalty);
  message->set_presence_penalty(params.presence_penalty);
  message->set_frequency_penalty(params.frequency_penalty);
  message->set_penalty_window(params.penalty_window);
  for (const auto& [id, value] : params.logit_bias) {
    (*message->mutable_logit_bias())[static_cast<uint32_t>(id)] =
        static_cast<float>(value);
  }
  message->mutable_allowed_token_ids()->Assign(params.allowed_token_ids.begin(),
                                               params.allowed_token_ids.end());
  message->set_follow_kinds(params.follow_kinds);
  message->set_seed(params.seed);
  message->set_min_tokens(params.min_tokens);
}

void WriteStop(const StopRules& stop, v1::StopConditions* message) {
  message->set_max_tokens(stop.max_tokens);
  for (const std::string& text : stop.stop_texts) message->add_stop_texts(text);
  for (const int32_t id : stop.stop_token_ids) {
    message->add_stop_token_ids(static_cast<uint32_t>(id));
  }
  message->set_ignore_end_token(stop.ignore_end_token);
  message->set_include_stop_text(stop.include_stop_text);
  if (!stop.token_count.has_value()) return;
  message->mutable_token_count()->set_id(
      static_cast<uint32_t>(stop.token_count->id));
  message->mutable_token_count()->set_count(stop.token_count->count);
}

}  // namespace txl
