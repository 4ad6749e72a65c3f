#include "server/api/generation_service.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "model/base/status_macros.h"
#include "server/api/convert_input.h"
#include "server/api/convert_output.h"
#include "server/api/token_stream.h"
#include "server/api/turn_submit.h"
#include "server/base/random_bits.h"

namespace txl {
namespace {

// A client that has not read so many events of an ended turn's rest within a
// slow-reader limit loses its call: as many as it has to read of a running one.
int64_t LeastEvents(const SchedulerOptions& options) {
  const double seconds = absl::ToDoubleSeconds(options.slow_reader_limit);
  return std::max<int64_t>(1,
                           static_cast<int64_t>(options.least_rate * seconds));
}

v1::Started MakeStarted(const GenerateParams& params, const ModelFacts& facts) {
  v1::Started started;
  started.set_session_id(params.session_id);
  started.set_seed(params.sampling.seed);
  WriteSampling(params.sampling, started.mutable_sampling());
  WriteStop(params.stop, started.mutable_stop());
  started.set_model_fingerprint(facts.fingerprint);
  return started;
}

TokenStreamOptions StreamOptions(const ServiceContext& service,
                                 const GenerateParams& params,
                                 const CallRecord& record) {
  TokenStreamOptions options;
  options.started = MakeStarted(params, *service.facts);
  if (params.output.include_token_bytes) {
    options.bytes_of = service.facts->vocabulary;
  }
  options.tokens_per_message = params.output.tokens_per_message;
  options.stall_limit = service.scheduler_options.slow_reader_limit;
  options.least_events = LeastEvents(service.scheduler_options);
  options.park_events = service.scheduler_options.park_events;
  options.wake = [scheduler = service.scheduler] { scheduler->Wake(); };
  options.callbacks = service.callbacks;
  options.record = record;
  return options;
}

// `session`: the one that the request names is said here.
absl::StatusOr<GenerateParams> ReadGenerateCall(const ServiceContext& service,
                                                ApiCall& call,
                                                SessionName* session) {
  v1::GenerateRequest request;
  TXL_RETURN_IF_ERROR(call.Parse(&request));
  call.NoteRequestId(request.request_id());
  TXL_ASSIGN_OR_RETURN(*session, call.SessionOf(request.session_id()));
  TXL_ASSIGN_OR_RETURN(GenerateParams params,
                       ReadGenerate(request, *service.facts, service.limits));
  if (!params.gave_seed && params.received.has_value()) {
    params.sampling.seed = params.received->seed;
  } else if (!params.gave_seed &&
             !service.facts->generation.sampling.seed.has_value()) {
    params.sampling.seed = RandomBits();
  }
  // No session is made for a turn that cannot run.
  if (params.session_id.empty()) {
    TXL_RETURN_IF_ERROR(
        TurnInput(params.input, 0, service.facts->generation).status());
  }
  return params;
}

// What the events of a stream take that its client does not read.
int64_t StreamBytes(const ServiceContext& service, const OutputParams& output) {
  constexpr int64_t kTextBytes = 32;
  const int64_t event =
      static_cast<int64_t>(sizeof(StreamEvent)) + kTextBytes +
      output.top_logprobs * static_cast<int64_t>(sizeof(TokenLogprob));
  return event * service.scheduler_options.park_events;
}

// The session is free before the client hears of it.
void Refuse(SessionLease lease, TokenStream& stream,
            const absl::Status& status) {
  lease.Release();
  stream.Failed(status);
}

// The turn, but for its lease and for who gets its answer. `kept`: what an
// earlier call of the same request left; null for a new turn.
absl::StatusOr<Turn> MakeTurn(const ServiceContext& service,
                              const GenerateParams& params, SessionLease& lease,
                              std::shared_ptr<const TurnRecord> kept) {
  Turn turn;
  turn.priority = params.priority;
  turn.kind = TurnKind::kGenerate;
  turn.sampling = params.sampling;
  turn.stop = params.stop;
  turn.top_logprobs = params.output.top_logprobs;
  turn.identity = params.identity;
  int64_t start = lease.position();
  int64_t prompt = 0;
  int64_t kept_tokens = 0;
  if (kept == nullptr) {
    TXL_ASSIGN_OR_RETURN(turn.input, TurnInput(params.input, lease.position(),
                                               service.facts->generation));
    prompt = static_cast<int64_t>(turn.input.size());
    // The client may have been told of a seed already.
    if (const auto intent = lease.IntentOf(params.identity)) {
      turn.sampling.seed = intent->seed;
    }
  } else {
    turn.sampling.seed = kept->seed;
    start = kept->start_position;
    prompt = kept->prompt_tokens;
    kept_tokens = static_cast<int64_t>(kept->tokens.size());
    turn.resumed = std::move(kept);
  }
  TXL_ASSIGN_OR_RETURN(
      turn.stop.max_tokens,
      FitMaxTokens(params, prompt,
                   service.store_options.max_session_tokens - start));
  if (params.received.has_value()) {
    TXL_RETURN_IF_ERROR(AddReceived(*params.received, turn));
  }
  TXL_RETURN_IF_ERROR(
      lease.Reserve(static_cast<int64_t>(turn.input.size()) +
                    std::max<int64_t>(turn.stop.max_tokens - kept_tokens, 0)));
  return turn;
}

TurnIntent IntentOf(const Turn& turn) {
  TurnIntent intent;
  intent.identity = turn.identity;
  intent.seed = turn.sampling.seed;
  intent.start_position = turn.lease.position();
  intent.prompt_tokens = static_cast<int64_t>(turn.input.size());
  if (turn.resumed != nullptr) {
    intent.start_position = turn.resumed->start_position;
    intent.prompt_tokens = turn.resumed->prompt_tokens;
  }
  return intent;
}

void RunGenerate(const ServiceContext& service, const GenerateParams& params,
                 TenantAccount* account,
                 const std::shared_ptr<TokenStream>& stream, SessionLease lease,
                 std::shared_ptr<const TurnRecord> record) {
  const absl::Status received = CheckReceived(params, record.get());
  if (!received.ok()) return Refuse(std::move(lease), *stream, received);
  if (record != nullptr && record->finished.has_value()) {
    const SessionName session = lease.name();
    lease.Release();
    const absl::StatusOr<int32_t> most = FitMaxTokens(
        params, record->prompt_tokens,
        service.store_options.max_session_tokens - record->start_position);
    if (most.ok()) stream->SetMaxTokens(*most);
    const size_t first =
        params.received.has_value() ? params.received->token_ids.size() : 0;
    WhenStored(
        service, session, [stream, record, first](const absl::Status& status) {
          status.ok() ? stream->Replay(record, first) : stream->Failed(status);
        });
    return;
  }
  absl::StatusOr<Turn> turn =
      MakeTurn(service, params, lease, std::move(record));
  if (!turn.ok()) return Refuse(std::move(lease), *stream, turn.status());
  stream->SetMaxTokens(turn->stop.max_tokens);
  turn->lease = std::move(lease);
  turn->account = account;
  turn->deadline = stream->deadline();
  turn->sink = stream;
  turn->cancel = stream->cancel();
  if (!params.session_id.empty()) {
    turn->sink = StoredSink(service, turn->lease, stream, turn->cancel);
    turn->lease.Begin(IntentOf(*turn));
  }
  const absl::Status status = service.scheduler->Submit(*std::move(turn));
  if (!status.ok()) stream->Failed(status);
}

AnswerMessage ScoreAnswer(const TurnFinished& finished,
                          const std::vector<ScoredToken>& scored) {
  auto response = std::make_unique<v1::ScoreResponse>();
  response->set_sum_logprob(WriteScored(scored, response->mutable_tokens()));
  response->set_position(finished.position);
  return response;
}

}  // namespace

void Generate(const ServiceContext& service,
              const std::shared_ptr<ApiCall>& call) {
  TurnStart start;
  absl::StatusOr<GenerateParams> params =
      ReadGenerateCall(service, *call, &start.session);
  if (!params.ok()) return call->End(params.status());
  absl::StatusOr<ByteHold> hold =
      call->desk().HoldAnswer(StreamBytes(service, params->output));
  if (!hold.ok()) return call->End(hold.status());
  TokenStreamOptions options = StreamOptions(service, *params, call->record());
  options.deadline = call->Deadline();
  const std::shared_ptr<TokenStream> stream =
      TokenStream::Create(call.get(), std::move(options));
  start.identity = params->identity;
  start.expected_position = params->expected_position;
  start.fail = [stream](const absl::Status& status) { stream->Failed(status); };
  // The call is there: nothing ends it but the stream, which has not begun.
  start.run = [&service, call = call.get(), stream,
               params = *std::move(params)](
                  SessionLease lease, std::shared_ptr<const TurnRecord> kept) {
    if (!params.session_id.empty()) call->ReturnSession(params.session_id);
    if (kept != nullptr && kept->finished.has_value()) {
      absl::StatusOr<ByteHold> record = call->desk().HoldAnswer(kept->Bytes());
      if (!record.ok()) {
        return Refuse(std::move(lease), *stream, record.status());
      }
      call->KeepHold(*std::move(record));
    }
    RunGenerate(service, params, call->account(), stream, std::move(lease),
                std::move(kept));
  };
  call->HandOver(stream, *std::move(hold));
  StartTurn(service, std::move(start));
}

void Score(const ServiceContext& service,
           const std::shared_ptr<ApiCall>& call) {
  SubmitCall<v1::ScoreRequest>(service, call, TurnKind::kScore, ReadScore,
                               ScoreAnswer);
}

}  // namespace txl
