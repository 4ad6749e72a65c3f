#pragma once

// Native results -> messages. Pure; nothing here can fail.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "google/protobuf/duration.pb.h"
#include "model/text/vocabulary.h"
#include "server/api/limits.h"
#include "server/api/model_facts.h"
#include "server/api/service_context.h"
#include "server/metrics/server_status.h"
#include "server/scheduler/turn.h"
#include "server/session/session_store.h"
#include "server/session/turn_record.h"
#include "txl/v1/generation_service.pb.h"
#include "txl/v1/model_service.pb.h"
#include "txl/v1/session_service.pb.h"

namespace txl {

// Fills in what only the turn itself knows.
void WriteStarted(const TurnStarted& started, v1::Started* message);
// `bytes_of`: where token_bytes come from; null: they stay empty.
void WriteToken(const TokenEvent& event, const Vocabulary* bytes_of,
                v1::Token* message);
void WriteUsage(const TurnFinished& finished, v1::Usage* message);
void WriteFinished(const TurnFinished& finished, v1::Finished* message);
// Adds one ScoredToken each and returns the sum of the present logprobs.
double WriteScored(
    const std::vector<ScoredToken>& tokens,
    google::protobuf::RepeatedPtrField<v1::ScoredToken>* messages);

void WriteSession(const SessionInfo& info, v1::Session* message);

// Tokens that stand before a page and are read for its text: a character or a
// word that begins there ends in the page.
inline constexpr int64_t kTextContext = 64;
// The text that became certain with the last `ids.size() - context` of the ids;
// `last`: no page follows, so the held rest too. The texts of a session's pages
// put together are its text.
std::string PageText(const Vocabulary& vocabulary,
                     absl::Span<const int32_t> ids, size_t context, bool last);

// Every fact and limit; values that are the same for the server's whole life.
void WriteModel(const ServedModel& model, v1::GetModelResponse* message);

void WriteStore(const StoreUse& store, v1::StoreStatus* message);
void WriteStatus(const ServerStatus& status,
                 v1::GetServerStatusResponse* message);

v1::FinishReason ToProto(FinishReason reason);

void WriteDuration(absl::Duration from, google::protobuf::Duration* to);
void WriteTime(absl::Time from, google::protobuf::Timestamp* to);

// ScoreAlternativesRequest -> checked native values, and the answer. As
// convert_input.h.

// A ScoreAlternativesRequest that may be run.
struct AlternativesParams {
  std::string session_id;                          // empty: temporary
  std::vector<int32_t> context;                    // may be empty
  std::vector<std::vector<int32_t>> alternatives;  // >= 1, none empty
  bool return_tokens = false;

  int64_t tokens() const;  // of all of them
};

absl::StatusOr<AlternativesParams> ReadAlternatives(
    const v1::ScoreAlternativesRequest& request, const ModelFacts& facts,
    const RequestLimits& limits);

// The answer, from the scores of all alternatives one after the other.
// `detokenizer`: the state of text behind the session, null for a model without
// a tokenizer; used with return_tokens only.
v1::ScoreAlternativesResponse WriteAlternatives(
    const AlternativesParams& params, const Detokenizer* detokenizer,
    const TurnFinished& finished, absl::Span<const ScoredToken> scored);

}  // namespace txl
