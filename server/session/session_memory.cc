#include "server/session/session_memory.h"

#include "server/session/token_sequence.h"

namespace txl {
namespace {

size_t FullPieces(int64_t tokens) {
  return static_cast<size_t>(tokens / TokenSequence::kPieceTokens);
}

int64_t BytesOfPieces(size_t pieces) {
  return static_cast<int64_t>(pieces) * TokenSequence::BytesOfPiece();
}

}  // namespace

void SessionMemory::Add(SessionRecord& record) {
  session_bytes_ += kSessionRecordBytes;
  record.counted = !record.temporary();
  if (record.counted) quota_->Add(record.name.tenant(), 0);
}

void SessionMemory::Remove(const RecordPtr& record) {
  SetImage(*record, nullptr);
  DropTurnRecord(*record);
  Charge(*record, 0, 0);
  Uncount(*record);
  session_bytes_ -= kSessionRecordBytes;
  dropped_.push_back(record);
}

void SessionMemory::Charge(SessionRecord& record, int64_t tokens,
                           size_t shared) {
  std::vector<std::shared_ptr<const ByteHold>>& pieces = record.shared_pieces;
  session_bytes_ += TokenSequence::BytesFor(tokens) -
                    TokenSequence::BytesFor(record.charged_tokens) +
                    BytesOfPieces(pieces.size()) - BytesOfPieces(shared);
  while (pieces.size() > shared) pieces.pop_back();
  while (pieces.size() < shared) {
    pieces.push_back(std::make_shared<const ByteHold>(
        *shared_bytes_.TryHold(TokenSequence::BytesOfPiece())));
  }
  if (record.counted) {
    quota_->Change(record.name.tenant(), record.charged_tokens, tokens);
  }
  record.charged_tokens = tokens;
}

int64_t SessionMemory::BytesOfBranch(int64_t position) {
  return TokenSequence::BytesFor(position) -
         BytesOfPieces(FullPieces(position));
}

void SessionMemory::ChargeBranch(SessionRecord& parent, SessionRecord& child,
                                 int64_t position) {
  const size_t shared = FullPieces(position);
  if (parent.shared_pieces.size() < shared) {
    Charge(parent, parent.charged_tokens, shared);
  }
  child.shared_pieces.assign(parent.shared_pieces.begin(),
                             parent.shared_pieces.begin() + shared);
  session_bytes_ -= BytesOfPieces(shared);
  Charge(child, position);
}

void SessionMemory::Uncount(SessionRecord& record) {
  if (!std::exchange(record.counted, false)) return;
  quota_->Remove(record.name.tenant(), record.charged_tokens);
}

void SessionMemory::SetImage(SessionRecord& record,
                             std::shared_ptr<const StateImage> image) {
  if (image != nullptr) image_bytes_ += image->Bytes();
  if (record.image != nullptr) {
    image_bytes_ -= record.image->Bytes();
    dropped_.push_back(std::move(record.image));
  }
  record.image = std::move(image);
}

void SessionMemory::SetTurnRecord(SessionRecord& record,
                                  std::shared_ptr<const TurnRecord> turn,
                                  int64_t bytes) {
  DropTurnRecord(record);
  if (turn == nullptr) return;
  turn_record_bytes_ += bytes;
  record.record_bytes = bytes;
  record.turn_record = std::move(turn);
  record.record_age = turn_records_.insert(turn_records_.end(), &record);
  while (turn_record_bytes_ > turn_record_limit_) {
    DropTurnRecord(*turn_records_.front());
  }
}

void SessionMemory::DropTurnRecord(SessionRecord& record) {
  if (record.turn_record == nullptr) return;
  turn_record_bytes_ -= record.record_bytes;
  dropped_.push_back(std::exchange(record.turn_record, nullptr));
  turn_records_.erase(record.record_age);
}

}  // namespace txl
