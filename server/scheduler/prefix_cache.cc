#include "server/scheduler/prefix_cache.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>

namespace txl {
namespace {

// Entries that a look-up compares in each direction of the order.
constexpr int kNeighbours = 32;
// Shorter prompts on the query's path that it looks at.
constexpr int kAncestors = 8;
// An image adds nothing if another one has all but this part of its rows.
constexpr int64_t kNewPart = 8;
// After so many prompts in a row that began like none, prompts seem to share
// nothing.
constexpr int64_t kMissesInARow = 8;
// Rows are copied from slot to slot so many times as fast as they are fed, at
// least.
constexpr int64_t kRowsOfASlotCopy = 16;
// Bytes of an entry beside its ids, scores and rows.
constexpr int64_t kEntryBytes = 512;

int64_t BytesOf(const PrefixScores* scores) {
  if (scores == nullptr) return 0;
  const auto alternatives = static_cast<int64_t>(
      sizeof(std::vector<TokenLogprob>) +
      static_cast<size_t>(scores->top()) * sizeof(TokenLogprob));
  return scores->size() * (static_cast<int64_t>(sizeof(float)) + alternatives);
}

// Rows of an entry that shares `matched` ids with the query and serve it.
template <typename Entry>
int64_t UsefulRows(const Entry& entry, const PrefixQuery& query,
                   int64_t matched) {
  const PrefixScores* const scores = entry.scores.get();
  int64_t useful = std::min(
      {entry.rows, matched,
       entry.image == nullptr ? query.most_rows : query.most_rows_of_image});
  if (query.scores) {
    // The row of an id scores the next one.
    const bool enough =
        scores != nullptr && scores->top() >= query.top_logprobs;
    useful = enough ? std::min({useful, matched - 1, scores->size()}) : 0;
  }
  return useful < entry.shortest ? 0 : useful;
}

}  // namespace

PrefixCache::PrefixCache(const PrefixCacheOptions& options)
    : options_(options), in_slot_(options.slots) {}

bool PrefixCache::Before::operator()(const Key& a, const Key& b) const {
  return std::tie(a.tenant, a.ids, a.number) <
         std::tie(b.tenant, b.ids, b.number);
}

bool PrefixCache::Before::operator()(const Key& a, const View& b) const {
  if (a.tenant != b.tenant) return a.tenant < b.tenant;
  return std::lexicographical_compare(a.ids.begin(), a.ids.end(), b.ids.begin(),
                                      b.ids.end());
}

bool PrefixCache::Before::operator()(const View& a, const Key& b) const {
  if (a.tenant != b.tenant) return a.tenant < b.tenant;
  return std::lexicographical_compare(a.ids.begin(), a.ids.end(), b.ids.begin(),
                                      b.ids.end());
}

// In the order of ids, those that share most with the query stand next to
// where it would stand. A prompt that the query begins with may stand further
// before it, behind longer ones that part from the query later than it ends; it
// stands where the common prefix itself would.
template <typename Look>
void PrefixCache::LookAround(const View& query, const Look& look) const {
  const auto shared = [&query](ConstIterator it) {
    return it->first.tenant == query.tenant
               ? CommonIds(it->first.ids, query.ids)
               : 0;
  };
  const ConstIterator at = entries_.lower_bound(query);
  ConstIterator it = at;
  for (int i = 0; i < kNeighbours && it != entries_.end(); ++i, ++it) {
    const int64_t ids = shared(it);
    if (ids < options_.least_rows) break;
    look(it, ids);
  }
  it = at;
  int64_t before = 0;
  for (int i = 0; i < kNeighbours && it != entries_.begin(); ++i) {
    const int64_t ids = shared(--it);
    if (ids < options_.least_rows) break;
    if (i == 0) before = ids;
    look(it, ids);
  }
  for (int i = 0; i < kAncestors && before >= options_.least_rows; ++i) {
    const View prefix{query.tenant,
                      query.ids.first(static_cast<size_t>(before))};
    const ConstIterator first = entries_.lower_bound(prefix);
    it = first;
    for (int j = 0; j < kAncestors && it != entries_.end(); ++j, ++it) {
      if (shared(it) < before) break;
      look(it, before);
    }
    if (first == entries_.begin()) break;
    it = std::prev(first);
    const int64_t ids = shared(it);
    if (ids >= options_.least_rows) look(it, ids);
    before = std::min(ids, before - 1);
  }
}

PrefixHits PrefixCache::Find(const PrefixQuery& query) const {
  PrefixHits hits;
  LookAround({query.tenant, query.ids}, [&](ConstIterator it, int64_t matched) {
    hits.shared = std::max(hits.shared, matched);
    const Entry& entry = it->second;
    const int64_t rows = UsefulRows(entry, query, matched);
    PrefixHit& best = entry.image == nullptr ? hits.slot : hits.image;
    if (rows < options_.least_rows || rows <= best.rows) return;
    best = {rows, matched, entry.rows, entry.slot, entry.image, entry.scores};
  });
  return hits;
}

void PrefixCache::Used(const StateImage* image) {
  const auto found = by_image_.find(image);
  if (found == by_image_.end()) return;
  by_use_.erase(found->second->second.used_at);
  MoveToEnd(found->second);
}

void PrefixCache::MoveToEnd(Entries::iterator image) {
  image->second.used_at = ++uses_;
  by_use_.emplace(uses_, image);
}

PrefixCache::Entries::iterator PrefixCache::Insert(KeptPrompt prompt,
                                                   Entry entry) {
  entry.rows = prompt.rows;
  entry.shortest = prompt.shortest;
  entry.scores = std::move(prompt.scores);
  entry.bytes = BytesOf(entry.scores.get()) +
                static_cast<int64_t>(prompt.ids.size() * sizeof(int32_t));
  // There are as few entries of slots as slots.
  if (entry.image != nullptr) entry.bytes += kEntryBytes + entry.image->Bytes();
  bytes_ += entry.bytes;
  Key key{std::move(prompt.tenant), std::move(prompt.ids), next_number_++};
  return entries_.emplace(std::move(key), std::move(entry)).first;
}

void PrefixCache::Erase(Entries::iterator entry) {
  bytes_ -= entry->second.bytes;
  if (entry->second.image != nullptr) {
    by_image_.erase(entry->second.image.get());
    by_use_.erase(entry->second.used_at);
  } else {
    in_slot_[entry->second.slot].reset();
  }
  entries_.erase(entry);
}

void PrefixCache::KeepSlot(int32_t slot, KeptPrompt prompt) {
  TakeSlot(slot);
  if (!on() || prompt.rows < options_.least_rows) return;
  Entry entry;
  entry.slot = slot;
  in_slot_[slot] = Insert(std::move(prompt), std::move(entry));
  MakeRoom();
  if (bytes_ > options_.bytes) TakeSlot(slot);
}

std::optional<KeptPrompt> PrefixCache::TakeSlot(int32_t slot) {
  if (!in_slot_[slot].has_value()) return std::nullopt;
  const Entries::iterator it = *in_slot_[slot];
  in_slot_[slot].reset();
  bytes_ -= it->second.bytes;
  auto node = entries_.extract(it);
  return KeptPrompt{.tenant = std::move(node.key().tenant),
                    .ids = std::move(node.key().ids),
                    .rows = node.mapped().rows,
                    .shortest = node.mapped().shortest,
                    .scores = std::move(node.mapped().scores)};
}

int32_t PrefixCache::LeastUseful(absl::Span<const int32_t> slots) const {
  // Numbers grow; -1: no prompt.
  const auto kept_at = [this](int32_t slot) {
    return Holds(slot) ? static_cast<int64_t>((*in_slot_[slot])->first.number)
                       : -1;
  };
  return *std::min_element(
      slots.begin(), slots.end(), [&](int32_t a, int32_t b) {
        return std::pair(kept_at(a), a) < std::pair(kept_at(b), b);
      });
}

bool PrefixCache::IsCovered(const KeptPrompt& prompt) const {
  bool covered = false;
  LookAround({prompt.tenant, prompt.ids}, [&](ConstIterator it, int64_t ids) {
    const Entry& entry = it->second;
    if (entry.image == nullptr || covered) return;
    const int64_t rows = std::min(entry.rows, ids);
    const bool serves = entry.shortest <= rows;
    const bool scored = prompt.scores == nullptr ||
                        (entry.scores != nullptr &&
                         entry.scores->top() >= prompt.scores->top() &&
                         entry.scores->size() >= prompt.scores->size());
    covered = serves && scored &&
              prompt.rows - rows < std::max<int64_t>(prompt.rows / kNewPart,
                                                     options_.least_rows);
  });
  return covered;
}

void PrefixCache::NoteLookup(bool hit) {
  misses_in_a_row_ = hit ? 0 : misses_in_a_row_ + 1;
}

bool PrefixCache::misses() const { return misses_in_a_row_ >= kMissesInARow; }

bool PrefixCache::IsWorthAnImage(const KeptPrompt& prompt) {
  if (!on() || prompt.rows < options_.least_rows || IsCovered(prompt)) {
    return false;
  }
  return !misses() || ++asked_ % kNewPart == 0;
}

void PrefixCache::EraseCovered(const KeptPrompt& prompt) {
  std::vector<Entries::iterator> covered;
  std::vector<Entries::iterator> left;
  LookAround({prompt.tenant, prompt.ids}, [&](ConstIterator it, int64_t ids) {
    const Entry& entry = it->second;
    if (entry.image == nullptr || entry.rows > ids) return;
    // What it scores, too.
    const bool scores = entry.scores == nullptr ||
                        (prompt.scores != nullptr &&
                         prompt.scores->top() >= entry.scores->top() &&
                         prompt.scores->size() >= entry.scores->size());
    const bool serves =
        prompt.shortest <= entry.rows && scores && entry.rows <= prompt.rows;
    std::vector<Entries::iterator>& path = serves ? covered : left;
    const auto found = by_image_.at(entry.image.get());
    if (std::find(path.begin(), path.end(), found) == path.end()) {
      path.push_back(found);
    }
  });
  for (const Entries::iterator it : covered) Erase(it);
  std::sort(left.begin(), left.end(), [](auto a, auto b) {
    return a->second.used_at < b->second.used_at;
  });
  const int64_t many = std::ssize(left) - options_.images_a_path;
  for (int64_t i = 0; i <= many; ++i) Erase(left[i]);
}

void PrefixCache::KeepImage(KeptPrompt prompt,
                            std::shared_ptr<const StateImage> image) {
  if (!on() || IsCovered(prompt)) return;
  EraseCovered(prompt);
  Entry entry;
  entry.image = std::move(image);
  const Entries::iterator it = Insert(std::move(prompt), std::move(entry));
  MoveToEnd(it);
  by_image_.emplace(it->second.image.get(), it);
  MakeRoom();
}

void PrefixCache::MakeRoom() {
  while (bytes_ > options_.bytes && !by_use_.empty()) {
    const Entries::iterator oldest = by_use_.begin()->second;
    ++evictions_;
    Erase(oldest);
  }
}

void PrefixCache::DropImage(const StateImage* image) {
  const auto found = by_image_.find(image);
  if (found != by_image_.end()) Erase(found->second);
}

void PrefixCache::DropTenant(absl::string_view tenant) {
  auto it = entries_.lower_bound(View{tenant, {}});
  while (it != entries_.end() && it->first.tenant == tenant) Erase(it++);
}

PrefixChoice ChoosePrefix(const PrefixHits& hits, bool slot_is_free,
                          int64_t mem_len, int64_t least_rows) {
  using Kind = PrefixChoice::Kind;
  const PrefixHit& slot = hits.slot;
  const PrefixHit& image = hits.image;
  // What little more an image has is fed sooner than it is moved.
  const bool nearly = slot.rows + least_rows > image.rows;
  // A prompt of which little is used stays for those that use more.
  if (slot_is_free && nearly && slot.rows > 0 &&
      2 * slot.rows >= slot.kept_rows) {
    return {Kind::kTakeOver, slot.rows};
  }
  if (nearly && slot.rows > 0 && kRowsOfASlotCopy * slot.rows >= mem_len) {
    return {Kind::kCopy, slot.rows};
  }
  if (image.rows > 0) return {Kind::kImport, image.rows};
  return {};
}

}  // namespace txl
