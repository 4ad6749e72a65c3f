#include "server/stored_sessions.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "model/base/status_macros.h"
#include "server/base/log.h"
#include "server/store/image_files.h"
#include "server/store/image_keeper.h"
#include "server/store/sqlite_journal.h"

namespace txl {
namespace {

constexpr absl::Duration kTidyInterval = absl::Seconds(1);
constexpr absl::Duration kDrainPoll = absl::Milliseconds(5);

// Nobody waits for a state that is saved.
class NoSink final : public TokenSink {
 public:
  void Started(const TurnStarted&) override {}
  void Token(TokenEvent) override {}
  void Scored(std::vector<ScoredToken>) override {}
  void Finished(const TurnFinished&) override {}
  void Failed(const absl::Status&) override {}
  int Unsent() const override { return 0; }
};

absl::Status Named(const absl::Status& status) {
  return absl::Status(status.code(),
                      absl::StrCat("--data-dir: ", status.message()));
}

}  // namespace

absl::StatusOr<std::unique_ptr<StoredSessions>> StoredSessions::Open(
    const StoreFlags& flags, const StoredModel& model) {
  std::unique_ptr<StoredSessions> stored(new StoredSessions(flags));
  SqliteJournalOptions journal;
  journal.folder = flags.data_dir;
  journal.interval = flags.journal_interval;
  // Images give way to ids.
  journal.max_bytes = flags.store_bytes;
  journal.fingerprint = model.fingerprint;
  journal.vocab_size = model.vocab_size;
  journal.recover = flags.recover;
  absl::StatusOr<std::unique_ptr<SessionJournal>> opened =
      OpenSqliteJournal(journal);
  if (!opened.ok()) return Named(opened.status());
  stored->journal_ = *std::move(opened);
  absl::StatusOr<std::unique_ptr<ImageFiles>> files =
      ImageFiles::Open(flags.data_dir, flags.store_bytes / 2);
  if (!files.ok()) return Named(files.status());
  stored->images_ =
      std::make_unique<ImageKeeper>(*std::move(files), ImageKeeperOptions());
  const JournalStatus status = stored->journal_->status();
  Log(LogSeverity::kInfo, "store",
      {{"folder", flags.data_dir},
       {"durability", flags.durability},
       {"sessions", status.sessions},
       {"bytes", status.bytes}});
  return stored;
}

void StoredSessions::Start(SessionStore* store, Scheduler* scheduler,
                           std::function<void()> failed) {
  store_ = store;
  scheduler_ = scheduler;
  failed_ = std::move(failed);
  tidying_ = std::make_unique<Periodic>(kTidyInterval, [this] { Tidy(); });
}

void StoredSessions::Tidy() {
  if (journal_->status().failed) return failed_();
  store_->TidyStored();
  if (flags_.snapshot_tokens > 0) SaveStates(flags_.snapshot_tokens);
}

void StoredSessions::SaveStates(int64_t tokens) {
  const auto sink = std::make_shared<NoSink>();
  for (const SessionName& session : store_->ImagesDue(tokens)) {
    absl::StatusOr<SessionLease> lease = store_->Acquire(session);
    if (!lease.ok()) continue;  // a turn began, or the session ended
    Turn turn;
    turn.kind = TurnKind::kSave;
    turn.lease = *std::move(lease);
    turn.sink = sink;
    (void)scheduler_->Submit(std::move(turn));  // later then
  }
}

void StoredSessions::Drain(absl::Duration timeout) {
  const absl::Time end = absl::Now() + timeout;
  tidying_.reset();
  if (scheduler_ != nullptr) {
    SaveStates(1);
    while (!scheduler_->Idle() && absl::Now() < end) absl::SleepFor(kDrainPoll);
  }
  journal_->Drain(std::max(end - absl::Now(), kDrainPoll));
}

void StoredSessions::Stop() {
  images_->Flush();
  journal_.reset();
  images_.reset();
}

}  // namespace txl
