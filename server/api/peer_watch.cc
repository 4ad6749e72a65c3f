#include "server/api/peer_watch.h"

#include "absl/strings/match.h"

namespace txl {
namespace {

bool IsWatched(const std::string& peer) {
  return !absl::StartsWith(peer, "unix:");
}

}  // namespace

bool PeerWatch::Opened(const std::string& peer) {
  if (!IsWatched(peer)) return false;
  absl::MutexLock lock(&mutex_);
  return ++open_[peer] == most_open_ + 1;
}

void PeerWatch::Closed(const std::string& peer) {
  if (!IsWatched(peer)) return;
  absl::MutexLock lock(&mutex_);
  const auto found = open_.find(peer);
  if (--found->second == 0) open_.erase(found);
}

bool PeerWatch::Reset(const std::string& peer, absl::Duration now) {
  if (!IsWatched(peer)) return false;
  absl::MutexLock lock(&mutex_);
  if (now - resets_since_ >= absl::Seconds(1)) {
    resets_since_ = now;
    resets_.clear();
  }
  return ++resets_[peer] == kMostResets;
}

}  // namespace txl
