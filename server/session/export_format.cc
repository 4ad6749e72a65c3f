#include "server/session/export_format.h"

#include <limits>
#include <utility>

#include "model/base/crc32c.h"
#include "model/text/utf8.h"
#include "server/base/byte_fields.h"

namespace txl {
namespace {

// A time that has no end is the largest number, as in absl's conversions.
constexpr int64_t kForever = std::numeric_limits<int64_t>::max();
constexpr uint32_t kHasState = 1;
constexpr uint32_t kHasMac = 2;

}  // namespace

std::string EncodeExportHead(const ExportHead& head) {
  ByteWriter out;
  out.Text(head.fingerprint);
  out.I64(head.vocabulary_size);
  out.I64(head.token_count);
  out.I64(absl::ToInt64Nanoseconds(head.ttl));
  out.U32((head.has_state ? kHasState : 0) | (head.has_mac ? kHasMac : 0));
  return out.Take();
}

std::optional<ExportHead> DecodeExportHead(absl::string_view bytes) {
  ByteReader in(bytes);
  ExportHead head;
  head.fingerprint = in.Text();
  head.vocabulary_size = in.I64();
  head.token_count = in.I64();
  const int64_t ttl = in.I64();
  const uint32_t flags = in.U32();
  if (!in.done() || flags > (kHasState | kHasMac) || head.token_count < 0 ||
      head.vocabulary_size < 0 || ttl < 0) {
    return std::nullopt;
  }
  head.ttl =
      ttl == kForever ? absl::InfiniteDuration() : absl::Nanoseconds(ttl);
  head.has_state = (flags & kHasState) != 0;
  head.has_mac = (flags & kHasMac) != 0;
  return head;
}

std::string EncodeExportTurn(const StoredHead& head) {
  ByteWriter out;
  out.Text(head.detokenizer);
  out.Text(head.last_turn.request_id);
  out.Text(head.last_turn.outcome);
  out.I64(head.last_turn.start_position);
  out.I64(head.last_turn.prompt_tokens);
  out.I64(head.last_turn.generated_tokens);
  for (const uint64_t hash : head.earlier_requests) out.U64(hash);
  return out.Take();
}

bool DecodeExportTurn(absl::string_view bytes, StoredHead& head) {
  ByteReader in(bytes);
  head.detokenizer = in.Text();
  LastTurn& turn = head.last_turn;
  turn.request_id = in.Text();
  turn.outcome = in.Text();
  turn.start_position = in.I64();
  turn.prompt_tokens = in.I64();
  turn.generated_tokens = in.I64();
  head.earlier_requests.clear();
  while (in.ok() && !in.done()) head.earlier_requests.push_back(in.U64());
  return in.done() && IsValidUtf8(turn.request_id) &&
         IsValidUtf8(turn.outcome) && turn.start_position >= 0 &&
         turn.prompt_tokens >= 0 && turn.generated_tokens >= 0;
}

int ExportIdBytes(int64_t vocabulary_size) {
  int bytes = 1;
  while (bytes < 4 && vocabulary_size > int64_t{1} << (8 * bytes)) ++bytes;
  return bytes;
}

std::string EncodeExportIds(absl::Span<const int32_t> ids, int id_bytes) {
  std::string bytes;
  bytes.reserve(ids.size() * static_cast<size_t>(id_bytes));
  for (const int32_t id : ids) {
    for (int i = 0; i < id_bytes; ++i) {
      bytes.push_back(static_cast<char>(static_cast<uint32_t>(id) >> (8 * i)));
    }
  }
  return bytes;
}

size_t DecodeExportIds(absl::string_view bytes, int id_bytes,
                       std::vector<int32_t>& ids) {
  const auto width = static_cast<size_t>(id_bytes);
  const size_t count = bytes.size() / width;
  for (size_t i = 0; i < count; ++i) {
    uint32_t id = 0;
    for (size_t b = width; b-- > 0;) {
      id = id << 8 | static_cast<unsigned char>(bytes[i * width + b]);
    }
    ids.push_back(static_cast<int32_t>(id));
  }
  return count * width;
}

ExportFramer::ExportFramer(absl::string_view key) {
  if (!key.empty()) mac_ = RunningDigest::HmacSha256(key);
}

void ExportFramer::Begin(std::string& out) {
  ByteWriter version;
  version.U32(kExportVersion);
  Sum(kExportMagic);
  Sum(version.bytes());
  out.append(kExportMagic.data(), kExportMagic.size());
  out += version.bytes();
}

void ExportFramer::BeginSection(ExportSection section, int64_t bytes,
                                std::string& out) {
  ByteWriter header;
  header.U32(static_cast<uint32_t>(section));
  header.I64(bytes);
  Sum(header.bytes());
  out += header.bytes();
}

void ExportFramer::AddBlock(absl::string_view block, std::string& out) {
  ByteWriter crc;
  crc.U32(ExtendCrc32c(0, block.data(), block.size()));
  Sum(block);
  Sum(crc.bytes());
  out.append(block.data(), block.size());
  out += crc.bytes();
}

void ExportFramer::AddSection(ExportSection section, absl::string_view payload,
                              std::string& out) {
  BeginSection(section, static_cast<int64_t>(payload.size()), out);
  while (!payload.empty()) {
    const absl::string_view block =
        payload.substr(0, static_cast<size_t>(kExportBlockBytes));
    AddBlock(block, out);
    payload.remove_prefix(block.size());
  }
}

void ExportFramer::End(std::string& out) {
  // What the sums say is itself summed up by the MAC only.
  RunningDigest digest = std::exchange(digest_, RunningDigest::Sha256());
  AddSection(ExportSection::kDigest, digest.Finish(), out);
  if (!mac_) return;
  RunningDigest mac = *std::exchange(mac_, std::nullopt);
  AddSection(ExportSection::kMac, mac.Finish(), out);
}

void ExportFramer::Sum(absl::string_view bytes) {
  digest_.Add(bytes);
  if (mac_) mac_->Add(bytes);
}

}  // namespace txl
