#include "client/cli/score_totals.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "absl/strings/str_format.h"

namespace txl::cli {

void ScoreTotals::Add(const v1::AppendTokensResponse& piece) {
  tokens += piece.scored_size();
  for (const v1::ScoredToken& token : piece.scored()) {
    if (!token.has_logprob()) continue;
    ++predicted;
    sum_logprob += token.logprob();
  }
}

std::optional<double> ScoreTotals::nats_per_token() const {
  if (predicted == 0) return std::nullopt;
  return -sum_logprob / static_cast<double>(predicted);
}

std::optional<double> ScoreTotals::perplexity() const {
  if (predicted == 0) return std::nullopt;
  return std::exp(*nats_per_token());
}

std::optional<double> ScoreTotals::bits_per_character() const {
  if (predicted == 0 || characters == 0) return std::nullopt;
  return -sum_logprob / std::log(2.0) / static_cast<double>(characters);
}

std::string ToText(const ScoreTotals& totals) {
  const auto number = [](std::optional<double> value) {
    return value ? absl::StrFormat("%.6f", *value) : "not defined";
  };
  return absl::StrFormat(
      "tokens %d\ncharacters %d\nnats per token %s\n"
      "bits per character %s\nperplexity %s\n",
      totals.tokens, totals.characters, number(totals.nats_per_token()),
      number(totals.bits_per_character()), number(totals.perplexity()));
}

std::string ToJsonLine(const ScoreTotals& totals) {
  using Json = nlohmann::ordered_json;
  const auto number = [](std::optional<double> value) {
    return value ? Json(*value) : Json();
  };
  const Json json = {
      {"tokens", totals.tokens},
      {"predicted_tokens", totals.predicted},
      {"characters", totals.characters},
      {"sum_logprob", totals.sum_logprob},
      {"nats_per_token", number(totals.nats_per_token())},
      {"bits_per_character", number(totals.bits_per_character())},
      {"perplexity", number(totals.perplexity())}};
  return json.dump() + "\n";
}

}  // namespace txl::cli
