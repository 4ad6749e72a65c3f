#pragma once

// Native results -> messages. Pure; nothing here can fail.

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "model/text/vocabulary.h"
#include "server/api/model_facts.h"
#include "server/api/service_context.h"
#include "server/metrics/server_status.h"
#include "server/scheduler/token_sink.h"
#include "server/session/session_store.h"
#include "txl/v1/generation_service.pb.h"
#include "txl/v1/model_service.pb.h"
#include "txl/v1/session_service.pb.h"

namespace txl {

// Fills in what only the turn itself knows.
void WriteStarted(const TurnStarted& started, v1::Started* message);
// `bytes_of`: where token_bytes come from; null: they stay empty.
void WriteToken(const TokenEvent& event, const Vocabulary* bytes_of,
                v1::Token* message);
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
void WriteModel(const ServiceContext& context, v1::GetModelResponse* message);

void WriteStore(const StoreUse& store, v1::StoreStatus* message);
void WriteStatus(const ServerStatus& status,
                 v1::GetServerStatusResponse* message);

v1::FinishReason ToProto(FinishReason reason);

void WriteDuration(absl::Duration from, google::protobuf::Duration* to);
void WriteTime(absl::Time from, google::protobuf::Timestamp* to);

}  // namespace txl
