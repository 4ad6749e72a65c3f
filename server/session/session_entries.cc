#include "server/session/session_entries.h"

#include <utility>

namespace txl {

StoredHead HeadOf(const SessionRecord& record, absl::Time now) {
  StoredHead head;
  head.session_id = record.name.text();
  head.ttl = record.ttl;
  head.create_time = record.create_time;
  head.last_use = now;
  if (record.detokenizer != nullptr) {
    head.detokenizer = record.detokenizer->State();
  }
  head.last_turn = record.last_turn;
  head.earlier_requests = record.earlier_requests.hashes();
  return head;
}

void SessionEntries::Entered(SessionRecord& record, uint64_t entry) {
  record.durable.Entered(entry, record.position(), durable());
}

void SessionEntries::Create(SessionRecord& record) {
  if (to_.journal == nullptr) return;
  record.journaled = true;
  if (to_.shared != nullptr) {
    record.claim = std::make_shared<SessionClaim>();
    to_.shared->Hold(record.name.text(), record.claim);
  }
  Entered(record,
          to_.journal->Create(HeadOf(record, clock_->Now()), record.token_ids));
}

void SessionEntries::Fork(const SessionRecord& parent, SessionRecord& child) {
  if (!parent.journaled) return;
  // Servers may keep parent and child in different places.
  if (to_.shared != nullptr) return Create(child);
  child.journaled = true;
  Entered(child, to_.journal->Fork(parent.name.text(), child.position(),
                                   HeadOf(child, clock_->Now())));
}

void SessionEntries::Begin(SessionRecord& record) {
  if (!record.journaled) return;
  Entered(record, to_.journal->Begin(record.name.text(), *record.intent,
                                     clock_->Now()));
}

void SessionEntries::Append(SessionRecord& record, JournalTokens tokens,
                            absl::Span<const TokenEvent> said) {
  if (!record.journaled) return;
  tokens.events.assign(said.begin(), said.end());
  Entered(record, to_.journal->Append(record.name.text(), std::move(tokens)));
}

void SessionEntries::End(SessionRecord& record,
                         std::shared_ptr<const TurnRecord> turn) {
  if (!record.journaled) return;
  StoredHead head = HeadOf(record, clock_->Now());
  JournalEnd end;
  end.tokens = std::exchange(record.tokens_of_end, {});
  end.last_turn = std::move(head.last_turn);
  end.detokenizer = std::move(head.detokenizer);
  end.earlier_requests = std::move(head.earlier_requests);
  end.record = std::move(turn);
  end.last_use = head.last_use;
  Entered(record, to_.journal->End(record.name.text(), std::move(end)));
}

void SessionEntries::Rewind(SessionRecord& record) {
  if (!record.journaled) return;
  Entered(record, to_.journal->Rewind(record.name.text(), record.position(),
                                      HeadOf(record, clock_->Now())));
}

uint64_t SessionEntries::Remove(const SessionName& name) {
  if (to_.images != nullptr) to_.images->Remove(name.text());
  return to_.journal->Remove(name.text());
}

uint64_t SessionEntries::Expire(const SessionName& name) {
  if (to_.shared == nullptr) return Remove(name);
  // Only the journal knows whether another server has used it since.
  return to_.shared->Expire(name.text(), clock_->Now(),
                            [images = to_.images, id = name.text()] {
                              if (images != nullptr) images->Remove(id);
                            });
}

}  // namespace txl
