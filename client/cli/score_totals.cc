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

double ScoreTotals::nats_per_token() const {
  return predicted == 0 ? 0 : -sum_logprob / static_cast<double>(predicted);
}

double ScoreTotals::perplexity() const {
  return predicted == 0 ? 0 : std::exp(nats_per_token());
}

double ScoreTotals::bits_per_character() const {
  if (predicted == 0 || characters == 0) return 0;
  return -sum_logprob / std::log(2.0) / static_cast<double>(characters);
}

std::string ToText(const ScoreTotals& totals) {
  return absl::StrFormat(
      "tokens %d\ncharacters %d\nnats per token %.6f\n"
      "bits per character %.6f\nperplexity %.6f\n",
      totals.tokens, totals.characters, totals.nats_per_token(),
      totals.bits_per_character(), totals.perplexity());
}

std::string ToJsonLine(const ScoreTotals& totals) {
  const nlohmann::ordered_json json = {
      {"tokens", totals.tokens},
      {"predicted_tokens", totals.predicted},
      {"characters", totals.characters},
      {"sum_logprob", totals.sum_logprob},
      {"nats_per_token", totals.nats_per_token()},
      {"bits_per_character", totals.bits_per_character()},
      {"perplexity", totals.perplexity()}};
  return json.dump() + "\n";
}

}  // namespace txl::cli
