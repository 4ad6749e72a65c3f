#pragma once

// Sessions on their way between memory and the store.

#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "server/session/session_name.h"

namespace txl {

// One read at a time brings a session, and what a read shows counts only where
// nothing of the session is on its way: a session that is coming would be there
// twice, and one whose removal is not on stable storage yet would come again.
//
// Not thread-safe: the store's mutex guards it.
class AwaySessions {
 public:
  using Then = std::function<void(const absl::Status&)>;

  // `then` waits for the session. True: as the first one, so that the caller
  // has to bring it and to end with TakeWaiting.
  bool Await(const SessionName& name, Then then) {
    std::vector<Then>& waiting = coming_[name];
    waiting.push_back(std::move(then));
    return waiting.size() == 1;
  }
  // Those that waited; the session is on its way no more.
  std::vector<Then> TakeWaiting(const SessionName& name) {
    return std::move(coming_.extract(name).mapped());
  }

  // This entry of the journal removes it.
  void Removed(const SessionName& name, uint64_t entry) {
    removed_[name] = entry;
  }
  // Whether what was read of it counts; entries up to `durable` are on stable
  // storage.
  bool IsSettled(const SessionName& name, uint64_t durable) const {
    const auto removed = removed_.find(name);
    return coming_.count(name) == 0 &&
           (removed == removed_.end() || removed->second <= durable);
  }
  // Removals up to `durable` need not be remembered.
  void Forget(uint64_t durable) {
    std::erase_if(removed_, [durable](const auto& each) {
      return each.second <= durable;
    });
  }

 private:
  std::map<SessionName, std::vector<Then>> coming_;
  std::map<SessionName, uint64_t> removed_;  // with the entry
};

}  // namespace txl
