#pragma once

// Parts of sample_rows.cu: allowed ids, bias, penalties and bans
// (model/sampling/candidate_filter.h) on the words of a view. Words that they
// change are boxed (sampling_words.h) while the row is worked on, so that every
// look at the view finds the changed number in double precision, and put back
// after it. Where ids are allowed, they are boxed, too, and words that are not
// boxed are impossible (RowWords::only_adjusted).

#include "model/cuda/kernels/sampling_words.h"

namespace txl::cuda {

// The lists of a slot that hold for a row, as one: biases, banned ids, recent
// ids, allowed ids.
struct Adjustments {
  const SamplingSlot* slot;
  const double* biases;
  const int32_t* bias_ids;
  const int32_t* banned;
  const int32_t* recent;
  const int32_t* allowed;
  int32_t recent_capacity;
  int32_t bias_count = 0;
  int32_t banned_count = 0;
  int32_t recent_count = 0;
  int32_t allowed_count = 0;
  AdjustedWord* adjusted;

  TXL_DEVICE int32_t banned_end() const { return bias_count + banned_count; }
  TXL_DEVICE int32_t recent_end() const { return banned_end() + recent_count; }
  TXL_DEVICE int32_t end() const { return recent_end() + allowed_count; }
  TXL_DEVICE int32_t IdOf(int32_t entry) const {
    if (entry < bias_count) return bias_ids[entry];
    if (entry < banned_end()) return banned[entry - bias_count];
    if (entry >= recent_end()) return allowed[entry - recent_end()];
    const int64_t nth = slot->recent_count - 1 - (entry - banned_end());
    return recent[nth % recent_capacity];
  }
};

TXL_DEVICE Adjustments AdjustmentsOf(const SamplingArgs& args, int row) {
  const int32_t index = args.rows.slot[row];
  const SamplingSlots& slots = args.slots;
  Adjustments lists;
  lists.slot = slots.slot(index);
  lists.biases = slots.biases(index);
  lists.bias_ids = slots.bias_ids(index);
  lists.banned = slots.banned(index);
  lists.recent = slots.recent(index);
  lists.allowed = slots.allowed(index);
  lists.recent_capacity = slots.limits.recent;
  lists.adjusted =
      args.work.adjusted + static_cast<int64_t>(row) * slots.limits.total();
  if (args.targets != nullptr && args.targets[row] >= 0) return lists;
  lists.bias_count = lists.slot->bias_count;
  lists.allowed_count = lists.slot->allowed_count;
  if (args.rows.position[row] + 1 < lists.slot->min_position) {
    lists.banned_count = lists.slot->banned_count;
  }
  const int64_t known = lists.slot->recent_count < lists.recent_capacity
                            ? lists.slot->recent_count
                            : lists.recent_capacity;
  lists.recent_count = static_cast<int32_t>(
      lists.slot->window < known ? lists.slot->window : known);
  return lists;
}

// Boxes every listed word: of the entries with its id, one that all threads
// then find in the word itself. Whichever it is, the numbers are the same.
TXL_DEVICE int32_t BoxWords(const Adjustments& lists, const RowWords& words,
                            BinRange range, BlockScratch& scratch) {
  int32_t bad = 0;
  for (int32_t e = Thread(); e < lists.end(); e += Threads()) {
    const float* word = FindWord(words, range, lists.IdOf(e));
    if (word == nullptr) continue;
    bad |= IsLogprob(*word) ? 0 : 1;
    lists.adjusted[e].original = *word;
    lists.adjusted[e].logprob = lists.allowed_count > 0 ? kImpossible : *word;
    lists.adjusted[e].count = 0;
  }
  BlockBarrier();
  for (int32_t e = Thread(); e < lists.end(); e += Threads()) {
    float* word = FindWord(words, range, lists.IdOf(e));
    if (word != nullptr) *word = BoxOf(e);
  }
  return BlockReduce(
      bad, [](int32_t a, int32_t b) { return a | b; }, scratch);
}

TXL_DEVICE double Penalized(const SamplingSlot& slot, double logprob,
                            int32_t count) {
  logprob = logprob <= 0 ? RoundedProduct(logprob, slot.repetition_penalty)
                         : logprob / slot.repetition_penalty;
  if (logprob > kMostAdjustedLogprob) logprob = kMostAdjustedLogprob;
  logprob -= slot.presence_penalty;
  return logprob - RoundedProduct(slot.frequency_penalty, count);
}

// Returns whether one of the words is NaN or +inf, to every thread.
TXL_DEVICE bool Adjust(const Adjustments& lists, const RowWords& words,
                       BinRange range, BlockScratch& scratch) {
  if (lists.end() == 0) return false;
  const int32_t bad = BoxWords(lists, words, range, scratch);
  const auto entry_of = [&](int32_t e) {
    const float* word = FindWord(words, range, lists.IdOf(e));
    return word == nullptr ? -1 : EntryIn(*word);
  };
  for (int32_t e = lists.recent_end() + Thread(); e < lists.end();
       e += Threads()) {
    const int32_t entry = entry_of(e);
    if (entry < 0) continue;
    lists.adjusted[entry].logprob = lists.adjusted[entry].original;
  }
  if (lists.allowed_count > 0) BlockBarrier();
  for (int32_t e = Thread(); e < lists.bias_count; e += Threads()) {
    const int32_t entry = entry_of(e);
    if (entry >= 0) lists.adjusted[entry].logprob += lists.biases[e];
  }
  for (int32_t e = lists.banned_end() + Thread(); e < lists.recent_end();
       e += Threads()) {
    const int32_t entry = entry_of(e);
    if (entry >= 0) AtomicAdd(&lists.adjusted[entry].count, 1);
  }
  BlockBarrier();
  for (int32_t e = Thread(); e < lists.end(); e += Threads()) {
    if (entry_of(e) != e || lists.adjusted[e].count == 0) continue;
    lists.adjusted[e].logprob = Penalized(
        *lists.slot, lists.adjusted[e].logprob, lists.adjusted[e].count);
  }
  BlockBarrier();
  for (int32_t e = lists.bias_count + Thread(); e < lists.banned_end();
       e += Threads()) {
    const int32_t entry = entry_of(e);
    if (entry >= 0) lists.adjusted[entry].logprob = kImpossible;
  }
  BlockBarrier();
  return bad != 0;
}

// Puts the words back.
TXL_DEVICE void Restore(const Adjustments& lists, const RowWords& words,
                        BinRange range) {
  if (lists.end() == 0) return;
  BlockBarrier();
  for (int32_t e = Thread(); e < lists.end(); e += Threads()) {
    float* word = FindWord(words, range, lists.IdOf(e));
    if (word != nullptr && EntryIn(*word) == e) {
      *word = lists.adjusted[e].original;
    }
  }
  BlockBarrier();
}

}  // namespace txl::cuda
