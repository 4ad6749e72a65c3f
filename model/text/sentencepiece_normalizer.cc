#include "model/text/sentencepiece_normalizer.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "model/text/utf8.h"

namespace txl {
namespace {

// Fields of a unit of the trie.
bool HasLeaf(uint32_t unit) { return (unit >> 8 & 1) != 0; }
uint32_t LeafValue(uint32_t unit) { return unit & 0x7FFFFFFF; }
uint32_t Label(uint32_t unit) { return unit & 0x800000FF; }
uint32_t Offset(uint32_t unit) { return unit >> 10 << ((unit & 0x200) >> 6); }

uint32_t Word(absl::string_view bytes, size_t at) {
  uint32_t word = 0;
  for (size_t i = 4; i-- > 0;) {
    word = word << 8 | static_cast<unsigned char>(bytes[at + i]);
  }
  return word;
}

}  // namespace

absl::StatusOr<CharacterMap> CharacterMap::Parse(absl::string_view content) {
  CharacterMap map;
  if (content.empty()) return map;
  const absl::Status damaged =
      absl::InvalidArgumentError("its table of characters is damaged");
  if (content.size() < 4) return damaged;
  const size_t trie_bytes = Word(content, 0);
  content.remove_prefix(4);
  if (trie_bytes == 0 || trie_bytes % 4 != 0 || trie_bytes > content.size()) {
    return damaged;
  }
  map.units_.reserve(trie_bytes / 4);
  for (size_t at = 0; at < trie_bytes; at += 4) {
    map.units_.push_back(Word(content, at));
  }
  map.texts_ = std::string(content.substr(trie_bytes));
  // Every text ends inside, wherever it starts.
  if (map.texts_.empty() || map.texts_.back() != '\0') return damaged;
  return map;
}

CharacterMap::Match CharacterMap::LongestAt(absl::string_view text) const {
  Match match;
  if (units_.empty()) return match;
  uint32_t at = Offset(units_[0]);
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    at ^= byte;
    if (at >= units_.size() || Label(units_[at]) != byte) break;
    const uint32_t unit = units_[at];
    at ^= Offset(unit);
    if (!HasLeaf(unit)) continue;
    if (at >= units_.size()) break;
    const uint32_t begin = LeafValue(units_[at]);
    if (begin >= texts_.size()) break;
    match.size = i + 1;
    match.replacement = absl::string_view(texts_.c_str() + begin);
  }
  return match;
}

PieceNormalizer::PieceNormalizer(const SentencePieceModel& model,
                                 CharacterMap map,
                                 const PieceIndex& user_defined)
    : model_(&model), map_(std::move(map)), user_defined_(&user_defined) {}

CharacterMap::Match PieceNormalizer::Next(absl::string_view text) const {
  if (const size_t size = user_defined_->LongestPrefix(text); size > 0) {
    return {size, text.substr(0, size)};
  }
  const CharacterMap::Match match = map_.LongestAt(text);
  if (match.size > 0) return match;
  // A damaged table may have cut a character in two.
  const size_t size = std::max<size_t>(1, FirstCharacter(text).length);
  return {size, text.substr(0, size)};
}

std::string PieceNormalizer::Normalize(absl::string_view text) const {
  const bool tidy = model_->remove_extra_whitespace;
  const absl::string_view space =
      model_->escape_whitespace ? kPieceSpace : absl::string_view(" ");
  while (tidy && !text.empty()) {
    const CharacterMap::Match next = Next(text);
    if (next.replacement != " ") break;
    text.remove_prefix(next.size);
  }
  if (text.empty()) return "";
  std::string out;
  const bool adds = model_->add_dummy_prefix;
  if (adds && !model_->whitespace_is_suffix) absl::StrAppend(&out, space);
  bool after_space = tidy;
  while (!text.empty()) {
    const CharacterMap::Match next = Next(text);
    absl::string_view piece = next.replacement;
    while (after_space && absl::ConsumePrefix(&piece, " ")) {
    }
    for (size_t at = 0; at < piece.size();) {
      const size_t end = std::min(piece.find(' ', at), piece.size());
      absl::StrAppend(&out, piece.substr(at, end - at),
                      end < piece.size() ? space : "");
      at = end + 1;
    }
    if (!piece.empty()) after_space = absl::EndsWith(piece, " ");
    if (!tidy) after_space = false;
    text.remove_prefix(next.size);
  }
  while (tidy && absl::EndsWith(out, space)) {
    out.resize(out.size() - space.size());
  }
  if (adds && model_->whitespace_is_suffix) absl::StrAppend(&out, space);
  return out;
}

}  // namespace txl
