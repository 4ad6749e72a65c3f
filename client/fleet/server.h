#pragma once

// A simulated server: who is in its slots, whose images it has, who waits.

#include <cstdint>
#include <deque>
#include <limits>
#include <optional>

#include "client/fleet/company.h"
#include "client/fleet/figures.h"
#include "client/fleet/lru_list.h"
#include "client/fleet/options.h"

namespace txl::fleet {

// Not thread-safe.
class Server {
 public:
  explicit Server(const ServerCosts* costs)
      : company(&costs->device), costs_(costs), local_(costs->local_images) {}

  struct Entrance {
    Memory found = Memory::kRebuilt;  // kSlot, kLocalImage, or neither
    std::optional<uint64_t> evicted;  // the session that left its slot for it
  };
  bool HasRoom() const { return running_ < costs_->slots; }
  // A turn of the session takes a slot. REQUIRES: HasRoom().
  Entrance Enter(uint64_t session);
  // The turn has ended; its session stays in the slot until that is needed.
  void Leave(uint64_t session);
  // Everything in memory is gone.
  void Lose(double now);
  // A session has been used before the start: as Enter and Leave.
  std::optional<uint64_t> Warm(uint64_t session);

  int64_t running() const { return running_; }  // turns with a slot
  int64_t in_slots() const { return running_ + idle_.size(); }

  Company company;
  std::deque<int32_t> waiting;  // turns, the oldest first
  bool up = true;
  // The proxy sends turns here while the server is up or not yet missed.
  double missed_at = 0;
  // Goes up with every change of the company: of events only the last counts.
  uint32_t version = 0;

 private:
  const ServerCosts* costs_;
  int64_t running_ = 0;
  LruList idle_{std::numeric_limits<int64_t>::max()};  // in slots, without turn
  LruList local_;                                      // images
};

}  // namespace txl::fleet
