#pragma once

// Several shared journals as one: each session is kept by the one that the hash
// of its name picks, and goes on whatever becomes of the others. What is asked
// of all is answered when the last has answered.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/session/shared_journal.h"

namespace txl {

// Errors of what is asked of all are those of any: a list without the sessions
// of one would say that they are gone. Only ListExpired tells of those that
// answer.
class ShardedJournal final : public SharedJournal {
 public:
  // At least one, in an order that stays: ShardOf counts them.
  explicit ShardedJournal(std::vector<std::unique_ptr<SharedJournal>> parts)
      : parts_(std::move(parts)) {}

  SessionJournal* Of(const std::string& session_id) override {
    return &PartOf(session_id);
  }

  uint64_t Create(const StoredHead& head, const TokenSequence& ids) override {
    return PartOf(head.session_id).Create(head, ids);
  }
  // REQUIRES: one part keeps both. Who does not know makes the child with its
  // ids: parts share nothing.
  uint64_t Fork(const std::string& parent, int64_t position,
                const StoredHead& child) override {
    return PartOf(child.session_id).Fork(parent, position, child);
  }
  uint64_t Begin(const std::string& session_id, TurnIntent intent,
                 absl::Time now) override {
    return PartOf(session_id).Begin(session_id, std::move(intent), now);
  }
  uint64_t Append(const std::string& session_id,
                  JournalTokens tokens) override {
    return PartOf(session_id).Append(session_id, std::move(tokens));
  }
  uint64_t End(const std::string& session_id, JournalEnd end) override {
    return PartOf(session_id).End(session_id, std::move(end));
  }
  uint64_t Rewind(const std::string& session_id, int64_t position,
                  const StoredHead& head) override {
    return PartOf(session_id).Rewind(session_id, position, head);
  }
  uint64_t Remove(const std::string& session_id) override {
    return PartOf(session_id).Remove(session_id);
  }
  uint64_t Expire(const std::string& session_id, absl::Time now) override {
    return PartOf(session_id).Expire(session_id, now);
  }

  uint64_t last_entry() const override;
  uint64_t durable_entry() const override;
  // Of all that was entered before the call, whatever `entry` is.
  void WhenDurable(uint64_t entry,
                   std::function<void(const absl::Status&)> done) override;

  void Hold(const std::string& session_id,
            std::shared_ptr<SessionClaim> claim) override {
    PartOf(session_id).Hold(session_id, std::move(claim));
  }
  void Drop(const std::string& session_id,
            const std::shared_ptr<SessionClaim>& claim) override {
    PartOf(session_id).Drop(session_id, claim);
  }
  void Load(const std::string& session_id,
            std::function<void(absl::StatusOr<StoredSession>)> done) override {
    PartOf(session_id).Load(session_id, std::move(done));
  }
  void Refresh(const std::string& session_id,
               std::shared_ptr<SessionClaim> held, Done done) override {
    PartOf(session_id).Refresh(session_id, std::move(held), std::move(done));
  }
  void Acquire(const std::string& session_id, const TurnIdentity& identity,
               std::shared_ptr<SessionClaim> held, Done done) override {
    PartOf(session_id)
        .Acquire(session_id, identity, std::move(held), std::move(done));
  }
  void Release(const std::string& session_id) override {
    PartOf(session_id).Release(session_id);
  }
  absl::Status TakeRefusal(const std::string& session_id) override {
    return PartOf(session_id).TakeRefusal(session_id);
  }
  void OnMoved(std::function<void(const std::string& session_id,
                                  const std::shared_ptr<SessionClaim>& claim)>
                   moved) override;

  void List(const std::string& after, int64_t count,
            std::function<void(absl::StatusOr<std::vector<StoredInfo>>)> done)
      override;
  void ListExpired(
      absl::Time now, int64_t count,
      std::function<void(absl::StatusOr<std::vector<StoredPosition>>)> done)
      override;
  void Positions(const std::string& session_id,
                 std::function<void(const StoredPosition&)> each,
                 std::function<void(const absl::Status&)> done) override;

  absl::Duration Silent() const override;
  absl::Duration LongestSilence() const override;
  // Sums; full or failed where any is.
  JournalStatus status() const override;
  void Drain(absl::Duration timeout) override;

 private:
  SharedJournal& PartOf(const std::string& session_id) const;

  const std::vector<std::unique_ptr<SharedJournal>> parts_;
};

}  // namespace txl
