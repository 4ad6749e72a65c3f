#include "server/stored_sessions.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "model/base/status_macros.h"
#include "server/base/clock.h"
#include "server/base/log.h"
#include "server/store/image_files.h"
#include "server/store/redis/redis_connection.h"
#include "server/store/redis/redis_journal.h"
#include "server/store/sqlite_journal.h"

namespace txl {
namespace {

constexpr absl::Duration kTidyInterval = absl::Seconds(1);
constexpr absl::Duration kDrainPoll = absl::Milliseconds(5);
// At what other servers have done to shared images.
constexpr absl::Duration kLookAgain = absl::Minutes(10);

absl::Status Named(const char* flag, const absl::Status& status) {
  return absl::Status(status.code(),
                      absl::StrCat(flag, ": ", status.message()));
}

absl::Duration IntervalOf(const StoreFlags& flags) {
  if (flags.journal_interval > absl::ZeroDuration()) {
    return flags.journal_interval;
  }
  return flags.store.empty() ? absl::Milliseconds(100) : absl::Seconds(1);
}

}  // namespace

absl::Status CheckStoreFlags(const StoreFlags& flags) {
  if (!flags.store.empty()) {
    if (!flags.data_dir.empty()) {
      return absl::InvalidArgumentError(
          "--data-dir and --store: sessions are kept in one of them");
    }
    const absl::Status address = ParseRedisAddress(flags.store).status();
    return address.ok() ? address : Named("--store", address);
  }
  return flags.image_dir.empty()
             ? absl::OkStatus()
             : absl::InvalidArgumentError(
                   "--image-dir goes with --store; --data-dir has its own");
}

absl::StatusOr<std::unique_ptr<StoredSessions>> StoredSessions::Open(
    const StoreFlags& flags, const StoredModel& model, ByteBudget* kept) {
  std::unique_ptr<StoredSessions> stored(new StoredSessions(flags));
  TXL_RETURN_IF_ERROR(flags.store.empty() ? stored->OpenLocal(model)
                                          : stored->OpenShared(model, kept));
  const JournalStatus status = stored->journal_->status();
  Log(LogSeverity::kInfo, "store",
      {{"at", flags.store.empty() ? flags.data_dir : flags.store},
       {"durability", flags.durability},
       {"late", stored->late_},
       {"sessions", status.sessions},
       {"bytes", status.bytes}});
  return stored;
}

absl::Status StoredSessions::OpenLocal(const StoredModel& model) {
  SqliteJournalOptions journal;
  journal.folder = flags_.data_dir;
  journal.interval = IntervalOf(flags_);
  // Images give way to ids.
  journal.max_bytes = flags_.store_bytes;
  journal.fingerprint = model.fingerprint;
  journal.vocab_size = model.vocab_size;
  journal.recover = flags_.recover;
  absl::StatusOr<std::unique_ptr<SessionJournal>> opened =
      OpenSqliteJournal(journal);
  if (!opened.ok()) return Named("--data-dir", opened.status());
  journal_ = *std::move(opened);
  const absl::Status images =
      OpenImages(flags_.data_dir, absl::InfiniteDuration());
  return images.ok() ? images : Named("--data-dir", images);
}

absl::Status StoredSessions::OpenShared(const StoredModel& model,
                                        ByteBudget* kept) {
  RedisJournalOptions options;
  TXL_ASSIGN_OR_RETURN(options.address, ParseRedisAddress(flags_.store));
  options.interval = IntervalOf(flags_);
  options.lease = flags_.session_lease;
  options.fingerprint = model.fingerprint;
  options.vocab_size = model.vocab_size;
  options.kept = kept;
  absl::StatusOr<std::unique_ptr<RedisJournal>> opened =
      RedisJournal::Open(options);
  if (!opened.ok()) return Named("--store", opened.status());
  shared_ = opened->get();
  late_ = (*opened)->late();
  journal_ = *std::move(opened);
  if (flags_.image_dir.empty()) return absl::OkStatus();
  const absl::Status images = OpenImages(flags_.image_dir, kLookAgain);
  return images.ok() ? images : Named("--image-dir", images);
}

absl::Status StoredSessions::OpenImages(const std::string& folder,
                                        absl::Duration look_again) {
  TXL_ASSIGN_OR_RETURN(
      std::unique_ptr<ImageFiles> files,
      ImageFiles::Open(folder, flags_.store_bytes / 2, look_again));
  images_ =
      std::make_unique<ImageKeeper>(std::move(files), ImageKeeperOptions());
  return absl::OkStatus();
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
  if (flags_.snapshot_tokens > 0) {
    scheduler_->SaveStates(store_->ImagesDue(flags_.snapshot_tokens));
  }
}

void StoredSessions::Drain(absl::Duration timeout) {
  Clock& clock = *Clock::Real();
  const absl::Duration end = clock.Monotonic() + timeout;
  tidying_.reset();
  if (scheduler_ != nullptr) {
    scheduler_->SaveStates(store_->ImagesDue(1));
    while (!scheduler_->Idle() && clock.Monotonic() < end) {
      absl::SleepFor(kDrainPoll);
    }
  }
  journal_->Drain(std::max(end - clock.Monotonic(), kDrainPoll));
}

void StoredSessions::Stop() {
  if (images_ != nullptr) images_->Flush();
  journal_.reset();
  images_.reset();
}

}  // namespace txl
