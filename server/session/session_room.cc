// SessionStore: who may take memory for sessions, and who gives way.

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "model/base/status_macros.h"
#include "server/base/error.h"
#include "server/session/session_errors.h"
#include "server/session/session_store_impl.h"

namespace txl {
namespace {

// What named sessions may take of `all`.
int64_t NamedShare(int64_t all, const SessionStoreOptions& options) {
  return all - static_cast<int64_t>(static_cast<double>(all) *
                                    options.temporary_reserve);
}

}  // namespace

absl::Status SessionStore::Impl::MakePlace(bool temporary) {
  const auto full = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    const auto all = static_cast<int64_t>(by_key.size());
    if (all >= options.max_sessions) return true;
    return !temporary &&
           all - temporary_count >= NamedShare(options.max_sessions, options);
  };
  while (full()) {
    if (StoreOldestAway(options.empty_grace) || EndOldestEmpty()) continue;
    return NoSessionMemoryError(absl::StrCat("the server holds its maximum of ",
                                             options.max_sessions, " sessions"),
                                options.memory_retry);
  }
  return MakeRoom(kSessionRecordBytes, temporary);
}

absl::Status SessionStore::Impl::MakeRoom(int64_t bytes, bool temporary) {
  const int64_t limit =
      temporary ? options.id_bytes : NamedShare(options.id_bytes, options);
  const int64_t empty =
      static_cast<int64_t>(empty_idle.size()) * kSessionRecordBytes;
  // Nobody gives way for what does not fit anyway.
  bool fits = bytes <= limit - (session_bytes + shared_bytes.used() - empty) ||
              options.journal != nullptr;
  while (fits && IdBytes() + bytes > limit) {
    fits = StoreOldestAway(options.empty_grace) || ended.ForgetOldest() ||
           EndOldestEmpty();
  }
  if (fits) return absl::OkStatus();
  return NoSessionMemoryError(
      absl::StrCat("sessions and their tokens fill their budget of ",
                   options.id_bytes, " bytes"),
      options.memory_retry);
}

bool SessionStore::Impl::EndOldestEmpty() {
  // Another server may have filled it since.
  if (empty_idle.empty() || options.shared != nullptr) return false;
  const auto [last_use, key] = *empty_idle.begin();
  if (clock->Monotonic() - last_use < options.empty_grace) return false;
  const RecordPtr record = by_key.at(key);
  ended.Remember(record->name.text(), SessionEnd::kEvicted);
  RemoveStored(*record);
  End(record);
  return true;
}

absl::Status SessionStore::Impl::Reserve(SessionRecord& record,
                                         int64_t tokens) {
  const int64_t room = options.max_session_tokens - record.position();
  if (tokens > room) {
    return OverLimitError(
        "session_id",
        absl::StrCat("the session holds ", record.position(), " of at most ",
                     options.max_session_tokens, " tokens, so it has no room ",
                     "for ", tokens, " more"));
  }
  const int64_t wanted = record.position() + tokens;
  if (record.counted) {
    TXL_RETURN_IF_ERROR(
        quota.MayGrow(record.name.tenant(), record.charged_tokens, wanted));
  }
  const int64_t more = TokenSequence::BytesFor(wanted) -
                       TokenSequence::BytesFor(record.charged_tokens);
  if (more > 0) {
    absl::Status made = MakeRoom(more, record.temporary());
    if (!made.ok()) return made;
  }
  Charge(record, wanted);
  return absl::OkStatus();
}

void SessionStore::Impl::Charge(SessionRecord& record, int64_t tokens) {
  Charge(record, tokens, record.shared_pieces.size());
}

void SessionStore::Impl::Charge(SessionRecord& record, int64_t tokens,
                                size_t shared) {
  std::vector<std::shared_ptr<const ByteHold>>& pieces = record.shared_pieces;
  const auto was_shared = static_cast<int64_t>(pieces.size());
  while (pieces.size() > shared) pieces.pop_back();
  while (pieces.size() < shared) {
    pieces.push_back(std::make_shared<const ByteHold>(
        *shared_bytes.TryHold(TokenSequence::BytesOfPiece())));
  }
  session_bytes += TokenSequence::BytesFor(tokens) -
                   TokenSequence::BytesFor(record.charged_tokens) -
                   (static_cast<int64_t>(shared) - was_shared) *
                       TokenSequence::BytesOfPiece();
  if (record.counted) {
    quota.Change(record.name.tenant(), record.charged_tokens, tokens);
  }
  record.charged_tokens = tokens;
}

void SessionStore::Impl::Uncount(SessionRecord& record) {
  if (!std::exchange(record.counted, false)) return;
  quota.Remove(record.name.tenant(), record.charged_tokens);
}

}  // namespace txl
