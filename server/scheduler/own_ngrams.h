#pragma once

// Where a session's last ids have stood in it before. Takes kBytes for a turn
// that runs, however long its session is; the ids themselves stay the
// session's.

#include <array>
#include <cstdint>
#include <optional>

#include "server/session/token_sequence.h"

namespace txl {

// Thread-compatible.
class OwnNgrams {
 public:
  struct Match {
    int64_t next = 0;      // index of the id that followed
    int64_t same_ids = 0;  // before it: the session's last so many, >= kShort
  };

  static constexpr int64_t kShort = 3;
  static constexpr int64_t kLong = 8;
  static constexpr int64_t kLongestMatch = 64;  // more are not looked at
  static constexpr int64_t kOldest = 4096;      // ids that a turn finds there

  // The latest place before the end that a long or else a short end of `ids`
  // has had. `ids` is the same sequence as in the calls before, grown.
  std::optional<Match> Find(const TokenSequence& ids);

 private:
  static constexpr size_t kPlaces = 1024;
  // What followed, counted from first_ + 1; 0: nothing.
  using Places = std::array<uint32_t, kPlaces>;

  void Update(const TokenSequence& ids);
  std::optional<Match> FindIn(const Places& places, int64_t length,
                              const TokenSequence& ids) const;

  int64_t first_ = -1;
  int64_t noted_ = 0;  // ids before this one are in the places
  Places short_{}, long_{};
};

}  // namespace txl
