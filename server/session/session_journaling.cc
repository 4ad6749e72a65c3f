// SessionStore: what the journal is told.

#include <utility>

#include "server/session/session_store.h"
#include "server/session/session_store_impl.h"

namespace txl {

JournalTokens SessionStore::Impl::TakeOn(SessionRecord& record,
                                         absl::Span<const int32_t> ids) {
  JournalTokens tokens;
  tokens.from = record.position();
  if (record.journaled) tokens.ids.assign(ids.begin(), ids.end());
  record.token_ids.Append(ids);
  if (record.position() > record.charged_tokens) {
    Charge(record, record.position());
  }
  return tokens;
}

void SessionStore::Impl::Entered(SessionRecord& record, uint64_t entry) {
  record.durable.Entered(entry, record.position(), DurableOf(record.name));
}

uint64_t SessionStore::Impl::DurableOf(const SessionName& name) const {
  return options.journal->Of(name.text())->durable_entry();
}

void SessionStore::Impl::EnterEnd(SessionRecord& record,
                                  std::shared_ptr<const TurnRecord> turn) {
  JournalEnd end;
  end.tokens = std::exchange(record.tokens_of_end, {});
  end.last_turn = record.last_turn;
  if (record.detokenizer != nullptr) {
    end.detokenizer = record.detokenizer->State();
  }
  end.earlier_requests = record.earlier_requests.hashes();
  end.record = std::move(turn);
  end.last_use = clock->Now();
  Entered(record, options.journal->End(record.name.text(), std::move(end)));
}

void SessionStore::Impl::Journal(SessionRecord& record) {
  if (options.journal == nullptr) return;
  record.journaled = true;
  if (options.shared != nullptr) {
    record.claim = std::make_shared<SessionClaim>();
    options.shared->Hold(record.name.text(), record.claim);
  }
  Entered(record, options.journal->Create(HeadOf(record), record.token_ids));
}

void SessionStore::Impl::JournalFork(const SessionRecord& parent,
                                     SessionRecord& child) {
  // Servers may keep parent and child in different places.
  if (options.shared != nullptr) return Journal(child);
  child.journaled = true;
  Entered(child, options.journal->Fork(parent.name.text(), child.position(),
                                       HeadOf(child)));
}

void SessionStore::Impl::RemoveStored(SessionRecord& record) {
  if (!record.journaled) return;
  // A turn that still runs on it tells nobody any more: the id may belong to a
  // newer session.
  record.journaled = false;
  Unstore(record.name);
}

void SessionStore::Impl::Unstore(const SessionName& name) {
  removed[name] = options.journal->Remove(name.text());
  if (options.images != nullptr) options.images->Remove(name.text());
}

void SessionStore::Impl::ExpireStored(const SessionName& name) {
  if (options.shared == nullptr) return Unstore(name);
  removed[name] = options.shared->Expire(name.text(), clock->Now());
}

StoredHead SessionStore::Impl::HeadOf(const SessionRecord& record) const {
  StoredHead head;
  head.session_id = record.name.text();
  head.ttl = record.ttl;
  head.create_time = record.create_time;
  head.last_use = clock->Now();
  if (record.detokenizer != nullptr) {
    head.detokenizer = record.detokenizer->State();
  }
  head.last_turn = record.last_turn;
  head.earlier_requests = record.earlier_requests.hashes();
  return head;
}

}  // namespace txl
