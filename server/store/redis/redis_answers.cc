#include "server/store/redis/redis_answers.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "model/base/crc32c.h"
#include "model/base/status_macros.h"
#include "server/base/byte_fields.h"
#include "server/store/record_codec.h"
#include "server/store/redis/sealed_value.h"
#include "server/store/store_errors.h"

namespace txl {
namespace {

int64_t NumberOf(const std::string& word) {
  int64_t number = 0;
  return absl::SimpleAtoi(word, &number) ? number : -1;
}

absl::Time TimeOf(const std::string& nanos) {
  return nanos.empty() ? absl::InfinitePast()
                       : absl::FromUnixNanos(NumberOf(nanos));
}

absl::StatusOr<std::vector<TokenEvent>> ReadEvents(absl::string_view bytes) {
  std::vector<TokenEvent> events;
  ByteReader in(bytes);
  while (in.ok() && !in.rest().empty()) {
    const std::optional<std::string> piece = Unsealed(in.Text());
    if (!piece.has_value()) return SessionDamagedError();
    ByteReader tokens(*piece);
    JournalTokens some = ReadTokens(tokens);
    if (!tokens.done()) return SessionDamagedError();
    std::move(some.events.begin(), some.events.end(),
              std::back_inserter(events));
  }
  if (!in.done()) return SessionDamagedError();
  return events;
}

absl::StatusOr<KeptHead> ReadHead(absl::string_view stored) {
  const std::optional<std::string> head = Unsealed(stored);
  if (!head.has_value()) return SessionDamagedError();
  return DecodeHead(*head);
}

// `words` as load answers.
absl::StatusOr<TokenSequence> ReadIds(const RedisCaller& caller,
                                      const std::vector<std::string>& words) {
  const std::string& bytes = words[14];
  const std::optional<IdChain> chain = IdChain::Of(words[4]);
  if (!chain.has_value() || words[8] != absl::StrCat(WidthOf(caller)) ||
      chain->ids_crc != ExtendCrc32c(0, bytes.data(), bytes.size())) {
    return SessionDamagedError();
  }
  TXL_ASSIGN_OR_RETURN(const std::vector<int32_t> ids,
                       DecodeIds(bytes, caller.vocab_size));
  TokenSequence sequence;
  sequence.Append(ids);
  return sequence;
}

}  // namespace

absl::StatusOr<StoredSession> ReadSession(
    const RedisCaller& caller, const std::string& session_id,
    const std::vector<std::string>& words) {
  if (words.size() != 16) return SessionDamagedError();
  if (words[7] != caller.fingerprint) return OtherModelError();
  const absl::StatusOr<KeptHead> head = ReadHead(words[9]);
  absl::StatusOr<TokenSequence> ids = ReadIds(caller, words);
  const int64_t position = NumberOf(words[3]);
  const int64_t base = NumberOf(words[5]);
  const bool sound = head.ok() && head->head.session_id == session_id &&
                     ids.ok() && position == ids->size() && base >= 0 &&
                     base <= position;
  if (!sound) return SessionDamagedError();
  StoredSession stored;
  stored.head = head->head;
  stored.head.last_use = std::max(stored.head.last_use, TimeOf(words[11]));
  stored.token_ids = *std::move(ids);
  stored.running_tokens = position - base;
  if (!words[10].empty()) {
    const std::optional<std::string> intent = Unsealed(words[10], words[5]);
    if (!intent.has_value()) return SessionDamagedError();
    ByteReader in(*intent);
    stored.running = ReadIntent(in);
    if (!in.done()) return SessionDamagedError();
  }
  if (!words[12].empty()) {
    const std::optional<std::string> record = Unsealed(words[12]);
    if (!record.has_value()) return SessionDamagedError();
    absl::StatusOr<KeptRecord> kept = DecodeRecord(*record);
    if (!kept.ok()) return SessionDamagedError();
    stored.record = std::make_shared<const TurnRecord>(std::move(kept->record));
    stored.record_detokenizer = std::move(kept->detokenizer);
  }
  TXL_ASSIGN_OR_RETURN(stored.running_events, ReadEvents(words[13]));
  stored.claim = std::make_shared<SessionClaim>();
  SessionClaim::Version& version = stored.claim->version;
  version.epoch = words[1];
  version.nonce = words[2];
  version.position = position;
  version.chain = words[4];
  version.born = words[6];
  version.ttl = stored.head.ttl;
  version.create_time = stored.head.create_time;
  return stored;
}

int64_t BusyOf(const std::vector<std::string>& words) {
  return words.empty() ? 0 : std::max<int64_t>(NumberOf(words.back()), 0);
}

std::vector<StoredInfo> ReadList(const std::vector<std::string>& words) {
  std::vector<StoredInfo> page;
  for (size_t i = 0; i + 4 <= words.size(); i += 4) {
    StoredInfo info;
    // A damaged one is listed by its name.
    const absl::StatusOr<KeptHead> head = ReadHead(words[i + 3]);
    if (head.ok()) info.head = head->head;
    info.head.last_use = std::max(info.head.last_use, TimeOf(words[i + 2]));
    info.head.session_id = SessionOfRedisName(words[i]);
    info.position = std::max<int64_t>(NumberOf(words[i + 1]), 0);
    page.push_back(std::move(info));
  }
  return page;
}

std::vector<StoredPosition> ReadExpired(const std::vector<std::string>& words) {
  std::vector<StoredPosition> expired;
  for (size_t i = 0; i + 2 <= words.size(); i += 2) {
    expired.push_back({SessionOfRedisName(words[i]),
                       std::max<int64_t>(NumberOf(words[i + 1]), 0)});
  }
  return expired;
}

}  // namespace txl
