#pragma once

// Kinds of tokens, and which kinds may follow which: the grammar of a model of
// events, for example of music. Plain numbers; kinds.json of a model directory
// holds them (model/config/token_kinds_file.h).

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "model/base/anywhere.h"

namespace txl {

inline constexpr size_t kMostTokenKinds = 64;
// Kind of an id that is in none.
inline constexpr uint8_t kNoTokenKind = kMostTokenKinds;
inline constexpr double kLeastKindTemperature = 0.01;
inline constexpr double kMostKindTemperature = 100;

struct TokenKind {
  // First and last id.
  using Range = std::pair<int32_t, int32_t>;

  std::string name;
  std::vector<Range> tokens = {};
  // Names of the kinds that may follow; absent: any token may.
  std::optional<std::vector<std::string>> next = std::nullopt;
  double next_temperature = 1;  // of the token that follows: a factor
};

// Devices share these with the host.

// Whether a set of kinds, a bit for each, has this one; no set has
// kNoTokenKind.
TXL_ANYWHERE bool HoldsKind(uint64_t kinds, uint8_t kind) {
  return kind < kNoTokenKind && (kinds >> kind & 1) != 0;
}

// What holds for the token behind one of a kind.
struct KindRule {
  uint64_t next = 0;      // kinds that may follow
  int32_t restricts = 0;  // 0: any token may follow, also one of no kind
  double next_temperature = 1;
};

// Immutable.
class TokenKinds {
 public:
  // The rule behind each kind, and, as the last one, that behind an id of no
  // kind, which restricts nothing.
  using Rules = std::array<KindRule, kMostTokenKinds + 1>;

  // Errors: InvalidArgument that begins with the field ("kinds.Bar.next: "):
  // more than kMostTokenKinds; a name that is empty or stands twice; no token;
  // an id outside of [0, vocab_size) or in two kinds; a range that ends before
  // it begins; `next` empty or with an unknown name; next_temperature below
  // kLeastKindTemperature or above kMostKindTemperature.
  static absl::StatusOr<TokenKinds> Make(std::vector<TokenKind> kinds,
                                         int64_t vocab_size);

  // The rule for the token behind `id`.
  const KindRule& After(int32_t id) const { return rules_[KindOf(id)]; }
  // l := -inf for each id of `logprobs` [V] that may not stand behind `last`.
  void Forbid(int32_t last, absl::Span<double> logprobs) const;

  // Index of an id's kind, or kNoTokenKind.
  uint8_t KindOf(int32_t id) const {
    return id >= 0 && static_cast<size_t>(id) < kind_of_.size()
               ? kind_of_[static_cast<size_t>(id)]
               : kNoTokenKind;
  }
  const std::vector<TokenKind>& kinds() const { return kinds_; }

  // Tables for a device: the kind of each id, [V], and the rules.
  const std::vector<uint8_t>& kind_of() const { return kind_of_; }
  const Rules& rules() const { return rules_; }

 private:
  TokenKinds() = default;

  std::vector<TokenKind> kinds_;
  std::vector<uint8_t> kind_of_;
  Rules rules_;
};

}  // namespace txl
