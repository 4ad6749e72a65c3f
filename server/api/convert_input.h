#pragma once

// Requests -> checked native values. Pure: every rule about a field that needs
// no session is here and in convert_sampling.h. Errors name the field as the
// request spells it ("sampling.top_p", "tokens.ids[3]").

#include <google/protobuf/message_lite.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "google/protobuf/duration.pb.h"
#include "model/text/vocabulary.h"
#include "server/api/convert_sampling.h"
#include "server/api/limits.h"
#include "server/api/model_facts.h"
#include "server/scheduler/turn.h"
#include "server/session/session_store.h"
#include "server/session/turn_record.h"
#include "txl/v1/generation_service.pb.h"
#include "txl/v1/model_service.pb.h"
#include "txl/v1/session_service.pb.h"
#include "txl/v1/token.pb.h"

namespace txl {

// What a client has of a turn that it sends again.
struct ReceivedTokens {
  uint64_t seed = 0;
  std::vector<int32_t> token_ids;
};

// A GenerateRequest that may be run.
struct GenerateParams {
  std::string session_id;  // empty: temporary
  // Absent: no prompt. Never empty.
  std::optional<std::vector<int32_t>> input;
  std::string field;     // of the input: "text" or "tokens"
  EncodeOptions encode;  // how a text became the input
  SamplingParams sampling;
  bool gave_seed = false;  // sampling.seed is the request's own
  StopRules stop;
  bool gave_max_tokens = false;  // stop.max_tokens is the request's own
  OutputParams output;
  TurnIdentity identity;
  std::optional<int64_t> expected_position;
  std::optional<ReceivedTokens> received;
  int32_t priority = 0;
};

// An AppendTokensRequest or ScoreRequest that may be run.
struct FeedParams {
  std::string session_id;
  std::string field;           // of the input: "text" or "tokens"
  std::vector<int32_t> input;  // never empty
  int32_t top_logprobs = 0;
  bool return_scored = false;
  TurnIdentity identity;
  std::optional<int64_t> expected_position;
};

// How a request's texts become ids, as its field `unknown` says.
absl::StatusOr<EncodeOptions> ReadUnknown(v1::UnknownText unknown,
                                          const ModelFacts& facts,
                                          const RequestLimits& limits);

// At least one id, of a field that is called `prefix` and "text" or "tokens".
absl::StatusOr<std::vector<int32_t>> ReadFilledText(
    const std::string& text, const EncodeOptions& options,
    absl::string_view prefix, const ModelFacts& facts,
    const RequestLimits& limits);
absl::StatusOr<std::vector<int32_t>> ReadFilledIds(const v1::TokenIds& tokens,
                                                   absl::string_view prefix,
                                                   const ModelFacts& facts,
                                                   const RequestLimits& limits);
// Their text; "" on a model without a tokenizer. Errors: as ReadFilledIds.
absl::StatusOr<std::string> ReadTextOf(const v1::TokenIds& tokens,
                                       const ModelFacts& facts,
                                       const RequestLimits& limits);
// Ids of the text or of the token ids, whichever is set in the message.
template <typename Message>
absl::StatusOr<std::vector<int32_t>> ReadTextOrIds(
    const Message& message, const EncodeOptions& options,
    absl::string_view prefix, const ModelFacts& facts,
    const RequestLimits& limits) {
  return message.has_text()
             ? ReadFilledText(message.text(), options, prefix, facts, limits)
             : ReadFilledIds(message.tokens(), prefix, facts, limits);
}

// All but the prompt: `input` stays absent.
absl::StatusOr<GenerateParams> ReadGenerateFields(
    const v1::GenerateRequest& request, const ModelFacts& facts,
    const RequestLimits& limits);
absl::StatusOr<GenerateParams> ReadGenerate(const v1::GenerateRequest& request,
                                            const ModelFacts& facts,
                                            const RequestLimits& limits);
absl::StatusOr<FeedParams> ReadAppend(const v1::AppendTokensRequest& request,
                                      const ModelFacts& facts,
                                      const RequestLimits& limits);
absl::StatusOr<FeedParams> ReadScore(const v1::ScoreRequest& request,
                                     const ModelFacts& facts,
                                     const RequestLimits& limits);
// Of a request without `midi`; an empty text gives no ids.
absl::StatusOr<std::vector<int32_t>> ReadTokenize(
    const v1::TokenizeRequest& request, const ModelFacts& facts,
    const RequestLimits& limits);
// Of a request with `midi`: ids that can be continued.
absl::StatusOr<MidiIds> ReadMidi(const v1::TokenizeRequest& request,
                                 const ModelFacts& facts,
                                 const RequestLimits& limits);
absl::StatusOr<std::vector<int32_t>> ReadDetokenize(
    const v1::DetokenizeRequest& request, const ModelFacts& facts,
    const RequestLimits& limits);

// The time-to-live of CreateSession; absent when the request says nothing. The
// store checks the range.
absl::StatusOr<std::optional<absl::Duration>> ReadTtl(
    const v1::CreateSessionRequest& request);

// Which tokens of a session GetSession is asked for.
struct TokenRange {
  int64_t from = 0;   // a position
  int64_t count = 0;  // at most; > 0
};
absl::StatusOr<TokenRange> ReadTokenRange(const v1::GetSessionRequest& request);
// GetSession's page_token for the page from a position on.
std::string TokenPageToken(int64_t from);

// What a turn feeds to a session at `position`: the prompt, nothing (to go on
// from the last token), or the model's start tokens.
absl::StatusOr<std::vector<int32_t>> TurnInput(
    std::optional<std::vector<int32_t>> prompt, int64_t position,
    const GenerationDefaults& generation);

// OVER_LIMIT, naming the input's field, when `tokens` are more than a session
// has room for.
absl::Status CheckRoom(absl::string_view field, int64_t tokens, int64_t room);

// The most tokens that a turn may generate after `prompt_tokens` in a session
// that has room for `room` tokens in all: what the request gave, else a default
// that shrinks. Errors: OVER_LIMIT, FIELD_INVALID.
absl::StatusOr<int32_t> FitMaxTokens(const GenerateParams& params,
                                     int64_t prompt_tokens, int64_t room);

// What the client has received against what its session holds of the turn
// (null: nothing). Errors: ABORTED RESUME_MISMATCH, where neither begins with
// the other, the seeds differ or the turn ended before; FIELD_INVALID
// `received.seed`, where the request itself asks for another one.
absl::Status CheckReceived(const GenerateParams& params,
                           const TurnRecord* kept);
// `turn` goes on behind its `resumed` tokens (null: from its start) and what
// was received, which CheckReceived has approved. Errors: FIELD_INVALID
// `received`, more than the turn's max_tokens.
absl::Status AddReceived(const ReceivedTokens& received, Turn& turn);

// ABORTED, POSITION_MISMATCH with the true position in the metadata.
absl::Status CheckPosition(std::optional<int64_t> expected, int64_t position);

// The values of the metadata `x-txl-session` against the request's field.
absl::Status CheckSessionMetadata(const std::vector<std::string>& values,
                                  absl::string_view session_id);

// Requests of SessionService that name two sessions or none -> checked native
// values. Pure, as convert_input.h. Ranges that only the store knows (a
// session's position, the time-to-live) it checks.

// FIELD_INVALID `ttl` if it is not a Duration; the store checks its range.
absl::StatusOr<absl::Duration> ReadDuration(
    const google::protobuf::Duration& ttl);

// `session`: the caller's, which the request names.
absl::StatusOr<ForkRequest> ReadFork(const SessionName& session,
                                     const v1::ForkSessionRequest& request);
absl::StatusOr<RewindRequest> ReadRewind(
    const SessionName& session, const v1::RewindSessionRequest& request);

// Tells whether two requests of one request_id are the same request.

// SHA-256 of the message's type and of everything that it says: 32 bytes.
std::string RequestDigest(const google::protobuf::MessageLite& request);
// RequestDigest of all fields except `received`, which differs between retries.
std::string RequestDigest(const v1::GenerateRequest& request);

}  // namespace txl
