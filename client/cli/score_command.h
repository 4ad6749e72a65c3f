#pragma once

// Sums over a scored text and the figures that are made of them.
#include <cstdint>
#include <optional>
#include <string>

#include "txl/v1/token.pb.h"

namespace txl::cli {
struct ScoreTotals {
  int64_t tokens = 0;      // of the text
  int64_t predicted = 0;   // tokens with a log-probability: all but the first
  int64_t characters = 0;  // code points of the text
  double sum_logprob = 0;  // natural logarithm, over the predicted tokens

  // Tokens of one piece; `characters` is left alone.
  void Add(const google::protobuf::RepeatedPtrField<v1::ScoredToken>& piece);

  // Not defined when nothing was predicted.
  std::optional<double> nats_per_token() const;
  std::optional<double> perplexity() const;  // exp(nats per token)
  // The sum in bits over all characters.
  std::optional<double> bits_per_character() const;
};

// What is not defined is "not defined" in text and null in JSON.
std::string ToText(const ScoreTotals& totals);
std::string ToJsonLine(const ScoreTotals& totals);

}  // namespace txl::cli
