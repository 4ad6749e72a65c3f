#pragma once

// Holds what a turn says until the journal has it on stable storage: Started
// until the turn's intent is there, Finished until the turn's end is, and each
// token where every token must be. So no client is told of what a crash undoes,
// except for tokens that the same request gets again.
//
// It stands between the scheduler and a transport's sink.

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <variant>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/base/clock.h"
#include "server/scheduler/turn.h"
#include "server/session/session_claim.h"
#include "server/session/session_journal.h"

namespace txl {

struct DurableSinkOptions {
  SessionJournal* journal = nullptr;  // outlives the sink
  // Every token waits for the storage, not only the turn's begin and end.
  bool tokens_wait = false;
  // Else at most so many tokens, >= 1, are out and not on stable storage: those
  // beyond wait, and the turn is parked.
  int64_t most_lag = 64;
  // Set for a session that servers share. No client is told what it lost: the
  // turn fails with SESSION_MOVED. A token also waits for the storage where
  // nothing was confirmed for `most_silence`: another server may have it.
  std::shared_ptr<const SessionClaim> claim;
  absl::Duration most_silence = absl::Seconds(4);
  std::function<absl::Duration()> boot_time = BootTime;
  int park_events = 64;        // SchedulerOptions::park_events
  std::function<void()> wake;  // the scheduler
};

class DurableSink final : public TokenSink,
                          public std::enable_shared_from_this<DurableSink> {
 public:
  // `cancel`: the turn's; set when the journal fails.
  DurableSink(DurableSinkOptions options, std::shared_ptr<TokenSink> sink,
              std::shared_ptr<CancelToken> cancel);

  void Started(const TurnStarted& started) override;
  void Token(TokenEvent event) override;
  void Scored(std::vector<ScoredToken> tokens) override;
  void Finished(const TurnFinished& finished) override;
  void Failed(const absl::Status& status) override;
  int Unsent() const override;

 private:
  // One thing that the sink is told.
  using Said = std::variant<TurnStarted, TokenEvent, std::vector<ScoredToken>,
                            TurnFinished, absl::Status>;
  // What waits for an entry of the journal, and for those before it.
  struct Held {
    uint64_t entry = 0;
    Said said;
  };

  void Say(Held held) ABSL_LOCKS_EXCLUDED(mutex_);
  void Tell(Said said) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SayDurable() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The entry for which the journal has to hurry; 0: none.
  uint64_t NextWait() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The session is in other hands, and the sink knows it.
  bool Moved() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool Confirmed() const;
  // Goes on once entry `entry` is there.
  void WaitFor(uint64_t entry) ABSL_LOCKS_EXCLUDED(mutex_);
  void OnDurable(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);
  // The entry that must be on stable storage before the next token is said,
  // whose own entry is `entry`.
  uint64_t EntryBefore(uint64_t entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Tokens said or held that are not on stable storage.
  int64_t Lag() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const DurableSinkOptions options_;
  const std::shared_ptr<TokenSink> sink_;
  const std::shared_ptr<CancelToken> cancel_;

  mutable absl::Mutex mutex_;
  std::deque<Held> held_ ABSL_GUARDED_BY(mutex_);
  // Entries of tokens that are not on stable storage, oldest first.
  std::deque<uint64_t> lagging_ ABSL_GUARDED_BY(mutex_);
  uint64_t awaited_ ABSL_GUARDED_BY(mutex_) = 0;
  bool failed_ ABSL_GUARDED_BY(mutex_) = false;  // the journal has
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;   // the sink heard the end
};

}  // namespace txl
