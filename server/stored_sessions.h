#pragma once

// The store of --data-dir or --store put together: journal, images, and what is
// done with them now and then.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/base/task_thread.h"
#include "server/scheduler/scheduler.h"
#include "server/session/image_store.h"
#include "server/session/session_journal.h"
#include "server/session/session_store.h"
#include "server/session/shared_journal.h"

namespace txl {

class ByteBudget;

struct StoreFlags {
  std::string data_dir;  // empty: there is none
  // Address of one Redis that servers share: redis://HOST:PORT. Empty: none.
  // Cannot be combined with data_dir.
  std::string store;
  // Folder of state images, used with `store`; servers may share it. Empty: no
  // images on disk.
  std::string image_dir;
  absl::Duration session_lease = absl::Seconds(5);  // of a shared session
  std::string durability = "turn";                  // or "token"
  // 0: a tenth of a second with data_dir, a second with `store`.
  absl::Duration journal_interval = absl::ZeroDuration();
  int64_t journal_lag = 64;  // tokens of a session that are out, not stored
  int64_t store_bytes = int64_t{20'000'000'000};  // of the database
  // A state in a slot becomes an image when its last one is so many tokens old;
  // 0: only where it leaves its slot, and at the end.
  int64_t snapshot_tokens = 4096;
  bool recover = false;

  bool kept() const { return !data_dir.empty() || !store.empty(); }
};

// InvalidArgument names the flags that do not go together, or the one that is
// none.
absl::Status CheckStoreFlags(const StoreFlags& flags);

struct StoredModel {
  std::string fingerprint;
  int64_t vocab_size = 0;
};

// Thread-safe. Outlives the session store and the scheduler that use it, but
// for Stop.
class StoredSessions {
 public:
  // Errors name the flag or the file. `kept`: RedisJournalOptions::kept.
  static absl::StatusOr<std::unique_ptr<StoredSessions>> Open(
      const StoreFlags& flags, const StoredModel& model,
      ByteBudget* kept = nullptr);

  SessionJournal* journal() const { return journal_.get(); }
  // The same journal if other servers also write it, else null.
  SharedJournal* shared() const { return shared_; }
  bool late() const { return late_; }                   // RedisJournal::late
  ImageStore* images() const { return images_.get(); }  // may be null

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
  absl::Status OpenLocal(const StoredModel& model);
  absl::Status OpenShared(const StoredModel& model, ByteBudget* kept);
  absl::Status OpenImages(const std::string& folder, absl::Duration look_again);
  void Tidy();

  const StoreFlags flags_;
  std::unique_ptr<ImageStore> images_;
  std::unique_ptr<SessionJournal> journal_;
  SharedJournal* shared_ = nullptr;
  bool late_ = false;
  SessionStore* store_ = nullptr;
  Scheduler* scheduler_ = nullptr;
  std::function<void()> failed_;
  std::unique_ptr<Periodic> tidying_;  // last
};

}  // namespace txl
