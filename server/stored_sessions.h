#pragma once

// The store of --data-dir put together: journal, images, and what is done with
// them now and then.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/base/periodic.h"
#include "server/scheduler/scheduler.h"
#include "server/session/image_store.h"
#include "server/session/session_journal.h"
#include "server/session/session_store.h"

namespace txl {

struct StoreFlags {
  std::string data_dir;             // empty: sessions end with the process
  std::string durability = "turn";  // or "token"
  absl::Duration journal_interval = absl::Milliseconds(100);
  int64_t journal_lag = 64;  // tokens of a session that are out, not stored
  int64_t store_bytes = int64_t{20'000'000'000};  // of the database
  // A state in a slot becomes an image when its last one is so many tokens old;
  // 0: only where it leaves its slot, and at the end.
  int64_t snapshot_tokens = 4096;
  bool recover = false;
};

struct StoredModel {
  std::string fingerprint;
  int64_t vocab_size = 0;
};

// Thread-safe. Outlives the session store and the scheduler that use it, but
// for Stop.
class StoredSessions {
 public:
  // Errors name the flag or the file.
  static absl::StatusOr<std::unique_ptr<StoredSessions>> Open(
      const StoreFlags& flags, const StoredModel& model);

  SessionJournal* journal() const { return journal_.get(); }
  ImageStore* images() const { return images_.get(); }

  // From now on sessions that are not used leave memory, what has expired ends,
  // and states are saved. Both outlive Stop. `failed`: the storage has failed.
  void Start(SessionStore* store, Scheduler* scheduler,
             std::function<void()> failed);
  // Saves the states of all sessions in slots, as far as `timeout` allows, and
  // commits what is there. No turn runs.
  void Drain(absl::Duration timeout);
  // No call of store or scheduler runs afterwards, and no callback of theirs.
  void Stop();

 private:
  explicit StoredSessions(const StoreFlags& flags) : flags_(flags) {}
  void Tidy();
  // Submits a turn that saves the state of each session whose image is so old.
  void SaveStates(int64_t tokens);

  const StoreFlags flags_;
  std::unique_ptr<ImageStore> images_;
  std::unique_ptr<SessionJournal> journal_;
  SessionStore* store_ = nullptr;
  Scheduler* scheduler_ = nullptr;
  std::function<void()> failed_;
  std::unique_ptr<Periodic> tidying_;  // last
};

}  // namespace txl
