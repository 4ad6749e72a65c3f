#pragma once

// What sessions in memory take of the host's memory, and of what their tenants
// may keep.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <list>
#include <memory>
#include <utility>
#include <vector>

#include "model/memory/state_image.h"
#include "server/base/byte_budget.h"
#include "server/session/session_quota.h"
#include "server/session/session_record.h"
#include "server/session/turn_record.h"

namespace txl {

// Every figure is the sum over the sessions that were added and not removed:
// of their records and charged ids, shared pieces once; of their images; of
// their turns' records. The tenants' quota has those that are `counted`. Only
// this class changes what the sums are made of: charged_tokens, shared_pieces,
// counted, image and turn_record.
//
// Not thread-safe: the store's mutex guards it, and `quota`, which outlives it.
class SessionMemory {
 public:
  // The limits, in bytes, are for images and for the records of turns.
  SessionMemory(int64_t image_limit, int64_t turn_record_limit,
                SessionQuota* quota)
      : image_limit_(image_limit),
        turn_record_limit_(turn_record_limit),
        quota_(quota) {}

  // A session without ids; counted where it has a name.
  void Add(SessionRecord& record);
  // The session counts no more, and TakeDropped frees it.
  void Remove(const RecordPtr& record);

  // Takes the bytes of so many ids of this session, instead of those before.
  // The first `shared` full pieces of them are counted where they are shared;
  // without it as many as before.
  void Charge(SessionRecord& record, int64_t tokens, size_t shared);
  void Charge(SessionRecord& record, int64_t tokens) {
    Charge(record, tokens, record.shared_pieces.size());
  }
  // `child` is charged with the first `position` ids of `parent`: full pieces
  // are shared, BytesOfBranch are its own. REQUIRES: it has none yet.
  void ChargeBranch(SessionRecord& parent, SessionRecord& child,
                    int64_t position);
  static int64_t BytesOfBranch(int64_t position);
  // No client can name it any more: its tenant has room for another.
  void Uncount(SessionRecord& record);

  bool HasImageRoom(int64_t bytes) const {
    return bytes <= image_limit_ - image_bytes_;
  }
  // In place of what there was; null: there is none any more.
  void SetImage(SessionRecord& record, std::shared_ptr<const StateImage> image);
  // `bytes` are the turn's. Beyond the limit the oldest ones are given up.
  void SetTurnRecord(SessionRecord& record,
                     std::shared_ptr<const TurnRecord> turn, int64_t bytes);

  int64_t id_bytes() const { return session_bytes_ + shared_bytes_.used(); }
  int64_t image_bytes() const { return image_bytes_; }
  int64_t turn_record_bytes() const { return turn_record_bytes_; }
  // What was dropped since the last call: it may be large, so that it is best
  // freed without the mutex.
  std::vector<std::shared_ptr<const void>> TakeDropped() {
    return std::exchange(dropped_, {});
  }

 private:
  void DropTurnRecord(SessionRecord& record);

  const int64_t image_limit_;
  const int64_t turn_record_limit_;
  SessionQuota* const quota_;
  int64_t session_bytes_ = 0;  // of records and of ids that are not shared
  ByteBudget shared_bytes_{std::numeric_limits<int64_t>::max()};
  int64_t image_bytes_ = 0;
  int64_t turn_record_bytes_ = 0;
  std::list<SessionRecord*> turn_records_;  // oldest first
  std::vector<std::shared_ptr<const void>> dropped_;
};

}  // namespace txl
