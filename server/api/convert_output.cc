#include "server/api/convert_output.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "model/base/status_macros.h"
#include "server/api/convert_input.h"
#include "server/api/convert_sampling.h"
#include "server/base/error.h"
#include "server/session/session_name.h"

namespace txl {
namespace {

using TopLogprobMessages = google::protobuf::RepeatedPtrField<v1::TokenLogprob>;

void WriteTop(const std::vector<TokenLogprob>& top,
              TopLogprobMessages* messages) {
  messages->Reserve(static_cast<int>(top.size()));
  for (const TokenLogprob& one : top) {
    v1::TokenLogprob* message = messages->Add();
    message->set_token_id(static_cast<uint32_t>(one.token_id));
    message->set_logprob(one.logprob);
  }
}

void WriteLimits(const ServedModel& model, v1::Limits* message) {
  const RequestLimits& limits = model.limits;
  message->set_max_prompt_tokens(limits.prompt_tokens);
  message->set_max_prompt_bytes(limits.prompt_bytes);
  message->set_max_tokens(limits.max_tokens);
  message->set_max_stop_texts(limits.stop_texts);
  message->set_max_stop_text_bytes(limits.stop_text_bytes);
  message->set_max_stop_tokens(limits.stop_tokens);
  message->set_max_logprobs(limits.logprobs);
  message->set_max_logit_bias(limits.logit_bias);
  message->set_max_logit_bias_value(kMaxLogitBias);
  message->set_max_allowed_tokens(limits.allowed_tokens);
  message->set_max_message_bytes(limits.message_bytes);
  message->set_max_import_bytes(limits.import_bytes);
  message->set_max_tokens_per_message(limits.tokens_per_message);
  message->set_max_alternatives(limits.alternatives);
  WriteDuration(model.sessions.min_ttl, message->mutable_min_ttl());
  WriteDuration(model.sessions.max_ttl, message->mutable_max_ttl());
  message->set_max_queued_calls(model.scheduler.max_queued_calls);
  message->set_max_queued_tokens(model.scheduler.max_queued_tokens);
  message->set_max_sessions(model.sessions.max_sessions);
  message->set_max_session_tokens(model.sessions.max_session_tokens);
}

v1::ServerState ToProto(ServerPhase phase) {
  switch (phase) {
    case ServerPhase::kStarting:
      return v1::SERVER_STATE_STARTING;
    case ServerPhase::kReady:
      return v1::SERVER_STATE_READY;
    case ServerPhase::kDraining:
      return v1::SERVER_STATE_DRAINING;
  }
  return v1::SERVER_STATE_UNSPECIFIED;
}

void WriteDivision(const MemoryDivision& from, v1::MemoryDivision* to) {
  to->set_limit(from.limit);
  to->set_weights(from.weights);
  to->set_slots(from.slots);
  to->set_images(from.images);
  to->set_prefixes(from.prefixes);
  to->set_ids(from.ids);
  to->set_records(from.records);
  to->set_requests(from.requests);
  to->set_streams(from.streams);
  to->set_reserve(from.reserve);
}

void WriteUse(const ServerStatus& status, v1::GetServerStatusResponse* to) {
  const MemoryUse& memory = status.memory;
  if (memory.division.limit > 0) {
    WriteDivision(memory.division, to->mutable_memory());
  }
  to->set_resident_bytes(memory.resident_bytes);
  to->set_shedding(memory.shedding);
  to->set_id_bytes(status.sessions.id_bytes);
  to->set_request_bytes(memory.request_bytes);
  to->set_requests_refused(memory.requests_refused);
  to->set_stream_bytes(memory.stream_bytes);
  to->set_streams_refused(memory.streams_refused);
  to->set_calls_open(status.calls.open);
  to->set_calls_reading(status.calls.reading);
  to->set_calls_answering(status.calls.answering);
  to->set_calls_refused(status.calls.refused);
  to->set_work_queued(status.work.queued);
  to->set_work_running(status.work.running);
  to->set_work_done(status.work.done);
  to->set_work_refused(status.work.refused);
  to->set_log_lines_dropped(status.log_lines_dropped);
  to->set_audit_lines_lost(status.audit_lines_lost);
  to->set_span_lines_lost(status.span_lines_lost);
  to->set_connections_open(status.connections.open);
  to->set_connections_limit(status.connections.limit);
  to->set_connections_refused(status.connections.refused);
}

void WritePrefixes(const Snapshot& s, v1::GetServerStatusResponse* to) {
  to->set_prefix_lookups(s.prefix_lookups);
  to->set_prefix_hits(s.prefix_hits);
  to->set_tokens_cached(s.tokens_cached);
  to->set_prefix_images(s.prefix_images);
  to->set_prefix_bytes(s.prefix_bytes);
  to->set_prefix_evictions(s.prefix_evictions);
}

void WriteSelfTest(const SelfTestReport& report, v1::SelfTest* message) {
  message->set_result(NameOf(report.result));
  message->set_step(report.step);
  message->set_objection(report.objection);
  message->set_seconds(report.seconds);
}

}  // namespace

void WriteDuration(absl::Duration from, google::protobuf::Duration* to) {
  absl::Duration rest;
  to->set_seconds(absl::IDivDuration(from, absl::Seconds(1), &rest));
  to->set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(rest)));
}

void WriteTime(absl::Time from, google::protobuf::Timestamp* to) {
  const int64_t seconds = absl::ToUnixSeconds(from);  // rounds down
  to->set_seconds(seconds);
  to->set_nanos(static_cast<int32_t>(
      absl::ToInt64Nanoseconds(from - absl::FromUnixSeconds(seconds))));
}

v1::FinishReason ToProto(FinishReason reason) {
  switch (reason) {
    case FinishReason::kMaxTokens:
      return v1::FINISH_REASON_MAX_TOKENS;
    case FinishReason::kStopText:
      return v1::FINISH_REASON_STOP_TEXT;
    case FinishReason::kStopToken:
      return v1::FINISH_REASON_STOP_TOKEN;
    case FinishReason::kEndToken:
      return v1::FINISH_REASON_END_TOKEN;
    case FinishReason::kServerDrain:
      return v1::FINISH_REASON_SERVER_DRAIN;
  }
  return v1::FINISH_REASON_UNSPECIFIED;
}

void WriteStarted(const TurnStarted& started, v1::Started* message) {
  message->set_position(started.position);
  message->set_prompt_token_count(started.prompt_tokens);
  message->set_seed(started.seed);
  message->mutable_sampling()->set_seed(started.seed);
  message->set_replayed_token_count(started.replayed_tokens);
}

void WriteToken(const TokenEvent& event, const Vocabulary* bytes_of,
                v1::Token* message) {
  message->set_index(event.index);
  message->set_token_id(static_cast<uint32_t>(event.token_id));
  message->set_text(event.text);
  message->set_held_back(static_cast<uint32_t>(event.held_back));
  message->set_logprob(event.logprob);
  WriteTop(event.top_logprobs, message->mutable_top_logprobs());
  if (bytes_of != nullptr) {
    message->set_token_bytes(bytes_of->TokenBytes(event.token_id));
  }
}

void WriteUsage(const TurnFinished& finished, v1::Usage* message) {
  message->set_prompt_tokens(finished.prompt_tokens);
  message->set_generated_tokens(finished.generated_tokens);
  message->set_cached_tokens(finished.cached_tokens);
  message->set_rebuilt_tokens(finished.rebuilt_tokens);
}

void WriteFinished(const TurnFinished& finished, v1::Finished* message) {
  message->set_reason(ToProto(finished.reason));
  message->set_position(finished.position);
  message->set_text(finished.text);
  message->set_matched_stop_text(finished.matched_stop_text);
  WriteUsage(finished, message->mutable_usage());
  v1::Timing* timing = message->mutable_timing();
  timing->set_queued_seconds(finished.timing.queued_seconds);
  timing->set_prefill_seconds(finished.timing.prefill_seconds);
  timing->set_decode_seconds(finished.timing.decode_seconds);
}

double WriteScored(
    const std::vector<ScoredToken>& tokens,
    google::protobuf::RepeatedPtrField<v1::ScoredToken>* messages) {
  double sum = 0;
  messages->Reserve(static_cast<int>(tokens.size()));
  for (const ScoredToken& token : tokens) {
    v1::ScoredToken* message = messages->Add();
    message->set_token_id(static_cast<uint32_t>(token.token_id));
    if (token.logprob.has_value()) {
      message->set_logprob(*token.logprob);
      sum += *token.logprob;
    }
    message->set_text(token.text);
    WriteTop(token.top_logprobs, message->mutable_top_logprobs());
  }
  return sum;
}

void WriteSession(const SessionInfo& info, v1::Session* message) {
  message->set_session_id(info.session_id);
  message->set_state(info.state == SessionState::kBusy
                         ? v1::SESSION_STATE_BUSY
                         : v1::SESSION_STATE_IDLE);
  message->set_position(info.position);
  WriteTime(info.create_time, message->mutable_create_time());
  WriteTime(info.last_use_time, message->mutable_last_use_time());
  WriteTime(info.expire_time, message->mutable_expire_time());
  WriteDuration(info.ttl, message->mutable_ttl());
  message->set_memory_bytes(info.memory_bytes);
  message->set_durable_position(info.durable_position);
  if (info.last_turn.outcome.empty()) return;
  v1::LastTurn* last = message->mutable_last_turn();
  last->set_request_id(info.last_turn.request_id);
  last->set_outcome(info.last_turn.outcome);
  last->set_start_position(info.last_turn.start_position);
  last->set_prompt_tokens(info.last_turn.prompt_tokens);
  last->set_generated_tokens(info.last_turn.generated_tokens);
}

std::string PageText(const Vocabulary& vocabulary,
                     absl::Span<const int32_t> ids, size_t context, bool last) {
  if (ids.size() <= context) return "";
  const auto detokenizer = vocabulary.NewDetokenizer();
  std::string text;
  for (size_t i = 0; i < ids.size(); ++i) {
    const std::string piece = detokenizer->Add(ids[i]);
    if (i >= context) text += piece;
  }
  if (last) text += detokenizer->Flush();
  return text;
}

void WriteModel(const ServedModel& model, v1::GetModelResponse* message) {
  const ModelFacts& facts = *model.facts;
  message->set_name(facts.name);
  message->set_fingerprint(facts.fingerprint);
  message->set_vocabulary_size(facts.config.vocab_size);
  if (facts.vocabulary != nullptr) {
    message->set_vocabulary_kind(std::string(facts.vocabulary->kind()));
  }
  message->set_layers(facts.config.n_layer);
  message->set_heads(facts.config.n_head);
  message->set_head_width(facts.config.d_head);
  message->set_model_width(facts.config.d_model);
  message->set_embedding_width(facts.config.d_embed);
  message->set_inner_width(facts.config.d_inner);
  message->set_memory_length(facts.memory_length);
  message->set_window(facts.window);
  message->set_bytes_per_session(facts.bytes_per_session);
  message->set_device(facts.device);
  message->set_kernel(facts.kernel);
  message->set_form(facts.form);
  message->set_weight_dtype(facts.weight_dtype);
  message->set_memory_dtype(facts.memory_dtype);
  WriteLimits(model, message->mutable_limits());
  message->set_server_version(facts.server_version);
  message->set_api_version("txl.v1");
  WriteSampling(DefaultSampling(facts), message->mutable_default_sampling());
  message->mutable_default_sampling()->clear_seed();
  WriteStop(DefaultStop(facts, model.limits), message->mutable_default_stop());
  for (const int32_t id : facts.generation.start_tokens) {
    message->add_start_tokens(static_cast<uint32_t>(id));
  }
  for (const int32_t id : facts.generation.end_tokens) {
    message->add_end_tokens(static_cast<uint32_t>(id));
  }
  if (facts.kinds == nullptr) return;
  for (const TokenKind& kind : facts.kinds->kinds()) {
    message->add_token_kinds(kind.name);
  }
}

void WriteStore(const StoreUse& store, v1::StoreStatus* message) {
  message->set_durability(store.durability);
  message->set_state(store.state);
  message->set_sessions(store.sessions);
  message->set_database_bytes(store.database_bytes);
  message->set_image_bytes(store.image_bytes);
  message->set_tokens_waiting(store.tokens_waiting);
  message->set_commits(store.commits);
}

void WriteStatus(const ServerStatus& status,
                 v1::GetServerStatusResponse* message) {
  const Snapshot& s = status.snapshot;
  message->set_state(ToProto(status.phase));
  WriteDuration(status.uptime, message->mutable_uptime());
  message->set_sessions_busy(status.sessions.busy);
  message->set_sessions_idle(status.sessions.idle);
  message->set_sessions_created(status.sessions.created);
  if (status.store.has_value()) {
    WriteStore(*status.store, message->mutable_store());
  }
  WriteSelfTest(status.self_test, message->mutable_self_test());
  message->set_sessions_loaded(status.sessions.loaded);
  message->set_sessions_stored_away(status.sessions.stored_away);
  message->set_sessions_ended(status.sessions.ended);
  message->set_image_bytes(status.sessions.image_bytes);
  message->set_replay_bytes(status.sessions.turn_record_bytes);
  message->set_slots_used(s.slots_used);
  message->set_slots_total(s.slots_total);
  message->set_queued_calls(s.queued_calls);
  message->set_queued_tokens(s.queued_tokens);
  WriteDuration(status.stall, message->mutable_last_step_age());
  message->set_steps(s.steps);
  message->set_step_seconds(s.step_seconds);
  message->set_rows_decode(s.rows_decode);
  message->set_rows_prefill(s.rows_prefill);
  message->set_rows_score(s.rows_score);
  message->set_rows_rebuild(s.rows_rebuild);
  message->set_rows_discarded(s.rows_discarded);
  message->set_steps_with_decode(s.steps_with_decode);
  message->set_steps_with_prompt_and_decode(s.steps_with_prompt_and_decode);
  message->set_turns_started(s.turns_started);
  message->set_turns_active(s.turns_active);
  message->set_turns_parked(s.turns_parked);
  for (const auto& [code, count] : s.turns_finished) {
    (*message->mutable_turns_finished())[code] = count;
  }
  message->set_tokens_sampled(s.tokens_sampled);
  message->set_tokens_delivered(s.tokens_delivered);
  message->set_tokens_discarded(s.tokens_discarded);
  message->set_tokens_guessed(s.tokens_guessed);
  message->set_guesses_accepted(s.guesses_accepted);
  message->set_steps_saved(s.steps_saved);
  message->set_stream_queue_tokens(s.stream_queue_tokens);
  for (const SoftmaxTail& tail : s.softmax_tails) {
    v1::SoftmaxTail* to = message->add_softmax_tails();
    to->set_computed(tail.computed);
    to->set_skipped(tail.skipped);
  }
  WriteUse(status, message);
  WritePrefixes(s, message);
}

namespace {

using Ids = std::vector<int32_t>;

int64_t Size(const Ids& ids) { return static_cast<int64_t>(ids.size()); }

// What stands behind the context, whose tokens count with it.
absl::StatusOr<Ids> ReadOne(const v1::Alternative& alternative,
                            const EncodeOptions& options,
                            const std::string& field, int64_t context,
                            const ModelFacts& facts,
                            const RequestLimits& limits) {
  if (!alternative.has_text() && !alternative.has_tokens()) {
    return FieldError(absl::StrCat(field, ".input"),
                      "text or tokens must be set");
  }
  TXL_ASSIGN_OR_RETURN(
      Ids ids, ReadTextOrIds(alternative, options, absl::StrCat(field, "."),
                             facts, limits));
  if (context + Size(ids) <= limits.prompt_tokens) return ids;
  return OverLimitError(
      field,
      absl::StrCat(context + Size(ids), " tokens with the context, at most ",
                   limits.prompt_tokens));
}

// As a turn's input has its pieces: what the last token held back is shown.
void AddTexts(const Detokenizer& before, absl::Span<ScoredToken> tokens) {
  const std::unique_ptr<Detokenizer> detokenizer = before.Clone();
  for (ScoredToken& token : tokens) {
    token.text = detokenizer->Add(token.token_id);
  }
  tokens.back().text += detokenizer->Flush();
}

}  // namespace

int64_t AlternativesParams::tokens() const {
  int64_t tokens = Size(context);
  for (const Ids& ids : alternatives) tokens += Size(ids);
  return tokens;
}

absl::StatusOr<AlternativesParams> ReadAlternatives(
    const v1::ScoreAlternativesRequest& request, const ModelFacts& facts,
    const RequestLimits& limits) {
  AlternativesParams params;
  params.session_id = request.session_id();
  if (!params.session_id.empty()) {
    TXL_RETURN_IF_ERROR(ValidateSessionId(params.session_id));
  }
  params.return_tokens = request.return_tokens();
  const int count = request.alternatives_size();
  if (count == 0) return FieldError("alternatives", "must hold at least one");
  if (count > limits.alternatives) {
    return OverLimitError(
        "alternatives", absl::StrCat(count, ", at most ", limits.alternatives));
  }
  TXL_ASSIGN_OR_RETURN(const EncodeOptions options,
                       ReadUnknown(request.unknown(), facts, limits));
  if (request.context_case() != v1::ScoreAlternativesRequest::CONTEXT_NOT_SET) {
    TXL_ASSIGN_OR_RETURN(params.context,
                         ReadTextOrIds(request, options, "", facts, limits));
  }
  params.alternatives.reserve(count);
  for (int i = 0; i < count; ++i) {
    TXL_ASSIGN_OR_RETURN(Ids ids, ReadOne(request.alternatives(i), options,
                                          absl::StrCat("alternatives[", i, "]"),
                                          Size(params.context), facts, limits));
    params.alternatives.push_back(std::move(ids));
  }
  return params;
}

v1::ScoreAlternativesResponse WriteAlternatives(
    const AlternativesParams& params, const Detokenizer* detokenizer,
    const TurnFinished& finished, absl::Span<const ScoredToken> scored) {
  std::unique_ptr<Detokenizer> before;
  if (params.return_tokens && detokenizer != nullptr) {
    before = detokenizer->Clone();
    before->Flush();
    for (const int32_t id : params.context) before->Add(id);
  }
  v1::ScoreAlternativesResponse response;
  WriteUsage(finished, response.mutable_usage());
  response.mutable_usage()->set_prompt_tokens(params.tokens());
  size_t begin = 0;
  for (const Ids& ids : params.alternatives) {
    const absl::Span<const ScoredToken> part =
        scored.subspan(begin, ids.size());
    std::vector<ScoredToken> tokens(part.begin(), part.end());
    begin += ids.size();
    if (before != nullptr) AddTexts(*before, absl::MakeSpan(tokens));
    v1::AlternativeScore* score = response.add_scores();
    score->set_sum_logprob(WriteScored(tokens, score->mutable_tokens()));
    score->set_token_count(Size(ids));
    if (!params.return_tokens) score->clear_tokens();
  }
  return response;
}

}  // namespace txl
