#include "server/session/session_import.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "model/base/crc32c.h"
#include "model/base/status_macros.h"
#include "server/base/byte_fields.h"
#include "server/base/error.h"
#include "server/session/session_errors.h"
#include "server/session/session_export.h"

namespace txl {
namespace {

constexpr char kField[] = "chunk";
constexpr size_t kPreambleBytes = 8;
constexpr size_t kSectionBytes = 12;
constexpr size_t kCrcBytes = 4;

absl::Status Damaged(absl::string_view what) {
  return FieldError(kField, absl::StrCat("the export is damaged: ", what));
}

absl::Status OtherModel(absl::string_view what) {
  return OtherModelError(
      absl::StrCat("the exported session is of another model: ", what));
}

// The section behind `section`; null: the file ends.
std::optional<ExportSection> Next(ExportSection section,
                                  const ExportHead& head) {
  auto next = static_cast<ExportSection>(static_cast<uint32_t>(section) + 1);
  if (next == ExportSection::kState && !head.has_state) {
    next = ExportSection::kDigest;
  }
  const ExportSection last =
      head.has_mac ? ExportSection::kMac : ExportSection::kDigest;
  if (section == last) return std::nullopt;
  return next;
}

}  // namespace

SessionImport::SessionImport(ImportOptions options)
    : options_(std::move(options)) {
  if (!options_.key.empty()) {
    mac_ = RunningDigest::HmacSha256(options_.key);
  }
}

absl::Status SessionImport::Add(absl::string_view bytes) {
  if (!status_.ok()) return status_;
  bytes_ += static_cast<int64_t>(bytes.size());
  if (bytes_ > options_.max_bytes) {
    status_ = TooManyBytes();
    return status_;
  }
  while (status_.ok() && !bytes.empty()) {
    if (expected_ == Expected::kEnd) {
      status_ = Damaged("it goes on behind its end");
      return status_;
    }
    const absl::string_view now = bytes.substr(0, Wanted() - pending_.size());
    pending_.append(now.data(), now.size());
    bytes.remove_prefix(now.size());
    if (pending_.size() < Wanted()) break;
    const std::string whole = std::exchange(pending_, "");
    status_ = Take(whole);
  }
  return status_;
}

absl::Status SessionImport::TooManyBytes() const {
  return OverLimitError(kField, absl::StrCat("the export has more than ",
                                             options_.max_bytes, " bytes"));
}

size_t SessionImport::Wanted() const {
  switch (expected_) {
    case Expected::kPreamble:
      return kPreambleBytes;
    case Expected::kSection:
      return kSectionBytes;
    case Expected::kBlock:
      return static_cast<size_t>(std::min(left_, kExportBlockBytes)) +
             kCrcBytes;
    case Expected::kEnd:
      return 0;
  }
  return 0;
}

absl::Status SessionImport::Take(absl::string_view bytes) {
  // The sums are of all bytes before the section that holds them.
  const ExportSection section = section_;
  if (section < ExportSection::kDigest) digest_.Add(bytes);
  if (mac_ && section < ExportSection::kMac) mac_->Add(bytes);
  switch (expected_) {
    case Expected::kPreamble:
      return TakePreamble(bytes);
    case Expected::kSection:
      return TakeSection(bytes);
    case Expected::kBlock:
      return TakeBlock(bytes);
    case Expected::kEnd:
      return absl::OkStatus();
  }
  return absl::OkStatus();
}

absl::Status SessionImport::TakePreamble(absl::string_view bytes) {
  if (bytes.substr(0, kExportMagic.size()) != kExportMagic) {
    return FieldError(kField, "this is not an exported session");
  }
  ByteReader in(bytes.substr(kExportMagic.size()));
  if (const uint32_t version = in.U32(); version != kExportVersion) {
    return FieldError(
        kField, absl::StrCat("the export is of version ", version,
                             ", this server reads version ", kExportVersion));
  }
  expected_ = Expected::kSection;
  return absl::OkStatus();
}

absl::Status SessionImport::TakeSection(absl::string_view bytes) {
  ByteReader in(bytes);
  const uint32_t kind = in.U32();
  left_ = in.I64();
  if (kind != static_cast<uint32_t>(section_)) {
    return Damaged("a section is of the wrong kind");
  }
  if (!LengthFits(left_)) return Damaged("a section has a wrong size");
  if (left_ > options_.max_bytes) return TooManyBytes();
  expected_ = Expected::kBlock;
  return left_ == 0 ? EndSection() : absl::OkStatus();
}

bool SessionImport::LengthFits(int64_t length) const {
  switch (section_) {
    case ExportSection::kHead:
      return length > 0 && length <= kMostExportHeadBytes;
    case ExportSection::kIds:
      // The count is at most max_tokens.
      return length == head_.token_count * ExportIdBytes(head_.vocabulary_size);
    case ExportSection::kTurn:
      return length > 0 && length <= kMostExportTurnBytes;
    case ExportSection::kState:
      return length > 0;
    case ExportSection::kDigest:
    case ExportSection::kMac:
      return length == int64_t{kDigestBytes};
  }
  return false;
}

absl::Status SessionImport::TakeBlock(absl::string_view block) {
  ByteReader crc(block.substr(block.size() - kCrcBytes));
  block.remove_suffix(kCrcBytes);
  if (ExtendCrc32c(0, block.data(), block.size()) != crc.U32()) {
    return Damaged("a checksum does not match");
  }
  left_ -= static_cast<int64_t>(block.size());
  if (section_ == ExportSection::kIds) {
    TXL_RETURN_IF_ERROR(TakeIds(block));
  } else if (section_ == ExportSection::kState) {
    if (KeepsState()) {
      const size_t before = state_.size();
      state_.resize(before + block.size());
      std::copy(block.begin(), block.end(), state_.begin() + before);
    }
  } else {
    payload_.append(block.data(), block.size());
  }
  return left_ == 0 ? EndSection() : absl::OkStatus();
}

absl::Status SessionImport::TakeIds(absl::string_view block) {
  const int id_bytes = ExportIdBytes(head_.vocabulary_size);
  std::string joined;
  if (!id_part_.empty()) {  // a block ended inside an id
    joined = absl::StrCat(std::exchange(id_part_, ""), block);
    block = joined;
  }
  std::vector<int32_t> ids;
  ids.reserve(block.size() / static_cast<size_t>(id_bytes));
  block.remove_prefix(DecodeExportIds(block, id_bytes, ids));
  id_part_ = std::string(block);
  for (const int32_t id : ids) {
    if (id < 0 || id >= head_.vocabulary_size) {
      return Damaged("an id is outside the vocabulary");
    }
  }
  session_.token_ids.Append(ids);
  return absl::OkStatus();
}

absl::Status SessionImport::EndSection() {
  switch (section_) {
    case ExportSection::kHead:
      TXL_RETURN_IF_ERROR(EndHead());
      break;
    case ExportSection::kTurn:
      TXL_RETURN_IF_ERROR(EndTurn());
      break;
    case ExportSection::kDigest:
      if (!EqualDigests(payload_, digest_.Finish())) {
        return Damaged("the digest does not match");
      }
      break;
    case ExportSection::kMac:
      mac_fits_ = mac_ && EqualDigests(payload_, mac_->Finish());
      break;
    case ExportSection::kIds:
    case ExportSection::kState:
      break;
  }
  payload_.clear();
  const std::optional<ExportSection> next = Next(section_, head_);
  expected_ = next ? Expected::kSection : Expected::kEnd;
  section_ = next.value_or(section_);
  return absl::OkStatus();
}

absl::Status SessionImport::EndHead() {
  const std::optional<ExportHead> head = DecodeExportHead(payload_);
  if (!head) return Damaged("its head is wrong");
  if (head->fingerprint != options_.fingerprint) {
    return OtherModel("the fingerprints differ");
  }
  if (head->vocabulary_size != options_.vocabulary_size) {
    return OtherModel(absl::StrCat("its vocabulary has ", head->vocabulary_size,
                                   " tokens, not ", options_.vocabulary_size));
  }
  if (head->token_count > options_.max_tokens) {
    return OverLimitError(
        kField, absl::StrCat("the exported session has ", head->token_count,
                             " tokens, more than ", options_.max_tokens));
  }
  if (options_.may_add) {
    TXL_RETURN_IF_ERROR(options_.may_add(head->token_count));
  }
  head_ = *head;
  session_.head.ttl = head_.ttl;
  return absl::OkStatus();
}

absl::Status SessionImport::EndTurn() {
  if (!DecodeExportTurn(payload_, session_.head)) {
    return Damaged("its last turn is wrong");
  }
  if (options_.vocabulary != nullptr &&
      !options_.vocabulary->RestoreDetokenizer(session_.head.detokenizer)
           .ok()) {
    return Damaged("its text does not go on");
  }
  return absl::OkStatus();
}

absl::StatusOr<ImportedSession> SessionImport::Finish() {
  if (status_.ok() && expected_ != Expected::kEnd) {
    status_ = Damaged("it ends too early");
  }
  if (!status_.ok()) return status_;
  if (mac_fits_ && head_.has_state) session_.state = MakeState();
  return std::move(session_);
}

// Its maker had the key, so that nothing is wrong with it but a bug.
std::optional<StateImage> SessionImport::MakeState() {
  ByteReader in({reinterpret_cast<const char*>(state_.data()), state_.size()});
  StateImage image;
  ReadStateHead(in, image);
  if (!in.ok() || image.position < 0 ||
      image.position > session_.token_ids.size()) {
    return std::nullopt;
  }
  const auto head_bytes =
      static_cast<std::ptrdiff_t>(state_.size() - in.rest().size());
  state_.erase(state_.begin(), state_.begin() + head_bytes);
  image.data = std::move(state_);
  return image;
}

}  // namespace txl
