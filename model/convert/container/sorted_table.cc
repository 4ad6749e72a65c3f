#include "model/convert/container/sorted_table.h"

#include <cstdint>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "model/base/crc32c.h"
#include "model/base/regular_file.h"
#include "model/base/status_macros.h"

namespace txl {
namespace {

constexpr uint64_t kTableMagic = 0xdb47'7524'8b80'fb57;
constexpr uint64_t kFooterBytes = 48;  // two block handles, padding, magic
constexpr uint64_t kTrailerBytes = 5;  // of a block: compression, checksum
constexpr uint64_t kMaxFileBytes = 64 << 20;
constexpr size_t kMaxEntries = 65'536;
constexpr size_t kMaxKeyBytes = 1024;

using Entries = std::map<std::string, std::string>;

template <typename Word>
Word LittleEndian(absl::string_view bytes) {
  Word word = 0;
  std::memcpy(&word, bytes.data(), sizeof(word));
  return word;
}

// Seven bits a byte, the lowest first. False when `in` ends before or the
// number exceeds 64 bits.
bool TakeVarint(absl::string_view& in, uint64_t& value) {
  value = 0;
  for (int shift = 0; shift < 64 && !in.empty(); shift += 7) {
    const auto byte = static_cast<uint8_t>(in.front());
    in.remove_prefix(1);
    if (shift == 63 && byte > 1) return false;
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

struct BlockHandle {
  uint64_t offset = 0;
  uint64_t bytes = 0;  // without the trailer
};

bool TakeHandle(absl::string_view& in, BlockHandle& handle) {
  return TakeVarint(in, handle.offset) && TakeVarint(in, handle.bytes);
}

absl::StatusOr<absl::string_view> Block(absl::string_view file,
                                        BlockHandle handle) {
  const uint64_t end = file.size() - kFooterBytes;
  if (handle.offset > end || handle.bytes > end - handle.offset ||
      end - handle.offset - handle.bytes < kTrailerBytes) {
    return Bad("a block lies beyond the file");
  }
  // The checksum covers the byte that names the compression.
  const absl::string_view checked =
      file.substr(handle.offset, handle.bytes + 1);
  const auto stored = LittleEndian<uint32_t>(
      file.substr(handle.offset + handle.bytes + 1, sizeof(uint32_t)));
  if (UnmaskCrc32c(stored) != ExtendCrc32c(0, checked.data(), checked.size())) {
    return Bad("a block's checksum is wrong: the file is damaged");
  }
  if (checked.back() == 1) return Bad("a block is compressed with Snappy");
  if (checked.back() != 0) return Bad("a block is compressed");
  return checked.substr(0, handle.bytes);
}

// Appends the entries of a block; keys rise strictly over all blocks.
absl::Status ReadEntries(absl::string_view block, Entries& entries,
                         std::string& last_key) {
  if (block.size() < sizeof(uint32_t)) return Bad("a block is too short");
  const uint64_t restarts =
      LittleEndian<uint32_t>(block.substr(block.size() - sizeof(uint32_t)));
  const uint64_t tail = (restarts + 1) * sizeof(uint32_t);
  if (tail > block.size()) return Bad("a block has too many restart points");
  absl::string_view rest = block.substr(0, block.size() - tail);
  size_t sharable = 0;  // a block's first key shares nothing
  while (!rest.empty()) {
    uint64_t shared = 0, own = 0, value = 0;
    if (!TakeVarint(rest, shared) || !TakeVarint(rest, own) ||
        !TakeVarint(rest, value) || own > rest.size() ||
        value > rest.size() - own || shared > sharable) {
      return Bad("an entry exceeds its block");
    }
    if (shared + own > kMaxKeyBytes) return Bad("a key is longer than 1 KiB");
    std::string key = last_key.substr(0, shared);
    key.append(rest.data(), own);
    if (!entries.empty() && key <= last_key) return Bad("keys are not sorted");
    if (entries.size() >= kMaxEntries) return Bad("more than 65536 entries");
    entries.emplace_hint(entries.end(), key, rest.substr(own, value));
    rest.remove_prefix(own + value);
    last_key = std::move(key);
    sharable = last_key.size();
  }
  return absl::OkStatus();
}

absl::StatusOr<Entries> ReadTable(absl::string_view file) {
  absl::string_view footer = file.substr(file.size() - kFooterBytes);
  BlockHandle meta, index;
  if (!TakeHandle(footer, meta) || !TakeHandle(footer, index)) {
    return Bad("its footer is damaged");
  }
  TXL_ASSIGN_OR_RETURN(const absl::string_view index_block, Block(file, index));
  Entries blocks, entries;
  std::string last_block, last_key;
  TXL_RETURN_IF_ERROR(ReadEntries(index_block, blocks, last_block));
  // Blocks that follow each other are read once: the work is bounded by the
  // file's size.
  uint64_t next = 0;
  for (const auto& [separator, text] : blocks) {
    absl::string_view in = text;
    BlockHandle handle;
    if (!TakeHandle(in, handle) || handle.offset < next) {
      return Bad("its list of blocks is damaged");
    }
    TXL_ASSIGN_OR_RETURN(const absl::string_view block, Block(file, handle));
    TXL_RETURN_IF_ERROR(ReadEntries(block, entries, last_key));
    next = handle.offset + handle.bytes;
  }
  return entries;
}

}  // namespace

bool LooksLikeSortedTable(const ByteSource& file) {
  uint64_t magic = 0;
  return file.size() >= kFooterBytes &&
         file.Read(file.size() - sizeof(magic),
                   absl::MakeSpan(reinterpret_cast<uint8_t*>(&magic),
                                  sizeof(magic)))
             .ok() &&
         magic == kTableMagic;
}

absl::StatusOr<std::map<std::string, std::string>> ReadSortedTable(
    const ByteSource& file) {
  const auto named = [&](absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat(file.name(), ": ", what));
  };
  if (!LooksLikeSortedTable(file)) {
    return named("is not the index of a TensorFlow checkpoint, or was cut off");
  }
  if (file.size() > kMaxFileBytes) return named("is larger than 64 MiB");
  std::string bytes(file.size(), '\0');
  TXL_RETURN_IF_ERROR(file.Read(
      0,
      absl::MakeSpan(reinterpret_cast<uint8_t*>(bytes.data()), bytes.size())));
  absl::StatusOr<Entries> entries = ReadTable(bytes);
  if (!entries.ok()) return named(entries.status().message());
  return entries;
}

}  // namespace txl
