#include "model/text/sentencepiece_cutter.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <queue>
#include <string>
#include <utility>
#include <vector>

#include "model/base/status_macros.h"
#include "model/text/utf8.h"

namespace txl {
namespace {

using Entries = std::vector<std::pair<std::string, int32_t>>;

// How much worse an unknown character is than the worst piece.
constexpr float kUnknownPenalty = 10.0f;

// What a user-defined piece of so many bytes is worth, its own score aside, as
// of version 0.2.2 of the library. Before, it was -0.1 where all scores are
// negative. Scores are logarithms of probabilities, so that either beats every
// other way to cut the same text, and mostly what reaches beyond it.
float UserDefinedScore(size_t bytes) {
  return 0.1f * static_cast<float>(bytes) - 0.1f;
}

// Cuts are given when there are so many bytes of them.
constexpr size_t kGivenBytes = 4096;

bool StandsForText(PieceType type) {
  return type == PieceType::kNormal || type == PieceType::kUserDefined ||
         type == PieceType::kUnused;
}

Entries EntriesOf(const SentencePieceModel& model, bool only_user_defined) {
  Entries entries;
  for (size_t i = 0; i < model.pieces.size(); ++i) {
    const SentencePiece& piece = model.pieces[i];
    if (only_user_defined ? piece.type == PieceType::kUserDefined
                          : StandsForText(piece.type)) {
      entries.emplace_back(piece.text, static_cast<int32_t>(i));
    }
  }
  return entries;
}

// Joining pairs: a chain of parts, and a queue of pairs that are pieces.
class PairJoiner {
 public:
  PairJoiner(const SentencePieceModel& model, const PieceCutter& cutter,
             absl::string_view text)
      : model_(model), cutter_(cutter) {
    while (!text.empty()) {
      const size_t defined = cutter.user_defined().LongestPrefix(text);
      const size_t size = defined > 0 ? defined : FirstCharacter(text).length;
      const int index = static_cast<int>(parts_.size());
      parts_.push_back(
          {text.substr(0, size), index - 1, index + 1, defined > 0});
      text.remove_prefix(size);
    }
    if (!parts_.empty()) parts_.back().next = -1;
    for (size_t i = 1; i < parts_.size(); ++i) {
      Offer(static_cast<int>(i) - 1, static_cast<int>(i));
    }
  }

  absl::Status Join(PieceCutter::Taker take) {
    while (!queue_.empty()) {
      const Pair pair = queue_.top();
      queue_.pop();
      Part& left = parts_[pair.left];
      Part& right = parts_[pair.right];
      // One of the two has been joined to something else since.
      if (left.text.empty() || right.text.empty() ||
          left.text.size() + right.text.size() != pair.size) {
        continue;
      }
      left.text = absl::string_view(left.text.data(), pair.size);
      left.next = right.next;
      if (right.next >= 0) parts_[right.next].previous = pair.left;
      right.text = absl::string_view();
      Offer(left.previous, pair.left);
      Offer(pair.left, left.next);
    }
    for (const Part& part : parts_) {
      if (!part.text.empty()) TXL_RETURN_IF_ERROR(Give(part.text, take));
    }
    return absl::OkStatus();
  }

 private:
  struct Part {
    absl::string_view text;  // empty: joined to the part before
    int previous, next;      // -1: none
    bool is_fixed;           // user-defined, never joined
  };
  struct Pair {
    float score;
    int left, right;
    size_t size;
    bool operator<(const Pair& other) const {  // the largest comes first
      return score < other.score || (score == other.score && left > other.left);
    }
  };

  void Offer(int left, int right) {
    if (left < 0 || right < 0 || parts_[left].is_fixed ||
        parts_[right].is_fixed) {
      return;
    }
    const absl::string_view first = parts_[left].text;
    const size_t size = first.size() + parts_[right].text.size();
    const absl::string_view joined(first.data(), size);
    const int32_t id = cutter_.Find(joined);
    if (id < 0) return;
    queue_.push({model_.pieces[id].score, left, right, size});
    if (model_.pieces[id].type == PieceType::kUnused) {
      halves_[joined] = first.size();
    }
  }

  // A piece that is out of use is cut where it was joined; a character that is
  // one is unknown.
  absl::Status Give(absl::string_view text, PieceCutter::Taker take) {
    std::vector<absl::string_view> pending = {text};
    while (!pending.empty()) {
      const absl::string_view piece = pending.back();
      pending.pop_back();
      const int32_t id = cutter_.Find(piece);
      const auto half = halves_.find(piece);
      const bool used = id >= 0 && model_.pieces[id].type != PieceType::kUnused;
      if (!used && half != halves_.end()) {
        pending.push_back(piece.substr(half->second));
        pending.push_back(piece.substr(0, half->second));
        continue;
      }
      TXL_RETURN_IF_ERROR(take({piece, used ? id : model_.unknown_id}));
    }
    return absl::OkStatus();
  }

  const SentencePieceModel& model_;
  const PieceCutter& cutter_;
  std::vector<Part> parts_;
  std::priority_queue<Pair> queue_;
  absl::flat_hash_map<absl::string_view, size_t> halves_;
};

// The best ways to cut a text, found from its start on. What lies before a
// place that every way goes through is given away, so that little is held.
class BestCuts {
 public:
  explicit BestCuts(absl::string_view text) : text_(text) { best_.resize(1); }

  // A piece from `begin`, which a way ends at, to `end`.
  void Offer(size_t begin, size_t end, float score, int32_t id) {
    reach_ = std::max(reach_, end);
    if (best_.size() <= reach_ - given_) best_.resize(reach_ - given_ + 1);
    const float sum = score + best_[begin - given_].score;
    Best& best = best_[end - given_];
    if (best.size > 0 && !(sum > best.score)) return;
    best = {id, sum, end - begin};
  }

  // Whether no piece so far lies across `place` or ends behind it.
  bool AllGoThrough(size_t place) const { return place == reach_; }
  size_t given() const { return given_; }

  // Gives the cuts before `place`. REQUIRES: all ways go through it.
  absl::Status GiveUpTo(size_t place, PieceCutter::Taker take) {
    std::vector<PieceCutter::Cut> cuts;
    for (size_t end = place; end > given_;) {
      const Best& best = best_[end - given_];
      end -= best.size;
      cuts.push_back({text_.substr(end, best.size), best.id});
    }
    for (size_t i = cuts.size(); i-- > 0;) TXL_RETURN_IF_ERROR(take(cuts[i]));
    best_ = {best_[place - given_]};
    given_ = place;
    return absl::OkStatus();
  }

 private:
  struct Best {  // of the ways that end at a place
    int32_t id = -1;
    float score = 0;
    size_t size = 0;  // of the last piece; 0: no way yet
  };

  absl::string_view text_;
  size_t given_ = 0;
  size_t reach_ = 0;        // where the piece that ends last ends
  std::vector<Best> best_;  // by place, from given_ on
};

}  // namespace

PieceCutter::PieceCutter(const SentencePieceModel& model)
    : model_(&model),
      index_(EntriesOf(model, false)),
      user_defined_(EntriesOf(model, true)) {
  min_score_ = std::numeric_limits<float>::max();
  for (size_t i = 0; i < model.pieces.size(); ++i) {
    const SentencePiece& piece = model.pieces[i];
    if (StandsForText(piece.type)) {
      ids_.emplace(piece.text, static_cast<int32_t>(i));
    }
    if (piece.type != PieceType::kNormal) continue;
    min_score_ = std::min(min_score_, piece.score);
  }
}

int32_t PieceCutter::Find(absl::string_view text) const {
  if (text.size() > index_.longest()) return -1;
  const auto found = ids_.find(text);
  return found == ids_.end() ? -1 : found->second;
}

absl::Status PieceCutter::CutUp(absl::string_view text, Taker take) const {
  return model_->algorithm == SentencePieceModel::Algorithm::kBpe
             ? Bpe(text, take)
             : Unigram(text, take);
}

absl::Status PieceCutter::Bpe(absl::string_view text, Taker take) const {
  size_t begin = 0;
  size_t reach = 0;  // where the pieces found so far end
  for (size_t at = 0; at < text.size();) {
    // Nothing is ever joined across this place: it would be a piece.
    if (at >= reach && at - begin >= kGivenBytes) {
      PairJoiner joiner(*model_, *this, text.substr(begin, at - begin));
      TXL_RETURN_IF_ERROR(joiner.Join(take));
      begin = at;
    }
    const absl::string_view rest = text.substr(at);
    reach = std::max(reach, at + index_.LongestPrefix(rest));
    at += FirstCharacter(rest).length;
  }
  return PairJoiner(*model_, *this, text.substr(begin)).Join(take);
}

absl::Status PieceCutter::Unigram(absl::string_view text, Taker take) const {
  BestCuts cuts(text);
  for (size_t begin = 0; begin < text.size();) {
    if (begin - cuts.given() >= kGivenBytes && cuts.AllGoThrough(begin)) {
      TXL_RETURN_IF_ERROR(cuts.GiveUpTo(begin, take));
    }
    const size_t character = FirstCharacter(text.substr(begin)).length;
    bool has_character = false;
    index_.VisitPrefixes(text.substr(begin), [&](size_t size, int32_t id) {
      const SentencePiece& piece = model_->pieces[id];
      if (piece.type == PieceType::kUnused) return;
      const float score = piece.type == PieceType::kUserDefined
                              ? UserDefinedScore(size)
                              : piece.score;
      cuts.Offer(begin, begin + size, score, id);
      has_character = has_character || size == character;
    });
    if (!has_character) {
      cuts.Offer(begin, begin + character, min_score_ - kUnknownPenalty,
                 model_->unknown_id);
    }
    begin += character;
  }
  return cuts.GiveUpTo(text.size(), take);
}

PieceIndex::PieceIndex(std::vector<std::pair<std::string, int32_t>> entries)
    : nodes_(1) {
  std::sort(entries.begin(), entries.end());
  // Entries of each node, in the order of the nodes; those that end in the node
  // are left out.
  std::vector<std::pair<size_t, size_t>> ranges = {{0, entries.size()}};
  size_t depth = 0;
  size_t level_end = 1;  // nodes before it share `depth` bytes at most
  for (size_t node = 0; node < nodes_.size(); ++node) {
    if (node == level_end) {
      ++depth;
      level_end = nodes_.size();
    }
    auto [begin, end] = ranges[node];
    if (begin < end && entries[begin].first.size() == depth) {
      longest_ = depth;
      nodes_[node].id = entries[begin++].second;
    }
    nodes_[node].children = static_cast<uint32_t>(nodes_.size());
    while (begin < end) {
      const char byte = entries[begin].first[depth];
      const size_t first = begin;
      while (begin < end && entries[begin].first[depth] == byte) ++begin;
      ranges.emplace_back(first, begin);
      nodes_.emplace_back().byte = static_cast<unsigned char>(byte);
      ++nodes_[node].n_children;
    }
  }
  for (uint32_t i = 0; i < nodes_[0].n_children; ++i) {
    first_[nodes_[1 + i].byte] = 1 + i;
  }
}

size_t PieceIndex::LongestPrefix(absl::string_view text) const {
  size_t longest = 0;
  VisitPrefixes(text, [&](size_t size, int32_t) { longest = size; });
  return longest;
}

uint32_t PieceIndex::Child(const Node& node, char byte) const {
  const auto wanted = static_cast<unsigned char>(byte);
  const auto begin = nodes_.begin() + node.children;
  const auto end = begin + node.n_children;
  const auto found = std::lower_bound(
      begin, end, wanted,
      [](const Node& child, unsigned char b) { return child.byte < b; });
  if (found == end || found->byte != wanted) return 0;
  return static_cast<uint32_t>(found - nodes_.begin());
}

}  // namespace txl
