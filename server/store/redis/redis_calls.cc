#include "server/store/redis/redis_calls.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "model/base/crc32c.h"
#include "model/base/status_macros.h"
#include "server/base/byte_fields.h"
#include "server/base/digest.h"
#include "server/session/session_errors.h"
#include "server/session/session_name.h"
#include "server/store/database.h"
#include "server/store/record_codec.h"
#include "server/store/redis/sealed_value.h"

namespace txl {
namespace {

constexpr char kIds[] = "txl:ids";

// Records that are longer are not kept.
constexpr size_t kMostRecordBytes = 64 << 10;

using Version = SessionClaim::Version;

std::string KeyOf(const std::string& session_id) {
  return absl::StrCat("txl:{", RedisNameOf(session_id), "}");
}

RedisCommand Function(const char* name, std::string key) {
  return {"FCALL", absl::StrCat("txl_1_", name), "1", std::move(key)};
}

void Add(RedisCommand& command, std::initializer_list<std::string> words) {
  command.insert(command.end(), words.begin(), words.end());
}

std::string Text(int64_t number) { return absl::StrCat(number); }
std::string Millis(absl::Duration duration) {
  return absl::StrCat(absl::ToInt64Milliseconds(duration));
}
std::string Nanos(absl::Time time) {
  return absl::StrCat(absl::ToUnixNanos(time));
}
std::string ExpireOf(absl::Time used, absl::Duration ttl) {
  return absl::StrCat(absl::ToUnixMillis(used + ttl));
}

RedisCommand Fenced(const char* name, const std::string& session_id,
                    const Version& version) {
  RedisCommand command = Function(name, KeyOf(session_id));
  Add(command,
      {version.epoch, version.nonce, Text(version.position), version.chain});
  return command;
}

RedisCommand Known(const char* name, const std::string& session_id,
                   const SessionClaim* held) {
  if (held != nullptr) return Fenced(name, session_id, held->version);
  RedisCommand command = Function(name, KeyOf(session_id));
  Add(command, {"", "", "", ""});
  return command;
}

std::string HeadText(const RedisCaller& caller, const StoredHead& head) {
  return Sealed(EncodeHead({caller.fingerprint, head}));
}

// The ids of a turn: count, next chain, bytes. The version is that behind them.
void AddTokens(const RedisCaller& caller, const JournalTokens& tokens,
               const char* kind, RedisCommand& command, Version& version) {
  const std::string bytes = EncodeIds(tokens.ids, caller.vocab_size);
  version.chain = NextChain(version.chain, kind, bytes);
  const auto count = static_cast<int64_t>(tokens.ids.size());
  version.position += count;
  Add(command, {Text(count), version.chain, bytes});
}

RedisCommand Make(const RedisCaller& caller, const CreateEntry& entry,
                  Version& version) {
  const StoredHead& head = entry.head;
  const std::string ids = EncodeIds(entry.ids.Copy(), caller.vocab_size);
  version = Version();
  version.epoch = "0";
  version.born = version.nonce = NewNonce();
  version.position = entry.ids.size();
  version.chain = NextChain(version.born, "create", ids);
  version.ttl = head.ttl;
  version.create_time = head.create_time;
  RedisCommand command = Function("create", KeyOf(head.session_id));
  Add(command, {version.born, caller.fingerprint, Text(WidthOf(caller)),
                HeadText(caller, head), version.chain, Text(version.position),
                ids, ExpireOf(head.last_use, head.ttl)});
  return command;
}

RedisCommand Make(const RedisCaller& caller, const BeginEntry& entry,
                  Version& version) {
  RedisCommand command = Fenced("begin", entry.session_id, version);
  ByteWriter intent;
  WriteIntent(entry.intent, intent);
  Add(command,
      {Sealed(intent.bytes(), Text(version.position)), Nanos(entry.now),
       Millis(caller.lease), ExpireOf(entry.now, version.ttl)});
  version.owned = version.runs = true;
  return command;
}

RedisCommand Make(const RedisCaller& caller, const AppendEntry& entry,
                  Version& version) {
  version.position = entry.tokens.from;
  RedisCommand command = Fenced("append", entry.session_id, version);
  AddTokens(caller, entry.tokens, "append", command, version);
  std::string events;
  if (!entry.tokens.events.empty()) {
    ByteWriter out;
    WriteTokens({0, {}, entry.tokens.events}, out);
    ByteWriter piece;  // behind those that are there
    piece.Text(Sealed(out.bytes()));
    events = piece.Take();
  }
  Add(command, {events, Millis(caller.lease)});
  return command;
}

RedisCommand Make(const RedisCaller& caller, const EndEntry& entry,
                  Version& version) {
  const JournalEnd& end = entry.end;
  if (!end.tokens.ids.empty()) version.position = end.tokens.from;
  RedisCommand command = Fenced("end", entry.session_id, version);
  AddTokens(caller, end.tokens, "end", command, version);
  StoredHead head;
  head.session_id = entry.session_id;
  head.ttl = version.ttl;
  head.create_time = version.create_time;
  head.last_use = end.last_use;
  head.detokenizer = end.detokenizer;
  head.last_turn = end.last_turn;
  head.earlier_requests = end.earlier_requests;
  std::string record;
  if (end.record != nullptr) record = Sealed(EncodeRecord(*end.record));
  if (record.size() > kMostRecordBytes) record.clear();
  Add(command,
      {HeadText(caller, head), record, ExpireOf(end.last_use, version.ttl)});
  version.owned = version.runs = false;
  return command;
}

// `kept`: bytes of the ids that stay.
RedisCommand MakeRewind(const RedisCaller& caller, const RewindEntry& entry,
                        absl::string_view kept, Version& version) {
  RedisCommand command = Fenced("rewind", entry.session_id, version);
  int64_t epoch = 0;
  (void)absl::SimpleAtoi(version.epoch, &epoch);
  version.epoch = Text(epoch + 1);
  version.nonce = NewNonce();
  version.position = entry.position;
  version.chain = ChainOf(version.chain, "rewind", version.nonce, kept);
  version.owned = version.runs = false;
  Add(command, {Text(version.position), version.chain,
                HeadText(caller, entry.head), caller.owner, version.nonce,
                ExpireOf(entry.head.last_use, entry.head.ttl)});
  return command;
}

RedisCommand Make(const RedisCaller&, const RemoveEntry& entry,
                  Version& version) {
  RedisCommand command = Function("remove", KeyOf(entry.session_id));
  Add(command, {version.born, "0"});
  version.owned = version.runs = false;
  return command;
}

// RedisSender makes a creation of it.
RedisCommand Make(const RedisCaller& caller, const ForkEntry& entry,
                  Version& version) {
  return Make(caller, CreateEntry{entry.child, {}}, version);
}

// RedisSender reads what stays.
RedisCommand Make(const RedisCaller& caller, const RewindEntry& entry,
                  Version& version) {
  return MakeRewind(caller, entry, "", version);
}

}  // namespace

std::string NewNonce() {
  return absl::StrCat(absl::Hex(RandomBits(), absl::kZeroPad16),
                      absl::Hex(RandomBits(), absl::kZeroPad16));
}

int64_t WidthOf(const RedisCaller& caller) {
  return static_cast<int64_t>(EncodeIds({0}, caller.vocab_size).size());
}

std::string RedisNameOf(const std::string& session_id) {
  const SessionName name = SessionName::OfText(session_id);
  return absl::StrCat(name.tenant(), "/", name.id());
}

std::string SessionOfRedisName(const std::string& name) {
  return SessionName::OfText(name).text();
}

RedisCommand LoadCall(const std::string& session_id, const SessionClaim* held) {
  return Known("load", session_id, held);
}

RedisCommand AcquireCall(const RedisCaller& caller,
                         const std::string& session_id,
                         const TurnIdentity& identity, const std::string& nonce,
                         const SessionClaim* held) {
  RedisCommand command = Known("acquire", session_id, held);
  std::string request;
  if (identity.named()) {
    request = absl::StrCat(identity.request_id, "\n", identity.digest);
  }
  Add(command,
      {caller.fingerprint, request, nonce, caller.owner, Millis(caller.lease)});
  return command;
}

RedisCommand TouchCall(const RedisCaller& caller, const std::string& session_id,
                       const SessionClaim& claim) {
  RedisCommand command = Fenced("touch", session_id, claim.version);
  command.push_back(Millis(caller.lease));
  return command;
}

RedisCommand ReleaseCall(const std::string& session_id, SessionClaim& claim) {
  claim.version.owned = claim.version.runs = false;
  return Fenced("release", session_id, claim.version);
}

RedisCommand EntryCall(const RedisCaller& caller, const JournalEntry& entry,
                       SessionClaim& claim) {
  return std::visit(
      [&](const auto& one) { return Make(caller, one, claim.version); }, entry);
}

RedisCommand RewindCall(const RedisCaller& caller, const RewindEntry& entry,
                        const std::vector<int32_t>& kept, SessionClaim& claim) {
  return MakeRewind(caller, entry, EncodeIds(kept, caller.vocab_size),
                    claim.version);
}

RedisCommand ExpireCall(const std::string& session_id,
                        const SessionClaim* claim, absl::Time now) {
  RedisCommand command = Function("remove", KeyOf(session_id));
  Add(command, {claim == nullptr ? "" : claim->version.born,
                absl::StrCat(absl::ToUnixMillis(now))});
  return command;
}

RedisCommand ListCall(const std::string& after, int64_t count) {
  const SessionName first = SessionName::OfText(after);
  RedisCommand command = Function("list", kIds);
  // "0" comes behind "/", and no name of a tenant has either.
  Add(command, {absl::StrCat("(", first.tenant(), "/", first.id()),
                absl::StrCat("(", first.tenant(), "0"), Text(count)});
  return command;
}

RedisCommand NextNamesCall(const std::string& after_name, int64_t count) {
  RedisCommand command = Function("list", kIds);
  Add(command, {after_name.empty() ? "-" : "(" + after_name, "+", Text(count)});
  return command;
}

RedisCommand ExpiredCall(absl::Time now, int64_t count) {
  RedisCommand command = Function("expired", kIds);
  Add(command, {absl::StrCat(absl::ToUnixMillis(now)), Text(count)});
  return command;
}

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

absl::StatusOr<SharedSession> ReadShared(
    const RedisCaller& caller, const std::string& session_id,
    const std::shared_ptr<SessionClaim>& held, const RedisAnswer& answer) {
  if (!answer.ok()) return StoreFailedError();
  if (answer->empty()) return SessionDamagedError();
  const std::vector<std::string>& words = *answer;
  if (words[0] == "GONE") return SessionUnknownError();
  if (words[0] == "MODEL") return OtherModelError();
  if (words[0] == "BUSY") {
    return SessionBusyError(absl::Milliseconds(BusyOf(words)));
  }
  SharedSession found;
  if (words[0] == "SAME") {
    found.claim = held;
    if (words.size() == 4) {  // acquired
      held->version.epoch = words[1];
      held->version.nonce = words[2];
    }
    return found;
  }
  TXL_ASSIGN_OR_RETURN(found.stored, ReadSession(caller, session_id, words));
  found.claim = found.stored->claim;
  return found;
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
