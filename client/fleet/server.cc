#include "client/fleet/server.h"

namespace txl::fleet {

Server::Entrance Server::Enter(uint64_t session) {
  Entrance entrance;
  if (idle_.Remove(session)) {
    entrance.found = Memory::kSlot;
  } else {
    if (local_.Remove(session)) entrance.found = Memory::kLocalImage;
    if (in_slots() >= costs_->slots) entrance.evicted = idle_.RemoveOldest();
    if (entrance.evicted) local_.Use(*entrance.evicted);
  }
  ++running_;
  return entrance;
}

void Server::Leave(uint64_t session) {
  --running_;
  idle_.Use(session);
}

std::optional<uint64_t> Server::Warm(uint64_t session) {
  const Entrance entrance = Enter(session);
  Leave(session);
  return entrance.evicted;
}

void Server::Lose(double now) {
  company.Clear(now);
  waiting.clear();
  idle_.Clear();
  local_.Clear();
  running_ = 0;
  ++version;
}

}  // namespace txl::fleet
