#include "model/text/ngram_builder.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace txl {
namespace {

// An id and the n ids before it.
struct Met {
  uint64_t context = 0;
  uint64_t end = 0;  // of the context without its oldest id; n > 1
  int32_t next = 0;

  std::pair<uint64_t, int32_t> key() const { return {context, next}; }
};

struct Context {
  uint64_t hash = 0;
  int64_t count = 0;
  NgramGuess guess;
};

// Every context of so many ids; `hashes` has those of one id less.
std::vector<Met> MeetAll(absl::Span<const int32_t> ids, size_t order,
                         std::vector<uint64_t>& hashes) {
  std::vector<Met> met;
  if (ids.size() <= order) return met;
  met.reserve(ids.size() - order);
  // hashes[i]: of the order - 1 ids before ids[i].
  for (size_t i = order; i < ids.size(); ++i) {
    const uint64_t end = hashes[i];
    hashes[i] = ExtendNgramHash(end, ids[i - order]);
    met.push_back({hashes[i], end, ids[i]});
  }
  std::sort(met.begin(), met.end(),
            [](const Met& a, const Met& b) { return a.key() < b.key(); });
  return met;
}

// One context's: what followed it, most often first found.
Context Count(absl::Span<const Met> met) {
  Context context;
  context.hash = met.front().context;
  context.count = static_cast<int64_t>(met.size());
  int64_t most = 0;
  for (size_t i = 0; i < met.size();) {
    const size_t first = i;
    while (i < met.size() && met[i].next == met[first].next) ++i;
    const auto times = static_cast<int64_t>(i - first);
    if (times <= most) continue;
    most = times;
    context.guess.id = met[first].next;
  }
  context.guess.level =
      static_cast<int32_t>(kNgramLevels * most / (context.count + 1));
  return context;
}

}  // namespace

NgramTable BuildNgrams(absl::Span<const int32_t> ids, uint32_t fingerprint,
                       const NgramOptions& options) {
  std::vector<Context> kept;
  // What the longest known end of a context says, by its hash.
  absl::flat_hash_map<uint64_t, NgramGuess> said;
  std::vector<uint64_t> hashes(ids.size(), 0);
  for (int32_t order = 1; order <= options.order; ++order) {
    const std::vector<Met> met =
        MeetAll(ids, static_cast<size_t>(order), hashes);
    absl::flat_hash_map<uint64_t, NgramGuess> says;
    for (size_t i = 0; i < met.size();) {
      const size_t first = i;
      while (i < met.size() && met[i].context == met[first].context) ++i;
      if (i - first < 2) continue;
      const Context context =
          Count(absl::MakeConstSpan(met).subspan(first, i - first));
      const auto end = said.find(met[first].end);
      const bool new_word = end == said.end() ||
                            end->second.id != context.guess.id ||
                            end->second.level != context.guess.level;
      says[context.hash] = context.guess;
      if (new_word) kept.push_back(context);
    }
    said = std::move(says);
  }
  const auto room = static_cast<size_t>(options.entries);
  std::sort(kept.begin(), kept.end(), [](const Context& a, const Context& b) {
    return std::make_tuple(-a.count, a.hash) <
           std::make_tuple(-b.count, b.hash);
  });
  if (kept.size() > room) kept.resize(room);
  NgramTable table(options.order, fingerprint,
                   std::max<int64_t>(static_cast<int64_t>(kept.size()), 1));
  for (const Context& context : kept) table.Add(context.hash, context.guess);
  return table;
}

}  // namespace txl
