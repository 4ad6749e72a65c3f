#include "server/session/session_export.h"

#include <algorithm>
#include <utility>

#include "server/base/byte_fields.h"
#include "server/session/state_head.h"

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

}  // namespace txl
