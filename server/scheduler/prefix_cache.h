#pragma once

// Prompts whose rows are still there: in a slot, or in a state image on the
// host. A turn that begins a session looks for the longest common prefix of its
// prompt with one of them and feeds the rest only
// (docs/design/prefix-cache.md).
//
// A row depends on its position and the ids up to it, on nothing else. So the
// rows of a prompt of at most M ids serve every prefix of it. Behind M ids the
// first rows are overwritten: an image then serves the position at its end
// only, and a slot as far back as its ring has spare rows.
//
// Prompts are found by their ids, not by a digest of them, and only by turns of
// their own tenant: neither a collision nor another tenant's turn can hit.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "model/memory/state_image.h"
#include "model/sampling/distribution.h"

namespace txl {

// Log-probabilities of a prompt's ids behind the first one.
struct PrefixScores {
  std::vector<float> logprobs;  // of ids 1, 2, ...
  // The most probable ids at the place of each: as many at every place.
  std::vector<std::vector<TokenLogprob>> top_logprobs;

  int64_t size() const { return static_cast<int64_t>(logprobs.size()); }
  // Alternatives at each place.
  int64_t top() const {
    return top_logprobs.empty() ? 0
                                : static_cast<int64_t>(top_logprobs[0].size());
  }
};

// How many first ids are equal.
inline int64_t CommonIds(absl::Span<const int32_t> a,
                         absl::Span<const int32_t> b) {
  const size_t most = std::min(a.size(), b.size());
  return std::mismatch(a.begin(), a.begin() + most, b.begin()).first -
         a.begin();
}

struct KeptPrompt {
  std::string tenant;
  std::vector<int32_t> ids;
  // Rows of the first ids that are there; at most ids.size().
  int64_t rows = 0;
  // The shortest prefix that they serve: of fewer rows some that it needs were
  // overwritten. In [1, rows].
  int64_t shortest = 1;
  std::shared_ptr<const PrefixScores> scores = nullptr;  // maybe not of all ids
};

struct PrefixQuery {
  absl::string_view tenant;
  absl::Span<const int32_t> ids;
  int64_t most_rows = 0;  // rows that the turn can begin with
  // Such rows of an image. They are one fewer if the turn samples nothing: the
  // result of its own last row tells that the image has arrived.
  int64_t most_rows_of_image = 0;
  // The turn reports the log-probability of each id, and so many alternatives.
  bool scores = false;
  int64_t top_logprobs = 0;
};

// A kept prompt that a query can begin with.
struct PrefixHit {
  int64_t rows = 0;       // 0: there is none
  int64_t matched = 0;    // first ids that are equal, >= rows
  int64_t kept_rows = 0;  // rows of the kept prompt
  int32_t slot = -1;      // where they are; -1: in the image
  std::shared_ptr<const StateImage> image = nullptr;
  std::shared_ptr<const PrefixScores> scores = nullptr;
};

struct PrefixHits {
  PrefixHit slot;   // the longest in a slot
  PrefixHit image;  // the longest in an image
  // The most ids that the query shares with a kept prompt, whether its rows
  // serve or not.
  int64_t shared = 0;
};

struct PrefixCacheOptions {
  // Host memory for images and for the ids and scores of all kept prompts; 0
  // turns the cache off.
  int64_t bytes = 0;
  int32_t slots = 0;
  int64_t least_rows = 16;    // fewer are neither kept nor found
  int64_t images_a_path = 4;  // of prompts that begin with each other
};

// Owned by the scheduler's loop; not thread-safe. A look-up costs a few
// comparisons of ids for each doubling of the number of prompts.
class PrefixCache {
 public:
  explicit PrefixCache(const PrefixCacheOptions& options);

  bool on() const { return options_.bytes > 0; }

  PrefixHits Find(const PrefixQuery& query) const;
  // The image served a turn: it is given up after those that did not.
  void Used(const StateImage* image);

  // The slot holds the prompt's rows until TakeSlot. Replaces what it held.
  // Images give way to its ids and scores; if those are too many, it is not
  // kept.
  void KeepSlot(int32_t slot, KeptPrompt prompt);
  // The rows of the slot are about to change. What it held, if anything.
  std::optional<KeptPrompt> TakeSlot(int32_t slot);
  // More rows of the slot are overwritten: prefixes of fewer than `shortest`
  // rows are no longer there. REQUIRES: Holds, at most the prompt's rows.
  void Shorten(int32_t slot, int64_t shortest) {
    int64_t& was = (*in_slot_[slot])->second.shortest;
    was = std::max(was, shortest);
  }
  bool Holds(int32_t slot) const { return in_slot_[slot].has_value(); }
  // How many rows and ids the prompt there has. REQUIRES: Holds.
  int64_t RowsIn(int32_t slot) const { return (*in_slot_[slot])->second.rows; }
  int64_t IdsIn(int32_t slot) const {
    return static_cast<int64_t>((*in_slot_[slot])->first.ids.size());
  }
  // Of these slots the one whose rows have been there longest; those without a
  // prompt first. REQUIRES: not empty.
  int32_t LeastUseful(absl::Span<const int32_t> slots) const;

  // A prompt was looked for.
  void NoteLookup(bool hit);
  // Whether prompts of late have begun like no other. Then few are kept, so
  // that they cost next to nothing.
  bool misses() const;
  // Whether an image of the prompt would serve turns that no image serves now.
  // While misses(), this is true for only one in eight of such prompts.
  bool IsWorthAnImage(const KeptPrompt& prompt);
  // Gives up the least recently used images until it fits; the image itself if
  // it is too large, or if another one serves the same prompts.
  void KeepImage(KeptPrompt prompt, std::shared_ptr<const StateImage> image);
  // The image cannot be read.
  void DropImage(const StateImage* image);
  void DropTenant(absl::string_view tenant);

  int64_t images() const { return static_cast<int64_t>(by_use_.size()); }
  int64_t bytes() const { return bytes_; }
  int64_t evictions() const { return evictions_; }

 private:
  struct Key {
    std::string tenant;
    std::vector<int32_t> ids;
    uint64_t number = 0;  // tells equal prompts apart
  };
  struct View {
    absl::string_view tenant;
    absl::Span<const int32_t> ids;
  };
  struct Before {
    using is_transparent = void;
    bool operator()(const Key& a, const Key& b) const;
    bool operator()(const Key& a, const View& b) const;
    bool operator()(const View& a, const Key& b) const;
  };
  struct Entry;
  using Entries = std::map<Key, Entry, Before>;
  struct Entry {
    int64_t rows = 0;
    int64_t shortest = 1;
    std::shared_ptr<const PrefixScores> scores;
    int32_t slot = -1;
    std::shared_ptr<const StateImage> image;
    int64_t bytes = 0;
    uint64_t used_at = 0;  // of an image: its key in by_use_
  };
  using ConstIterator = Entries::const_iterator;

  // Calls look(entry, equal first ids) for entries that share ids with the
  // query, those that share most among them.
  template <typename Look>
  void LookAround(const View& query, const Look& look) const;
  Entries::iterator Insert(KeptPrompt prompt, Entry entry);
  void MoveToEnd(Entries::iterator image);  // of by_use_
  void Erase(Entries::iterator entry);
  // Gives up images, the least recently used first, until all fits.
  void MakeRoom();
  // Images of which the prompt makes one useless; those of one path beyond
  // options_.images_a_path.
  void EraseCovered(const KeptPrompt& prompt);
  bool IsCovered(const KeptPrompt& prompt) const;

  const PrefixCacheOptions options_;
  Entries entries_;
  std::map<uint64_t, Entries::iterator> by_use_;  // images, least recent first
  std::unordered_map<const StateImage*, Entries::iterator> by_image_;
  std::vector<std::optional<Entries::iterator>> in_slot_;
  uint64_t next_number_ = 0;
  uint64_t uses_ = 0;
  int64_t bytes_ = 0;
  int64_t evictions_ = 0;
  int64_t misses_in_a_row_ = 0;
  uint64_t asked_ = 0;
};

// What a turn does with what was found.
struct PrefixChoice {
  enum class Kind {
    kFeed,      // the whole prompt: nothing is worth moving
    kTakeOver,  // the turn runs in the slot that has the rows
    kCopy,      // of the slot, into the turn's own
    kImport,    // of the image
  };
  Kind kind = Kind::kFeed;
  int64_t rows = 0;
};

// Pure. `slot_is_free`: no session lives in the slot that was found.
// `mem_len`: rows that a copy of a slot moves, however much of it is used.
// `least_rows`: as PrefixCacheOptions has it.
PrefixChoice ChoosePrefix(const PrefixHits& hits, bool slot_is_free,
                          int64_t mem_len, int64_t least_rows);

}  // namespace txl
