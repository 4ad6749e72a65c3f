#include "model/sampling/token_kinds.h"

#include <algorithm>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "model/base/status_macros.h"

namespace txl {
namespace {

absl::Status BadKind(const TokenKind& kind, absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("kinds.", absl::CHexEscape(kind.name), what));
}

// Index of the first kind of this name; the number of kinds: there is none.
size_t FindKind(const std::vector<TokenKind>& kinds, const std::string& name) {
  const auto named =
      std::find_if(kinds.begin(), kinds.end(),
                   [&](const TokenKind& kind) { return kind.name == name; });
  return static_cast<size_t>(named - kinds.begin());
}

absl::Status TakeTokens(const std::vector<TokenKind>& kinds, size_t index,
                        std::vector<uint8_t>& kind_of) {
  const TokenKind& kind = kinds[index];
  if (kind.tokens.empty())
    return BadKind(kind, ".tokens: must have at least one id");
  for (const auto& [first, last] : kind.tokens) {
    if (first < 0 || first > last ||
        static_cast<size_t>(last) >= kind_of.size()) {
      return BadKind(kind, absl::StrCat(".tokens: ", first, " to ", last,
                                        " are not ids of a vocabulary of ",
                                        kind_of.size()));
    }
    for (int32_t id = first; id <= last; ++id) {
      if (kind_of[id] != kNoTokenKind) {
        return BadKind(
            kind,
            absl::StrCat(".tokens: id ", id, " is in kind ",
                         absl::CHexEscape(kinds[kind_of[id]].name), ", too"));
      }
      kind_of[id] = static_cast<uint8_t>(index);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<KindRule> RuleOf(const std::vector<TokenKind>& kinds,
                                const TokenKind& kind) {
  KindRule rule = {.next_temperature = kind.next_temperature};
  // Written so that NaN is refused.
  if (!(kind.next_temperature >= kLeastKindTemperature &&
        kind.next_temperature <= kMostKindTemperature)) {
    return BadKind(
        kind, absl::StrCat(".next_temperature: must be in [",
                           kLeastKindTemperature, ", ", kMostKindTemperature,
                           "], is ", kind.next_temperature));
  }
  if (!kind.next.has_value()) return rule;
  rule.restricts = 1;
  if (kind.next->empty()) return BadKind(kind, ".next: names no kind");
  for (const std::string& name : *kind.next) {
    const size_t named = FindKind(kinds, name);
    if (named == kinds.size()) {
      return BadKind(kind, absl::StrCat(".next: no kind is named ",
                                        absl::CHexEscape(name)));
    }
    rule.next |= uint64_t{1} << named;
  }
  return rule;
}

}  // namespace

absl::StatusOr<TokenKinds> TokenKinds::Make(std::vector<TokenKind> kinds,
                                            int64_t vocab_size) {
  if (kinds.size() > kMostTokenKinds) {
    return absl::InvalidArgumentError(absl::StrCat(
        "kinds: must be at most ", kMostTokenKinds, ", are ", kinds.size()));
  }
  TokenKinds made;
  made.kind_of_.assign(static_cast<size_t>(vocab_size), kNoTokenKind);
  for (size_t i = 0; i < kinds.size(); ++i) {
    if (kinds[i].name.empty()) {
      return absl::InvalidArgumentError("kinds: the name of a kind is empty");
    }
    if (FindKind(kinds, kinds[i].name) != i) {
      return BadKind(kinds[i], ": two kinds have this name");
    }
    TXL_RETURN_IF_ERROR(TakeTokens(kinds, i, made.kind_of_));
  }
  for (size_t i = 0; i < kinds.size(); ++i) {
    TXL_ASSIGN_OR_RETURN(made.rules_[i], RuleOf(kinds, kinds[i]));
  }
  made.kinds_ = std::move(kinds);
  return made;
}

void TokenKinds::Forbid(int32_t last, absl::Span<double> logprobs) const {
  const KindRule& rule = After(last);
  if (rule.restricts == 0) return;
  for (size_t id = 0; id < logprobs.size(); ++id) {
    if (!HoldsKind(rule.next, KindOf(static_cast<int32_t>(id)))) {
      logprobs[id] = -std::numeric_limits<double>::infinity();
    }
  }
}

}  // namespace txl
