#include "server/scheduler/turn_text.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "model/text/utf8.h"

namespace txl {
namespace {

bool Contains(absl::Span<const int32_t> ids, int32_t id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

}  // namespace

TurnText::TurnText(StopRules rules, std::unique_ptr<Detokenizer> detokenizer)
    : rules_(std::move(rules)),
      detokenizer_(std::move(detokenizer)),
      matcher_(rules_.stop_texts, rules_.include_stop_text) {}

std::vector<std::string> TurnText::AddInput(absl::Span<const int32_t> ids) {
  std::vector<std::string> pieces(ids.size());
  if (detokenizer_ == nullptr || ids.empty()) return pieces;
  detokenizer_->Flush();
  for (size_t i = 0; i < ids.size(); ++i) {
    pieces[i] = detokenizer_->Add(ids[i]);
  }
  pieces.back() += detokenizer_->Flush();
  return pieces;
}

TurnText::Piece TurnText::AddGenerated(int32_t id) {
  Piece piece;
  piece.held_back = static_cast<int32_t>(CodePoints(matcher_.held()));
  ++generated_;
  if (!rules_.ignore_end_token && Contains(rules_.end_token_ids, id)) {
    piece.reason = FinishReason::kEndToken;
    rest_ = absl::StrCat(matcher_.Flush(), HeldCharacter());
    if (detokenizer_ != nullptr) detokenizer_->Add(id);
    return piece;
  }
  std::string text = detokenizer_ == nullptr ? "" : detokenizer_->Add(id);
  if (IsStopToken(id)) {
    piece.reason = FinishReason::kStopToken;
    piece.text = absl::StrCat(matcher_.Flush(), text);
    return piece;
  }
  StopTextMatcher::Output output = matcher_.Push(text);
  piece.text = std::move(output.text);
  if (output.matched.has_value()) {
    piece.reason = FinishReason::kStopText;
    piece.matched_stop_text = *std::move(output.matched);
    rest_ = "";
  } else if (generated_ >= rules_.max_tokens) {
    piece.reason = FinishReason::kMaxTokens;
  }
  return piece;
}

bool TurnText::IsStopToken(int32_t id) {
  const std::optional<TokenCount>& limit = rules_.token_count;
  const bool is_last =
      limit.has_value() && id == limit->id && ++counted_ >= limit->count;
  return is_last || Contains(rules_.stop_token_ids, id);
}

std::string TurnText::TakeRest() {
  if (!rest_.has_value()) {
    rest_ = absl::StrCat(matcher_.Flush(), HeldCharacter());
  }
  return std::exchange(*rest_, "");
}

std::unique_ptr<Detokenizer> TurnText::TakeDetokenizer() {
  return std::move(detokenizer_);
}

std::string TurnText::HeldCharacter() const {
  return detokenizer_ == nullptr ? "" : detokenizer_->Clone()->Flush();
}

}  // namespace txl
