#include "server/scheduler/own_ngrams.h"

#include <algorithm>

#include "model/text/ngram_table.h"

namespace txl {
namespace {

// Of the `length` ids before `end`.
size_t PlaceOf(const TokenSequence& ids, int64_t end, int64_t length,
               size_t places) {
  uint64_t hash = 0;
  for (int64_t i = 1; i <= length; ++i) {
    hash = ExtendNgramHash(hash, ids[end - i]);
  }
  return hash % places;
}

}  // namespace

void OwnNgrams::Update(const TokenSequence& ids) {
  if (first_ < 0) {
    first_ = std::max<int64_t>(ids.size() - kOldest, 0);
    noted_ = first_;
  }
  for (; noted_ < ids.size(); ++noted_) {
    const auto place = static_cast<uint32_t>(noted_ - first_ + 1);
    if (noted_ >= kShort) {
      short_[PlaceOf(ids, noted_, kShort, kPlaces)] = place;
    }
    if (noted_ >= kLong) long_[PlaceOf(ids, noted_, kLong, kPlaces)] = place;
  }
}

std::optional<OwnNgrams::Match> OwnNgrams::Find(const TokenSequence& ids) {
  Update(ids);
  const std::optional<Match> match = FindIn(long_, kLong, ids);
  return match.has_value() ? match : FindIn(short_, kShort, ids);
}

std::optional<OwnNgrams::Match> OwnNgrams::FindIn(
    const Places& places, int64_t length, const TokenSequence& ids) const {
  const int64_t end = ids.size();
  if (end < length) return std::nullopt;
  const uint32_t place = places[PlaceOf(ids, end, length, kPlaces)];
  if (place == 0) return std::nullopt;
  Match match;
  match.next = first_ + place - 1;
  const int64_t most = std::min(match.next, kLongestMatch);
  while (match.same_ids < most && ids[match.next - 1 - match.same_ids] ==
                                      ids[end - 1 - match.same_ids]) {
    ++match.same_ids;
  }
  // Another context lies at the same place.
  if (match.same_ids < length) return std::nullopt;
  return match;
}

}  // namespace txl
