#include "server/session/session_export.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "model/base/crc32c.h"
#include "model/text/utf8.h"
#include "server/base/byte_fields.h"

namespace txl {
namespace {

std::string StateHeadOf(const StateImage* state) {
  if (state == nullptr) return "";
  ByteWriter out;
  WriteStateHead(*state, out);
  return out.Take();
}

}  // namespace

SessionExport::SessionExport(const ExportOptions& options,
                             const StoredHead& head, TokenSlice ids,
                             std::shared_ptr<const StateImage> state)
    : ids_(std::move(ids)),
      id_bytes_(ExportIdBytes(options.vocabulary_size)),
      state_(std::move(state)),
      turn_(EncodeExportTurn(head)),
      state_head_(StateHeadOf(state_.get())),
      framer_(options.key) {
  ExportHead export_head;
  export_head.fingerprint = options.fingerprint;
  export_head.vocabulary_size = options.vocabulary_size;
  export_head.token_count = ids_.size();
  export_head.ttl = head.ttl;
  export_head.has_state = state_ != nullptr;
  export_head.has_mac = !options.key.empty();
  framer_.Begin(made_);
  framer_.AddSection(ExportSection::kHead, EncodeExportHead(export_head),
                     made_);
  framer_.BeginSection(ExportSection::kIds, ids_.size() * id_bytes_, made_);
}

std::string SessionExport::Next() {
  constexpr auto kMost = static_cast<size_t>(kMostPieceBytes);
  while (made_.size() < kMost && stage_ != Stage::kDone) Make();
  std::string piece = made_.substr(0, kMost);
  made_.erase(0, piece.size());
  return piece;
}

void SessionExport::Make() {
  switch (stage_) {
    case Stage::kIds:
      MakeIds();
      break;
    case Stage::kTurn:
      framer_.AddSection(ExportSection::kTurn, turn_, made_);
      stage_ = state_ == nullptr ? Stage::kEnd : Stage::kState;
      if (state_ == nullptr) break;
      framer_.BeginSection(
          ExportSection::kState,
          static_cast<int64_t>(state_head_.size() + state_->data.size()),
          made_);
      made_bytes_ = 0;
      break;
    case Stage::kState:
      MakeState();
      break;
    case Stage::kEnd:
      framer_.End(made_);
      stage_ = Stage::kDone;
      break;
    case Stage::kDone:
      break;
  }
}

// A block may begin and end inside an id.
void SessionExport::MakeIds() {
  const int64_t end =
      std::min(made_bytes_ + kExportBlockBytes, ids_.size() * id_bytes_);
  if (made_bytes_ == end) {
    stage_ = Stage::kTurn;
    return;
  }
  const int64_t first = made_bytes_ / id_bytes_;
  const int64_t last = (end + id_bytes_ - 1) / id_bytes_;
  const std::string bytes =
      EncodeExportIds(ids_.Part(first, last - first), id_bytes_);
  framer_.AddBlock(absl::string_view(bytes).substr(
                       static_cast<size_t>(made_bytes_ - first * id_bytes_),
                       static_cast<size_t>(end - made_bytes_)),
                   made_);
  made_bytes_ = end;
}

void SessionExport::MakeState() {
  const auto all =
      static_cast<int64_t>(state_head_.size() + state_->data.size());
  const int64_t end = std::min(made_bytes_ + kExportBlockBytes, all);
  if (made_bytes_ == end) {
    stage_ = Stage::kEnd;
    return;
  }
  const auto head = static_cast<int64_t>(state_head_.size());
  std::string block;
  if (made_bytes_ < head) {
    block = state_head_.substr(static_cast<size_t>(made_bytes_),
                               static_cast<size_t>(kExportBlockBytes));
  }
  const int64_t from = std::max(made_bytes_, head) - head;
  const int64_t to = std::max(end, head) - head;
  block.append(reinterpret_cast<const char*>(state_->data.data()) + from,
               static_cast<size_t>(to - from));
  framer_.AddBlock(block, made_);
  made_bytes_ = end;
}

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
  ids.reserve(ids.size() + count);
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
  Put(kExportMagic, out);
  Put(version.bytes(), out);
}

void ExportFramer::BeginSection(ExportSection section, int64_t bytes,
                                std::string& out) {
  ByteWriter header;
  header.U32(static_cast<uint32_t>(section));
  header.I64(bytes);
  Put(header.bytes(), out);
}

void ExportFramer::AddBlock(absl::string_view block, std::string& out) {
  ByteWriter crc;
  crc.U32(ExtendCrc32c(0, block.data(), block.size()));
  Put(block, out);
  Put(crc.bytes(), out);
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

void ExportFramer::Put(absl::string_view bytes, std::string& out) {
  digest_.Add(bytes);
  if (mac_) mac_->Add(bytes);
  out.append(bytes.data(), bytes.size());
}

void WriteStateHead(const StateImage& image, ByteWriter& out) {
  const StateIdentity& identity = image.identity;
  out.U32(image.format_version);
  out.Text(identity.fingerprint);
  out.I64(identity.window);
  out.I64(identity.mem_len);
  out.I64(identity.d_model);
  out.I64(identity.n_layer);
  out.U8(identity.zero_start ? 1 : 0);
  out.Text(identity.row_dtype);
  out.Text(identity.kernel);
  out.I64(image.position);
  out.I64(image.rows);
  out.U64(image.checksum);
}

void ReadStateHead(ByteReader& in, StateImage& image) {
  StateIdentity& identity = image.identity;
  image.format_version = in.U32();
  identity.fingerprint = in.Text();
  identity.window = in.I64();
  identity.mem_len = in.I64();
  identity.d_model = in.I64();
  identity.n_layer = in.I64();
  identity.zero_start = in.U8() != 0;
  identity.row_dtype = in.Text();
  identity.kernel = in.Text();
  image.position = in.I64();
  image.rows = in.I64();
  image.checksum = in.U64();
}

}  // namespace txl
