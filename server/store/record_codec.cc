#include "server/store/record_codec.h"

#include <bit>

#include "absl/time/time.h"
#include "server/session/session_export.h"

namespace txl {
namespace {

absl::Status Damaged() {
  return absl::DataLossError("a stored session is damaged");
}

void WriteFloat(float value, ByteWriter& out) {
  out.U32(std::bit_cast<uint32_t>(value));
}
float ReadFloat(ByteReader& in) { return std::bit_cast<float>(in.U32()); }
void WriteDouble(double value, ByteWriter& out) {
  out.U64(std::bit_cast<uint64_t>(value));
}
double ReadDouble(ByteReader& in) { return std::bit_cast<double>(in.U64()); }

void WriteTime(absl::Time time, ByteWriter& out) {
  out.I64(absl::ToUnixNanos(time));
}
absl::Time ReadTime(ByteReader& in) { return absl::FromUnixNanos(in.I64()); }

// A list's length; what follows cannot be longer than the bytes that are left.
template <typename Write>
void WriteList(size_t size, ByteWriter& out, Write write) {
  out.U32(static_cast<uint32_t>(size));
  for (size_t i = 0; i < size; ++i) write(i);
}
template <typename Read>
void ReadList(ByteReader& in, Read read) {
  const uint32_t size = in.U32();
  for (uint32_t i = 0; i < size && in.ok(); ++i) read();
}

void WriteTops(const std::vector<TokenLogprob>& tops, ByteWriter& out) {
  WriteList(tops.size(), out, [&](size_t i) {
    out.U32(static_cast<uint32_t>(tops[i].token_id));
    WriteFloat(tops[i].logprob, out);
  });
}
std::vector<TokenLogprob> ReadTops(ByteReader& in) {
  std::vector<TokenLogprob> tops;
  ReadList(in, [&] {
    TokenLogprob top;
    top.token_id = static_cast<int32_t>(in.U32());
    top.logprob = ReadFloat(in);
    tops.push_back(top);
  });
  return tops;
}

// In an index: TokenEvent::held_back follows, which is 0 for most tokens.
constexpr uint32_t kHeldBack = uint32_t{1} << 31;

void WriteEvent(const TokenEvent& event, ByteWriter& out) {
  const auto index = static_cast<uint32_t>(event.index);
  out.U32(event.held_back == 0 ? index : index | kHeldBack);
  if (event.held_back != 0) out.U32(static_cast<uint32_t>(event.held_back));
  out.U32(static_cast<uint32_t>(event.token_id));
  out.Text(event.text);
  WriteFloat(event.logprob, out);
  WriteTops(event.top_logprobs, out);
}
TokenEvent ReadEvent(ByteReader& in) {
  TokenEvent event;
  const uint32_t index = in.U32();
  event.index = static_cast<int32_t>(index & ~kHeldBack);
  if ((index & kHeldBack) != 0) {
    event.held_back = static_cast<int32_t>(in.U32());
  }
  event.token_id = static_cast<int32_t>(in.U32());
  event.text = in.Text();
  event.logprob = ReadFloat(in);
  event.top_logprobs = ReadTops(in);
  return event;
}

void WriteScored(const ScoredToken& token, ByteWriter& out) {
  out.U32(static_cast<uint32_t>(token.token_id));
  out.U8(token.logprob.has_value() ? 1 : 0);
  WriteFloat(token.logprob.value_or(0), out);
  out.Text(token.text);
  WriteTops(token.top_logprobs, out);
}
ScoredToken ReadScored(ByteReader& in) {
  ScoredToken token;
  token.token_id = static_cast<int32_t>(in.U32());
  const bool has = in.U8() != 0;
  const float logprob = ReadFloat(in);
  if (has) token.logprob = logprob;
  token.text = in.Text();
  token.top_logprobs = ReadTops(in);
  return token;
}

// What stands where a record's end may be.
enum EndForm : uint8_t {
  kNoEnd = 0,
  kPlainEnd = 1,
  // Tokens that were cached or rebuilt follow the others.
  kEndWithReuse = 2,
};

EndForm FormOf(const std::optional<TurnFinished>& finished) {
  if (!finished.has_value()) return kNoEnd;
  const bool reuses =
      finished->cached_tokens != 0 || finished->rebuilt_tokens != 0;
  return reuses ? kEndWithReuse : kPlainEnd;
}

void WriteFinished(const TurnFinished& finished, EndForm form,
                   ByteWriter& out) {
  out.U8(static_cast<uint8_t>(finished.reason));
  out.I64(finished.position);
  out.Text(finished.text);
  out.Text(finished.matched_stop_text);
  out.I64(finished.prompt_tokens);
  out.I64(finished.generated_tokens);
  if (form == kEndWithReuse) {
    out.I64(finished.cached_tokens);
    out.I64(finished.rebuilt_tokens);
  }
  WriteDouble(finished.timing.queued_seconds, out);
  WriteDouble(finished.timing.prefill_seconds, out);
  WriteDouble(finished.timing.decode_seconds, out);
}
TurnFinished ReadFinished(uint8_t form, ByteReader& in) {
  TurnFinished finished;
  finished.reason = static_cast<FinishReason>(in.U8());
  finished.position = in.I64();
  finished.text = in.Text();
  finished.matched_stop_text = in.Text();
  finished.prompt_tokens = in.I64();
  finished.generated_tokens = in.I64();
  if (form == kEndWithReuse) {
    finished.cached_tokens = in.I64();
    finished.rebuilt_tokens = in.I64();
  }
  finished.timing.queued_seconds = ReadDouble(in);
  finished.timing.prefill_seconds = ReadDouble(in);
  finished.timing.decode_seconds = ReadDouble(in);
  return finished;
}

}  // namespace

std::string EncodeHead(const KeptHead& kept) {
  const StoredHead& head = kept.head;
  ByteWriter out;
  out.Text(kept.fingerprint);
  out.Text(head.session_id);
  out.I64(absl::ToInt64Nanoseconds(head.ttl));
  WriteTime(head.create_time, out);
  WriteTime(head.last_use, out);
  out.Text(head.detokenizer);
  out.Text(head.last_turn.request_id);
  out.Text(head.last_turn.outcome);
  out.I64(head.last_turn.start_position);
  out.I64(head.last_turn.prompt_tokens);
  out.I64(head.last_turn.generated_tokens);
  WriteList(head.earlier_requests.size(), out,
            [&](size_t i) { out.U64(head.earlier_requests[i]); });
  return out.Take();
}

absl::StatusOr<KeptHead> DecodeHead(absl::string_view bytes) {
  ByteReader in(bytes);
  KeptHead kept;
  StoredHead& head = kept.head;
  kept.fingerprint = in.Text();
  head.session_id = in.Text();
  head.ttl = absl::Nanoseconds(in.I64());
  head.create_time = ReadTime(in);
  head.last_use = ReadTime(in);
  head.detokenizer = in.Text();
  head.last_turn.request_id = in.Text();
  head.last_turn.outcome = in.Text();
  head.last_turn.start_position = in.I64();
  head.last_turn.prompt_tokens = in.I64();
  head.last_turn.generated_tokens = in.I64();
  ReadList(in, [&] { head.earlier_requests.push_back(in.U64()); });
  if (!in.done()) return Damaged();
  return kept;
}

std::string EncodeRecord(const TurnRecord& record) {
  ByteWriter out;
  out.Text(record.identity.request_id);
  out.Text(record.identity.digest);
  out.I64(record.start_position);
  out.I64(record.prompt_tokens);
  out.U64(record.seed);
  out.Text(record.detokenizer == nullptr ? "" : record.detokenizer->State());
  const EndForm form = FormOf(record.finished);
  out.U8(form);
  if (form != kNoEnd) WriteFinished(*record.finished, form, out);
  WriteList(record.tokens.size(), out,
            [&](size_t i) { WriteEvent(record.tokens[i], out); });
  WriteList(record.scored.size(), out,
            [&](size_t i) { WriteScored(record.scored[i], out); });
  return out.Take();
}

absl::StatusOr<KeptRecord> DecodeRecord(absl::string_view bytes) {
  ByteReader in(bytes);
  KeptRecord kept;
  TurnRecord& record = kept.record;
  record.identity.request_id = in.Text();
  record.identity.digest = in.Text();
  record.start_position = in.I64();
  record.prompt_tokens = in.I64();
  record.seed = in.U64();
  kept.detokenizer = in.Text();
  const uint8_t form = in.U8();
  if (form != kNoEnd) record.finished = ReadFinished(form, in);
  ReadList(in, [&] { record.tokens.push_back(ReadEvent(in)); });
  ReadList(in, [&] { record.scored.push_back(ReadScored(in)); });
  const bool known =
      form == kNoEnd || (form <= kEndWithReuse &&
                         record.finished->reason <= FinishReason::kServerDrain);
  if (!in.done() || !known) return Damaged();
  return kept;
}

void WriteIntent(const TurnIntent& intent, ByteWriter& out) {
  out.Text(intent.identity.request_id);
  out.Text(intent.identity.digest);
  out.U64(intent.seed);
  out.I64(intent.start_position);
  out.I64(intent.prompt_tokens);
}

TurnIntent ReadIntent(ByteReader& in) {
  TurnIntent intent;
  intent.identity.request_id = in.Text();
  intent.identity.digest = in.Text();
  intent.seed = in.U64();
  intent.start_position = in.I64();
  intent.prompt_tokens = in.I64();
  return intent;
}

void WriteTokens(const JournalTokens& tokens, ByteWriter& out) {
  out.I64(tokens.from);
  WriteList(tokens.ids.size(), out,
            [&](size_t i) { out.U32(static_cast<uint32_t>(tokens.ids[i])); });
  WriteList(tokens.events.size(), out,
            [&](size_t i) { WriteEvent(tokens.events[i], out); });
}

JournalTokens ReadTokens(ByteReader& in) {
  JournalTokens tokens;
  tokens.from = in.I64();
  ReadList(in, [&] { tokens.ids.push_back(static_cast<int32_t>(in.U32())); });
  ReadList(in, [&] { tokens.events.push_back(ReadEvent(in)); });
  return tokens;
}

std::string EncodeIds(absl::Span<const int32_t> ids, int64_t size) {
  return EncodeExportIds(ids, ExportIdBytes(size));
}

absl::StatusOr<std::vector<int32_t>> DecodeIds(absl::string_view bytes,
                                               int64_t size) {
  std::vector<int32_t> ids;
  if (DecodeExportIds(bytes, ExportIdBytes(size), ids) != bytes.size()) {
    return Damaged();
  }
  for (const int32_t id : ids) {
    if (id < 0 || id >= size) return Damaged();
  }
  return ids;
}

}  // namespace txl
