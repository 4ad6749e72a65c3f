#include "server/api/convert_alternatives.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "model/base/status_macros.h"
#include "server/api/convert_input.h"
#include "server/api/convert_output.h"
#include "server/base/error.h"

namespace txl {
namespace {

using Ids = std::vector<int32_t>;

int64_t Size(const Ids& ids) { return static_cast<int64_t>(ids.size()); }

// What stands behind the context, whose tokens count with it.
absl::StatusOr<Ids> ReadOne(const v1::Alternative& alternative,
                            const EncodeOptions& options,
                            const std::string& field, int64_t context,
                            const ModelFacts& facts,
                            const RequestLimits& limits) {
  if (!alternative.has_text() && !alternative.has_tokens()) {
    return FieldError(absl::StrCat(field, ".input"),
                      "text or tokens must be set");
  }
  TXL_ASSIGN_OR_RETURN(
      Ids ids, ReadTextOrIds(alternative, options, absl::StrCat(field, "."),
                             facts, limits));
  if (context + Size(ids) <= limits.prompt_tokens) return ids;
  return OverLimitError(
      field,
      absl::StrCat(context + Size(ids), " tokens with the context, at most ",
                   limits.prompt_tokens));
}

// As a turn's input has its pieces: what the last token held back is shown.
void AddTexts(const Detokenizer& before, absl::Span<ScoredToken> tokens) {
  const std::unique_ptr<Detokenizer> detokenizer = before.Clone();
  for (ScoredToken& token : tokens) {
    token.text = detokenizer->Add(token.token_id);
  }
  tokens.back().text += detokenizer->Flush();
}

}  // namespace

int64_t AlternativesParams::tokens() const {
  int64_t tokens = Size(context);
  for (const Ids& ids : alternatives) tokens += Size(ids);
  return tokens;
}

absl::StatusOr<AlternativesParams> ReadAlternatives(
    const v1::ScoreAlternativesRequest& request, const ModelFacts& facts,
    const RequestLimits& limits) {
  AlternativesParams params;
  params.session_id = request.session_id();
  if (!params.session_id.empty()) {
    TXL_RETURN_IF_ERROR(CheckSessionId(params.session_id));
  }
  params.return_tokens = request.return_tokens();
  const int count = request.alternatives_size();
  if (count == 0) return FieldError("alternatives", "must hold at least one");
  if (count > limits.alternatives) {
    return OverLimitError(
        "alternatives", absl::StrCat(count, ", at most ", limits.alternatives));
  }
  TXL_ASSIGN_OR_RETURN(const EncodeOptions options,
                       ReadUnknown(request.unknown(), facts, limits));
  if (request.context_case() != v1::ScoreAlternativesRequest::CONTEXT_NOT_SET) {
    TXL_ASSIGN_OR_RETURN(params.context,
                         ReadTextOrIds(request, options, "", facts, limits));
  }
  params.alternatives.reserve(count);
  for (int i = 0; i < count; ++i) {
    TXL_ASSIGN_OR_RETURN(Ids ids, ReadOne(request.alternatives(i), options,
                                          absl::StrCat("alternatives[", i, "]"),
                                          Size(params.context), facts, limits));
    params.alternatives.push_back(std::move(ids));
  }
  return params;
}

v1::ScoreAlternativesResponse WriteAlternatives(
    const AlternativesParams& params, const Detokenizer* detokenizer,
    absl::Span<const ScoredToken> scored) {
  std::unique_ptr<Detokenizer> before;
  if (params.return_tokens && detokenizer != nullptr) {
    before = detokenizer->Clone();
    before->Flush();
    for (const int32_t id : params.context) before->Add(id);
  }
  v1::ScoreAlternativesResponse response;
  size_t begin = 0;
  for (const Ids& ids : params.alternatives) {
    const absl::Span<const ScoredToken> part =
        scored.subspan(begin, ids.size());
    std::vector<ScoredToken> tokens(part.begin(), part.end());
    begin += ids.size();
    if (before != nullptr) AddTexts(*before, absl::MakeSpan(tokens));
    v1::AlternativeScore* score = response.add_scores();
    score->set_sum_logprob(WriteScored(tokens, score->mutable_tokens()));
    score->set_token_count(Size(ids));
    if (!params.return_tokens) score->clear_tokens();
  }
  return response;
}

}  // namespace txl
