#pragma once

// The sessions of a cell, of which only those exist that were used.

#include <cstdint>
#include <optional>

#include "absl/container/node_hash_map.h"
#include "client/bench/plan/random.h"
#include "client/fleet/options.h"
#include "client/fleet/zipf.h"

namespace txl::fleet {

struct Session {
  int32_t server = -1;  // its last one; -1: none yet
  bool in_use = false;  // by a conversation
  int64_t tokens = 0;
  int64_t image_tokens = -1;  // of its shared image; -1: it has none
};

// Not thread-safe.
class Sessions {
 public:
  // Where images are shared a session has one before its first use here: it
  // left its slot long ago.
  Sessions(const TurnMix* mix, bool shared_images, bench::Random* random);

  // A session that is not in use, which it is from now on; absent where none
  // was found in a hundred draws.
  std::optional<uint64_t> Take();
  // References stay good.
  Session& Of(uint64_t session) { return sessions_.at(session); }
  int64_t touched() const { return static_cast<int64_t>(sessions_.size()); }

 private:
  const TurnMix* mix_;
  bool shared_images_;
  bench::Random* random_;
  Zipf ranks_;
  absl::node_hash_map<uint64_t, Session> sessions_;
};

}  // namespace txl::fleet
