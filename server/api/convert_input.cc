#include "server/api/convert_input.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <openssl/sha.h>

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "model/base/status_macros.h"
#include "model/text/utf8.h"
#include "server/base/error.h"
#include "server/scheduler/turn.h"
#include "server/session/session_errors.h"
#include "server/session/session_name.h"
#include "server/session/session_store.h"

namespace txl {
namespace {

constexpr char kNoTokenizer[] =
    "the model has no tokenizer: send token ids instead of text";

constexpr char kPageTokenPrefix[] = "p";

template <typename Request>
absl::StatusOr<TurnIdentity> ReadIdentity(const Request& request) {
  const std::string& id = request.request_id();
  if (id.empty()) return TurnIdentity();
  TXL_RETURN_IF_ERROR(ValidateId("request_id", id));
  // Nobody can come back to a temporary session: nothing is kept for it.
  if (request.session_id().empty()) return TurnIdentity();
  return TurnIdentity{id, RequestDigest(request)};
}

absl::Status CheckPromptBytes(absl::string_view bytes, absl::string_view field,
                              const RequestLimits& limits) {
  const auto count = static_cast<int64_t>(bytes.size());
  if (count <= limits.prompt_bytes) return absl::OkStatus();
  return OverLimitError(
      field, absl::StrCat(count, " bytes, at most ", limits.prompt_bytes));
}

absl::Status CheckTokenCount(int64_t count, absl::string_view field,
                             const RequestLimits& limits) {
  if (count <= limits.prompt_tokens) return absl::OkStatus();
  return OverLimitError(
      field, absl::StrCat(count, " tokens, at most ", limits.prompt_tokens));
}

// May be empty.
absl::StatusOr<std::vector<int32_t>> EncodeText(const std::string& text,
                                                const EncodeOptions& options,
                                                absl::string_view field,
                                                const ModelFacts& facts,
                                                const RequestLimits& limits) {
  if (facts.vocabulary == nullptr) return FieldError(field, kNoTokenizer);
  TXL_RETURN_IF_ERROR(CheckPromptBytes(text, field, limits));
  if (!IsValidUtf8(text)) return FieldError(field, "is not valid UTF-8");
  absl::StatusOr<std::vector<int32_t>> ids =
      facts.vocabulary->Encode(text, options);
  if (absl::IsOutOfRange(ids.status())) {
    return OverLimitError(field, ids.status().message());
  }
  if (!ids.ok()) return FieldError(field, ids.status().message());
  return ids;
}

template <typename Request>
absl::StatusOr<std::optional<int64_t>> ReadExpectedPosition(
    const Request& request) {
  if (!request.has_expected_position()) return std::optional<int64_t>();
  if (request.expected_position() < 0) {
    return FieldError("expected_position", "must not be negative");
  }
  return std::optional<int64_t>(request.expected_position());
}

absl::Status TooManyReceived(size_t count, int32_t max_tokens) {
  return FieldError("received",
                    absl::StrCat(count, " tokens of a turn of ", max_tokens));
}

absl::StatusOr<std::optional<ReceivedTokens>> ReadReceived(
    const v1::GenerateRequest& request, const ModelFacts& facts,
    int32_t max_tokens) {
  if (!request.has_received()) return std::optional<ReceivedTokens>();
  if (!request.session_id().empty() && request.request_id().empty()) {
    return FieldError("request_id", "must be sent with what was received");
  }
  const auto& ids = request.received().token_ids();
  if (ids.size() > max_tokens) return TooManyReceived(ids.size(), max_tokens);
  ReceivedTokens received;
  received.seed = request.received().seed();
  TXL_ASSIGN_OR_RETURN(received.token_ids, ReadIds(ids, "received.token_ids",
                                                   facts.config.vocab_size));
  return received;
}

template <typename Request>
absl::StatusOr<std::vector<int32_t>> ReadRequiredInput(
    const Request& request, const ModelFacts& facts,
    const RequestLimits& limits) {
  if (!request.has_text() && !request.has_tokens()) {
    return FieldError("input", "text or tokens must be set");
  }
  TXL_ASSIGN_OR_RETURN(const EncodeOptions options,
                       ReadUnknown(request.unknown(), facts, limits));
  return ReadTextOrIds(request, options, "", facts, limits);
}

}  // namespace

absl::StatusOr<EncodeOptions> ReadUnknown(v1::UnknownText unknown,
                                          const ModelFacts& facts,
                                          const RequestLimits& limits) {
  constexpr char kField[] = "unknown";
  if (!v1::UnknownText_IsValid(unknown)) {
    return FieldError(kField, absl::StrCat(static_cast<int>(unknown),
                                           " is not a value of UnknownText"));
  }
  const bool has_unknown =
      facts.vocabulary != nullptr && facts.vocabulary->has_unknown();
  if (unknown == v1::UNKNOWN_TEXT_SYMBOL && !has_unknown) {
    return FieldError(kField, "the model has no unknown symbol");
  }
  return EncodeOptions{.max_tokens = limits.prompt_tokens,
                       .skip_unknown = unknown == v1::UNKNOWN_TEXT_SKIP};
}

absl::StatusOr<std::vector<int32_t>> ReadFilledText(
    const std::string& text, const EncodeOptions& options,
    absl::string_view prefix, const ModelFacts& facts,
    const RequestLimits& limits) {
  const std::string field = absl::StrCat(prefix, "text");
  TXL_ASSIGN_OR_RETURN(std::vector<int32_t> ids,
                       EncodeText(text, options, field, facts, limits));
  if (ids.empty()) return FieldError(field, "holds no token");
  return ids;
}

absl::StatusOr<std::vector<int32_t>> ReadFilledIds(
    const v1::TokenIds& tokens, absl::string_view prefix,
    const ModelFacts& facts, const RequestLimits& limits) {
  const std::string field = absl::StrCat(prefix, "tokens.ids");
  TXL_RETURN_IF_ERROR(CheckTokenCount(tokens.ids_size(), field, limits));
  TXL_ASSIGN_OR_RETURN(std::vector<int32_t> ids,
                       ReadIds(tokens.ids(), field, facts.config.vocab_size));
  if (ids.empty()) {
    return FieldError(absl::StrCat(prefix, "tokens"), "holds no token");
  }
  return ids;
}

absl::StatusOr<std::string> ReadTextOf(const v1::TokenIds& tokens,
                                       const ModelFacts& facts,
                                       const RequestLimits& limits) {
  TXL_ASSIGN_OR_RETURN(const std::vector<int32_t> ids,
                       ReadFilledIds(tokens, "", facts, limits));
  if (facts.vocabulary == nullptr) return std::string();
  return facts.vocabulary->Decode(ids);
}

absl::StatusOr<GenerateParams> ReadGenerateFields(
    const v1::GenerateRequest& request, const ModelFacts& facts,
    const RequestLimits& limits) {
  GenerateParams params;
  params.session_id = request.session_id();
  if (!params.session_id.empty()) {
    TXL_RETURN_IF_ERROR(ValidateSessionId(params.session_id));
  }
  TXL_ASSIGN_OR_RETURN(params.identity, ReadIdentity(request));
  TXL_ASSIGN_OR_RETURN(params.expected_position, ReadExpectedPosition(request));
  params.priority = request.priority();
  if (params.priority < 0 || params.priority > kMostPriority) {
    return FieldError(
        "priority",
        absl::StrCat(params.priority, " is not in 0..", kMostPriority));
  }
  TXL_ASSIGN_OR_RETURN(params.sampling,
                       ReadSampling(request.sampling(), facts, limits));
  TXL_ASSIGN_OR_RETURN(params.stop, ReadStop(request.stop(), facts, limits));
  params.gave_seed = request.sampling().has_seed();
  params.gave_max_tokens = request.stop().has_max_tokens();
  TXL_RETURN_IF_ERROR(
      CheckMinTokens(params.sampling, params.stop, facts.config.vocab_size));
  TXL_ASSIGN_OR_RETURN(params.output,
                       ReadOutput(request.output(), facts, limits));
  TXL_ASSIGN_OR_RETURN(params.received,
                       ReadReceived(request, facts, params.stop.max_tokens));
  TXL_ASSIGN_OR_RETURN(params.encode,
                       ReadUnknown(request.unknown(), facts, limits));
  return params;
}

absl::StatusOr<GenerateParams> ReadGenerate(const v1::GenerateRequest& request,
                                            const ModelFacts& facts,
                                            const RequestLimits& limits) {
  TXL_ASSIGN_OR_RETURN(GenerateParams params,
                       ReadGenerateFields(request, facts, limits));
  // The prompt comes last, because it is the dearest to read.
  if (request.prompt_case() != v1::GenerateRequest::PROMPT_NOT_SET) {
    TXL_ASSIGN_OR_RETURN(
        params.input, ReadTextOrIds(request, params.encode, "", facts, limits));
    params.field = request.has_text() ? "text" : "tokens";
  }
  return params;
}

absl::StatusOr<FeedParams> ReadAppend(const v1::AppendTokensRequest& request,
                                      const ModelFacts& facts,
                                      const RequestLimits& limits) {
  FeedParams params;
  TXL_RETURN_IF_ERROR(ValidateSessionId(request.session_id()));
  params.session_id = request.session_id();
  TXL_ASSIGN_OR_RETURN(params.identity, ReadIdentity(request));
  TXL_ASSIGN_OR_RETURN(params.expected_position, ReadExpectedPosition(request));
  params.return_scored = request.return_logprobs();
  TXL_ASSIGN_OR_RETURN(
      params.logprobs,
      ReadLogprobs(request.logprobs(), request.logprob_token_ids(), "", facts,
                   limits));
  params.field = request.has_text() ? "text" : "tokens";
  TXL_ASSIGN_OR_RETURN(params.input, ReadRequiredInput(request, facts, limits));
  return params;
}

absl::StatusOr<FeedParams> ReadScore(const v1::ScoreRequest& request,
                                     const ModelFacts& facts,
                                     const RequestLimits& limits) {
  FeedParams params;
  params.session_id = request.session_id();
  if (!params.session_id.empty()) {
    TXL_RETURN_IF_ERROR(ValidateSessionId(params.session_id));
  }
  TXL_ASSIGN_OR_RETURN(
      params.logprobs,
      ReadLogprobs(request.logprobs(), request.logprob_token_ids(), "", facts,
                   limits));
  params.return_scored = true;
  TXL_ASSIGN_OR_RETURN(params.input, ReadRequiredInput(request, facts, limits));
  return params;
}

absl::StatusOr<std::vector<int32_t>> ReadTokenize(
    const v1::TokenizeRequest& request, const ModelFacts& facts,
    const RequestLimits& limits) {
  TXL_ASSIGN_OR_RETURN(const EncodeOptions options,
                       ReadUnknown(request.unknown(), facts, limits));
  return EncodeText(request.text(), options, "text", facts, limits);
}

absl::StatusOr<MidiIds> ReadMidi(const v1::TokenizeRequest& request,
                                 const ModelFacts& facts,
                                 const RequestLimits& limits) {
  constexpr char kField[] = "midi";
  TXL_RETURN_IF_ERROR(ReadUnknown(request.unknown(), facts, limits).status());
  if (!request.text().empty()) {
    return FieldError(kField, "cannot be sent together with a text");
  }
  if (!facts.midi.ok()) {
    return FieldError(kField, facts.midi.status().message());
  }
  TXL_RETURN_IF_ERROR(CheckPromptBytes(request.midi(), kField, limits));
  absl::StatusOr<MidiIds> music = facts.midi->Encode(request.midi());
  if (!music.ok()) return FieldError(kField, music.status().message());
  return music;
}

absl::StatusOr<std::vector<int32_t>> ReadDetokenize(
    const v1::DetokenizeRequest& request, const ModelFacts& facts,
    const RequestLimits& limits) {
  constexpr char kField[] = "token_ids";
  if (facts.vocabulary == nullptr) {
    return FieldError(kField, "the model has no tokenizer, so no text");
  }
  TXL_RETURN_IF_ERROR(
      CheckTokenCount(request.token_ids_size(), kField, limits));
  return ReadIds(request.token_ids(), kField, facts.config.vocab_size);
}

absl::StatusOr<std::optional<absl::Duration>> ReadTtl(
    const v1::CreateSessionRequest& request) {
  if (!request.session_id().empty()) {
    TXL_RETURN_IF_ERROR(ValidateSessionId(request.session_id()));
  }
  if (!request.has_ttl()) return std::optional<absl::Duration>();
  TXL_ASSIGN_OR_RETURN(const absl::Duration ttl, ReadDuration(request.ttl()));
  return std::optional<absl::Duration>(ttl);
}

std::string TokenPageToken(int64_t from) {
  return absl::StrCat(kPageTokenPrefix, from);
}

absl::StatusOr<TokenRange> ReadTokenRange(
    const v1::GetSessionRequest& request) {
  TokenRange range;
  if (request.page_size() < 0) {
    return FieldError("page_size", "must not be negative");
  }
  range.count = request.page_size() == 0
                    ? kTokenPage
                    : std::min<int64_t>(request.page_size(), kTokenPage);
  range.from = request.start_position();
  if (range.from < 0) {
    return FieldError("start_position", "must not be negative");
  }
  if (request.page_token().empty()) return range;
  constexpr char kField[] = "page_token";
  if (request.start_position() != 0) {
    return FieldError(kField, "must not be sent with a start_position");
  }
  absl::string_view digits = request.page_token();
  if (!absl::ConsumePrefix(&digits, kPageTokenPrefix) || digits.empty() ||
      digits.find_first_not_of("0123456789") != absl::string_view::npos ||
      !absl::SimpleAtoi(digits, &range.from)) {
    return FieldError(kField, "is not a next_page_token of an answer");
  }
  return range;
}

absl::StatusOr<std::vector<int32_t>> TurnInput(
    std::optional<std::vector<int32_t>> prompt, int64_t position,
    const GenerationDefaults& generation) {
  if (prompt.has_value()) return *std::move(prompt);
  if (position > 0) return std::vector<int32_t>();
  if (!generation.start_tokens.empty()) return generation.start_tokens;
  return FieldError("prompt",
                    "a session without tokens needs a prompt: the model has "
                    "no start tokens");
}

absl::Status CheckRoom(absl::string_view field, int64_t tokens, int64_t room) {
  if (tokens <= room) return absl::OkStatus();
  return OverLimitError(
      field, absl::StrCat(tokens, " tokens, the session has room for ",
                          std::max<int64_t>(room, 0)));
}

absl::StatusOr<int32_t> FitMaxTokens(const GenerateParams& params,
                                     int64_t prompt_tokens, int64_t room) {
  // One token at least is generated.
  TXL_RETURN_IF_ERROR(
      CheckRoom(params.field.empty() ? "session_id" : params.field,
                prompt_tokens + 1, room));
  const int64_t left = room - prompt_tokens;
  if (params.stop.max_tokens <= left) return params.stop.max_tokens;
  if (params.gave_max_tokens) {
    return OverLimitError(
        "stop.max_tokens",
        absl::StrCat(params.stop.max_tokens, ", the session has room for ",
                     left, " after the prompt"));
  }
  if (params.sampling.min_tokens > left) {
    return FieldError(
        "sampling.min_tokens",
        absl::StrCat(params.sampling.min_tokens, ", the session has room for ",
                     left, " after the prompt"));
  }
  return static_cast<int32_t>(left);
}

absl::Status CheckReceived(const GenerateParams& params,
                           const TurnRecord* kept) {
  if (!params.received.has_value()) return absl::OkStatus();
  const ReceivedTokens& received = *params.received;
  if (kept == nullptr) {
    if (!params.gave_seed || received.seed == params.sampling.seed) {
      return absl::OkStatus();
    }
    return FieldError("received.seed", "is unlike sampling.seed");
  }
  const size_t common =
      std::min(received.token_ids.size(), kept->tokens.size());
  const bool equal = std::equal(
      received.token_ids.begin(), received.token_ids.begin() + common,
      kept->tokens.begin(),
      [](int32_t id, const TokenEvent& token) { return id == token.token_id; });
  const bool behind_end =
      kept->finished.has_value() && received.token_ids.size() > common;
  if (!equal || behind_end || received.seed != kept->seed) {
    return ResumeMismatch();
  }
  return absl::OkStatus();
}

absl::Status AddReceived(const ReceivedTokens& received, Turn& turn) {
  const std::vector<int32_t>& ids = received.token_ids;
  if (static_cast<int64_t>(ids.size()) > turn.stop.max_tokens) {
    return TooManyReceived(ids.size(), turn.stop.max_tokens);
  }
  const size_t kept = turn.resumed == nullptr ? 0 : turn.resumed->tokens.size();
  turn.received = static_cast<int64_t>(ids.size());
  turn.adopted.assign(ids.begin() + std::min(kept, ids.size()), ids.end());
  return absl::OkStatus();
}

absl::Status CheckPosition(std::optional<int64_t> expected, int64_t position) {
  if (!expected.has_value() || *expected == position) return absl::OkStatus();
  return PositionMismatchError(position, *expected);
}

absl::Status CheckSessionMetadata(const std::vector<std::string>& values,
                                  absl::string_view session_id) {
  for (const std::string& value : values) {
    if (value != session_id) {
      return FieldError("x-txl-session",
                        "the metadata is unlike the request's session_id");
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<absl::Duration> ReadDuration(
    const google::protobuf::Duration& ttl) {
  // The range of google.protobuf.Duration; seconds and nanos of one sign.
  constexpr int64_t kMaxSeconds = 315'576'000'000;
  const bool mixed = (ttl.seconds() > 0 && ttl.nanos() < 0) ||
                     (ttl.seconds() < 0 && ttl.nanos() > 0);
  if (ttl.seconds() > kMaxSeconds || ttl.seconds() < -kMaxSeconds ||
      ttl.nanos() > 999'999'999 || ttl.nanos() < -999'999'999 || mixed) {
    return FieldError("ttl", "is not a valid duration");
  }
  return absl::Seconds(ttl.seconds()) + absl::Nanoseconds(ttl.nanos());
}

absl::StatusOr<ForkRequest> ReadFork(const SessionName& session,
                                     const v1::ForkSessionRequest& request) {
  ForkRequest fork;
  if (!request.new_session_id().empty()) {
    TXL_RETURN_IF_ERROR(ValidateId("new_session_id", request.new_session_id()));
  }
  if (!request.request_id().empty()) {
    TXL_RETURN_IF_ERROR(ValidateId("request_id", request.request_id()));
  }
  if (request.has_ttl()) {
    TXL_ASSIGN_OR_RETURN(fork.ttl, ReadDuration(request.ttl()));
  }
  if (request.has_position()) {
    if (request.position() < 0) {
      return FieldError("position", "must not be negative");
    }
    fork.position = request.position();
  }
  fork.session = session;
  fork.new_session_id = request.new_session_id();
  fork.request_id = request.request_id();
  return fork;
}

absl::StatusOr<RewindRequest> ReadRewind(
    const SessionName& session, const v1::RewindSessionRequest& request) {
  RewindRequest rewind;
  if (!request.request_id().empty()) {
    TXL_RETURN_IF_ERROR(ValidateId("request_id", request.request_id()));
  }
  // Absent is not 0, which would empty the session.
  if (!request.has_position()) return FieldError("position", "must be set");
  if (request.position() < 0) {
    return FieldError("position", "must not be negative");
  }
  if (request.has_expected_position()) {
    if (request.expected_position() < 0) {
      return FieldError("expected_position", "must not be negative");
    }
    rewind.expected_position = request.expected_position();
  }
  rewind.session = session;
  rewind.position = request.position();
  rewind.request_id = request.request_id();
  return rewind;
}

std::string RequestDigest(const google::protobuf::MessageLite& request) {
  std::string bytes = request.GetTypeName() + '\0';
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream out(&stream);
    // Else the order of a map's entries would be any.
    out.SetSerializationDeterministic(true);
    request.SerializeToCodedStream(&out);
  }
  std::string digest(SHA256_DIGEST_LENGTH, '\0');
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(),
         reinterpret_cast<unsigned char*>(digest.data()));
  return digest;
}

std::string RequestDigest(const v1::GenerateRequest& request) {
  const google::protobuf::MessageLite& message = request;
  if (!request.has_received() && request.priority() == 0) {
    return RequestDigest(message);
  }
  v1::GenerateRequest rest = request;
  rest.clear_received();
  rest.clear_priority();
  return RequestDigest(static_cast<const google::protobuf::MessageLite&>(rest));
}

}  // namespace txl
