#include "model/text/ngram_table.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "model/base/crc32c.h"
#include "model/base/regular_file.h"
#include "model/base/status_macros.h"
#include "program/output_file.h"

namespace txl {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr char kMagic[] = "TXLNGRM1";
constexpr int64_t kMostBytes = int64_t{1} << 32;
// Places that a guess may lie in, from its own on.
constexpr size_t kProbes = 8;
constexpr int kIdBits = 20;
constexpr int kLevelBits = 4;

struct Header {
  std::array<char, 8> magic;
  uint32_t order;
  uint32_t fingerprint;
  uint64_t entries;
  uint32_t crc;
  uint32_t zero;
};
static_assert(sizeof(Header) == 32);

// Bits of the hash that an entry keeps; the others say where it lies. Levels
// count from 1, so that no entry is 0.
uint64_t MakeEntry(uint64_t hash, NgramGuess guess) {
  const uint64_t tag = hash >> (kIdBits + kLevelBits);
  return tag << (kIdBits + kLevelBits) |
         static_cast<uint64_t>(guess.level + 1) << kIdBits |
         static_cast<uint64_t>(guess.id);
}

bool IsOf(uint64_t entry, uint64_t hash) {
  return entry != 0 && ((entry ^ hash) >> (kIdBits + kLevelBits)) == 0;
}

NgramGuess GuessOf(uint64_t entry) {
  return {.id = static_cast<int32_t>(entry & ((uint64_t{1} << kIdBits) - 1)),
          .level = static_cast<int32_t>(entry >> kIdBits & 15) - 1};
}

uint32_t CrcOf(const std::vector<uint64_t>& entries) {
  return MaskCrc32c(
      ExtendCrc32c(0, entries.data(), entries.size() * sizeof(uint64_t)));
}

bool IsSound(const std::vector<uint64_t>& entries, int64_t vocab_size) {
  return std::all_of(entries.begin(), entries.end(), [&](uint64_t entry) {
    if (entry == 0) return true;
    const NgramGuess guess = GuessOf(entry);
    return guess.id < vocab_size && guess.level >= 0 &&
           guess.level < kNgramLevels;
  });
}

}  // namespace

uint32_t VocabularyFingerprint(const Vocabulary& vocabulary) {
  uint32_t crc = 0;
  for (int64_t id = 0; id < vocabulary.size(); ++id) {
    const std::string bytes = vocabulary.TokenBytes(static_cast<int32_t>(id));
    const auto size = static_cast<uint64_t>(bytes.size());
    crc = ExtendCrc32c(crc, &size, sizeof(size));
    crc = ExtendCrc32c(crc, bytes.data(), bytes.size());
  }
  return crc;
}

NgramTable::NgramTable(int32_t order, uint32_t fingerprint, int64_t entries)
    // Two thirds full at most: a guess finds room near its place.
    : NgramTable(order, fingerprint,
                 std::vector<uint64_t>(
                     std::bit_ceil(static_cast<uint64_t>(entries) * 3 / 2))) {}

absl::StatusOr<NgramTable> NgramTable::Read(const std::string& path,
                                            uint32_t fingerprint,
                                            int64_t vocab_size) {
  TXL_ASSIGN_OR_RETURN(const std::string bytes,
                       ReadRegularFile(path, kMostBytes));
  const auto wrong = [&path](absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": ", what));
  };
  Header header;
  if (bytes.size() < sizeof(header) ||
      std::memcmp(bytes.data(), kMagic, header.magic.size()) != 0) {
    return wrong("is not a table of n-grams (txl-model ngrams makes one)");
  }
  std::memcpy(&header, bytes.data(), sizeof(header));
  const size_t held = (bytes.size() - sizeof(header)) / sizeof(uint64_t);
  if (header.order < 1 || header.order > kMostOrder ||
      !std::has_single_bit(header.entries) || header.entries != held ||
      (bytes.size() - sizeof(header)) % sizeof(uint64_t) != 0) {
    return wrong("is damaged: its size is not what it says");
  }
  std::vector<uint64_t> entries(held);
  std::memcpy(entries.data(), bytes.data() + sizeof(header),
              held * sizeof(uint64_t));
  if (CrcOf(entries) != header.crc) {
    return wrong("is damaged: its checksum is wrong");
  }
  if (header.fingerprint != fingerprint) {
    return wrong("belongs to another vocabulary than the model's");
  }
  if (!IsSound(entries, vocab_size)) {
    return wrong("has ids that the model does not have");
  }
  return NgramTable(static_cast<int32_t>(header.order), fingerprint,
                    std::move(entries));
}

absl::Status NgramTable::Write(const std::string& path) const {
  Header header{};
  std::memcpy(header.magic.data(), kMagic, header.magic.size());
  header.order = static_cast<uint32_t>(order_);
  header.fingerprint = fingerprint_;
  header.entries = entries_.size();
  header.crc = CrcOf(entries_);
  const auto put = [](OutputFile& file, const void* data, int64_t bytes) {
    return file.Write({static_cast<const char*>(data), size_t(bytes)});
  };
  TXL_ASSIGN_OR_RETURN(const std::unique_ptr<OutputFile> file,
                       OutputFile::Open(path));
  TXL_RETURN_IF_ERROR(put(*file, &header, sizeof(header)));
  TXL_RETURN_IF_ERROR(put(*file, entries_.data(), bytes()));
  return file->Finish();
}

int64_t NgramTable::size() const {
  return std::count_if(entries_.begin(), entries_.end(),
                       [](uint64_t entry) { return entry != 0; });
}

bool NgramTable::Add(uint64_t hash, NgramGuess guess) {
  const size_t mask = entries_.size() - 1;
  for (size_t i = 0; i < kProbes; ++i) {
    uint64_t& entry = entries_[(hash + i) & mask];
    if (entry != 0 && !IsOf(entry, hash)) continue;
    entry = MakeEntry(hash, guess);
    return true;
  }
  return false;
}

std::optional<NgramGuess> NgramTable::Find(uint64_t hash) const {
  const size_t mask = entries_.size() - 1;
  for (size_t i = 0; i < kProbes; ++i) {
    const uint64_t entry = entries_[(hash + i) & mask];
    if (entry == 0) break;
    if (IsOf(entry, hash)) return GuessOf(entry);
  }
  return std::nullopt;
}

std::optional<NgramGuess> NgramTable::Next(
    absl::Span<const int32_t> recent) const {
  std::array<uint64_t, kMostOrder> hashes;
  const size_t most = std::min<size_t>(recent.size(), order_);
  uint64_t hash = 0;
  for (size_t n = 0; n < most; ++n) {
    hash = ExtendNgramHash(hash, recent[recent.size() - 1 - n]);
    hashes[n] = hash;
  }
  for (size_t n = most; n > 0; --n) {
    const std::optional<NgramGuess> guess = Find(hashes[n - 1]);
    if (guess.has_value()) return guess;
  }
  return std::nullopt;
}

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
