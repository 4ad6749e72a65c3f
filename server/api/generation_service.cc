#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "model/base/status_macros.h"
#include "server/api/convert_input.h"
#include "server/api/convert_output.h"
#include "server/api/services.h"
#include "server/api/token_stream.h"
#include "server/api/turn_submit.h"
#include "server/api/unary_turn.h"
#include "server/base/digest.h"

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

TokenStreamOptions StreamOptions(const TurnContext& service,
                                 const ApiCall& call,
                                 const GenerateParams& params) {
  TokenStreamOptions options;
  options.started = MakeStarted(params, *service.model.facts);
  if (params.output.include_token_bytes) {
    options.bytes_of = service.model.facts->vocabulary;
  }
  options.tokens_per_message = params.output.tokens_per_message;
  options.stall_limit = service.model.scheduler.slow_reader_limit;
  options.least_events = LeastEvents(service.model.scheduler);
  options.park_events = service.model.scheduler.park_events;
  options.deadline = call.Deadline();
  options.wake = [scheduler = service.scheduler] { scheduler->Wake(); };
  options.callbacks = service.callbacks;
  options.record = call.record();
  return options;
}

// What the events of a stream take that its client does not read.
int64_t StreamBytes(const TurnContext& service, const OutputParams& output) {
  constexpr int64_t kTextBytes = 32;
  const int64_t event =
      static_cast<int64_t>(sizeof(StreamEvent)) + kTextBytes +
      output.logprobs.count() * static_cast<int64_t>(sizeof(TokenLogprob));
  return event * service.model.scheduler.park_events;
}

// What a call asks for, checked.
struct GenerateInput {
  SessionName session;  // empty: a temporary one
  GenerateParams params;
};

absl::StatusOr<GenerateInput> ReadGenerateCall(const TurnContext& service,
                                               ApiCall& call) {
  TXL_ASSIGN_OR_RETURN(const auto request, call.Read<v1::GenerateRequest>());
  call.NoteRequestId(request->request_id());
  GenerateInput input;
  TXL_ASSIGN_OR_RETURN(input.session, call.SessionOf(request->session_id()));
  TXL_ASSIGN_OR_RETURN(
      input.params,
      ReadGenerate(*request, *service.model.facts, service.model.limits));
  GenerateParams& params = input.params;
  const GenerationDefaults& generation = service.model.facts->generation;
  if (!params.gave_seed && params.received.has_value()) {
    params.sampling.seed = params.received->seed;
  } else if (!params.gave_seed && !generation.sampling.seed.has_value()) {
    params.sampling.seed = RandomBits();
  }
  // No session is made for a turn that cannot run.
  if (params.session_id.empty() && !params.input.has_value()) {
    TXL_RETURN_IF_ERROR(TurnInput(std::nullopt, 0, generation).status());
  }
  return input;
}

// Takes room for the answer, and the call over: from now on the stream ends it.
absl::StatusOr<std::shared_ptr<TokenStream>> OpenStream(
    const TurnContext& service, ApiCall& call, const GenerateParams& params) {
  TXL_ASSIGN_OR_RETURN(ByteHold hold, call.desk().HoldAnswer(
                                          StreamBytes(service, params.output)));
  std::shared_ptr<TokenStream> stream =
      TokenStream::Create(&call, StreamOptions(service, call, params));
  call.HandOver(stream, std::move(hold));
  return stream;
}

// Where the turn begins, whenever it does.
TurnIntent MakeIntent(const Turn& turn) {
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

// The turn, but for where its answer goes.
absl::StatusOr<Turn> MakeTurn(const TurnContext& service, GenerateParams params,
                              LeasedSession leased) {
  TXL_RETURN_IF_ERROR(CheckReceived(params, leased.kept.get()));
  Turn turn;
  turn.kind = TurnKind::kGenerate;
  turn.lease = std::move(leased.lease);
  turn.resumed = std::move(leased.kept);
  turn.priority = params.priority;
  turn.sampling = params.sampling;
  turn.top_logprobs = params.output.logprobs.top;
  turn.logprob_ids = params.output.logprobs.ids;
  turn.identity = params.identity;
  int64_t kept_tokens = 0;
  if (turn.resumed == nullptr) {
    TXL_ASSIGN_OR_RETURN(
        turn.input, TurnInput(std::move(params.input), turn.lease.position(),
                              service.model.facts->generation));
    // The client may have been told of a seed already.
    if (const auto intent = turn.lease.IntentOf(params.identity)) {
      turn.sampling.seed = intent->seed;
    }
  } else {
    turn.sampling.seed = turn.resumed->seed;
    kept_tokens = static_cast<int64_t>(turn.resumed->tokens.size());
  }
  const TurnIntent intent = MakeIntent(turn);
  TXL_ASSIGN_OR_RETURN(const int32_t most,
                       FitMaxTokens(params, intent.prompt_tokens,
                                    service.model.sessions.max_session_tokens -
                                        intent.start_position));
  turn.stop = std::move(params.stop);
  turn.stop.max_tokens = most;
  if (params.received.has_value()) {
    TXL_RETURN_IF_ERROR(AddReceived(*params.received, turn));
  }
  TXL_RETURN_IF_ERROR(
      turn.lease.Reserve(static_cast<int64_t>(turn.input.size()) +
                         std::max<int64_t>(most - kept_tokens, 0)));
  return turn;
}

// Submits the turn, whose events go to the stream from then on.
absl::Status SubmitTurn(const TurnContext& service, Turn turn,
                        TenantAccount* account,
                        const std::shared_ptr<TokenStream>& stream) {
  stream->SetMaxTokens(turn.stop.max_tokens);
  turn.account = account;
  turn.deadline = stream->deadline();
  turn.sink = stream;
  turn.cancel = stream->cancel();
  if (!turn.lease.name().empty()) {
    turn.sink = service.sessions.StoredSink(turn.lease, stream, turn.cancel);
    turn.lease.Begin(MakeIntent(turn));
  }
  return service.scheduler->Submit(std::move(turn));
}

// Tells a turn again that an earlier call of its request has run to its end.
absl::Status ReplayTurn(const TurnContext& service, ApiCall& call,
                        const GenerateParams& params, LeasedSession leased,
                        const std::shared_ptr<TokenStream>& stream) {
  const std::shared_ptr<const TurnRecord> record = std::move(leased.kept);
  TXL_ASSIGN_OR_RETURN(ByteHold hold, call.desk().HoldAnswer(record->Bytes()));
  call.KeepHold(std::move(hold));
  TXL_RETURN_IF_ERROR(CheckReceived(params, record.get()));
  std::shared_ptr<const SessionClaim> claim = leased.lease.claim();
  leased.lease.Release();
  const absl::StatusOr<int32_t> most = FitMaxTokens(
      params, record->prompt_tokens,
      service.model.sessions.max_session_tokens - record->start_position);
  if (most.ok()) stream->SetMaxTokens(*most);
  const size_t first =
      params.received.has_value() ? params.received->token_ids.size() : 0;
  service.sessions.WhenStoredOf(
      std::move(claim), [stream, record, first](const absl::Status& status) {
        status.ok() ? stream->Replay(record, first) : stream->Failed(status);
      });
  return absl::OkStatus();
}

absl::Status RunTurn(const TurnContext& service, ApiCall& call,
                     GenerateParams params, LeasedSession leased,
                     const std::shared_ptr<TokenStream>& stream) {
  if (leased.kept != nullptr && leased.kept->finished.has_value()) {
    return ReplayTurn(service, call, params, std::move(leased), stream);
  }
  TXL_ASSIGN_OR_RETURN(Turn turn,
                       MakeTurn(service, std::move(params), std::move(leased)));
  turn.prefix_tenant = call.caller().tenant;
  return SubmitTurn(service, std::move(turn), call.account(), stream);
}

AnswerMessage ScoreAnswer(const TurnFinished& finished,
                          const std::vector<ScoredToken>& scored) {
  auto response = std::make_unique<v1::ScoreResponse>();
  response->set_sum_logprob(WriteScored(scored, response->mutable_tokens()));
  response->set_position(finished.position);
  WriteUsage(finished, response->mutable_usage());
  return response;
}

}  // namespace

void Generate(const TurnContext& service,
              const std::shared_ptr<ApiCall>& call) {
  absl::StatusOr<GenerateInput> input = ReadGenerateCall(service, *call);
  if (!input.ok()) return call->End(input.status());
  absl::StatusOr<std::shared_ptr<TokenStream>> opened =
      OpenStream(service, *call, input->params);
  if (!opened.ok()) return call->End(opened.status());
  const auto params =
      std::make_shared<GenerateParams>(std::move(input->params));
  // At once, or later on the callback thread. The call is there: nothing ends
  // it but the stream, which has not begun.
  LeaseSession(
      service,
      {std::move(input->session), params->identity, params->expected_position},
      [&service, call = call.get(), stream = *std::move(opened),
       params](absl::StatusOr<LeasedSession> leased) {
        if (!leased.ok()) return stream->Failed(leased.status());
        if (!params->session_id.empty()) {
          call->ReturnSession(params->session_id);
        }
        const absl::Status run = RunTurn(service, *call, std::move(*params),
                                         *std::move(leased), stream);
        // The session is free before the client hears of it.
        if (!run.ok()) stream->Failed(run);
      });
}

void Score(const TurnContext& service, const std::shared_ptr<ApiCall>& call) {
  SubmitCall<v1::ScoreRequest>(service, call, TurnKind::kScore, ReadScore,
                               ScoreAnswer);
}

namespace {

// What the call has until its answer is made.
struct Work {
  AlternativesParams params;
  std::unique_ptr<Detokenizer> detokenizer;  // behind the session
};

// `session`: the one that the request names is said here.
absl::StatusOr<AlternativesParams> ReadAlternativesCall(
    const TurnContext& service, ApiCall& call, SessionName* session) {
  TXL_ASSIGN_OR_RETURN(const auto request,
                       call.Read<v1::ScoreAlternativesRequest>());
  TXL_ASSIGN_OR_RETURN(*session, call.SessionOf(request->session_id()));
  return ReadAlternatives(*request, *service.model.facts, service.model.limits);
}

// What scores and answer take, about: nothing may refuse the answer once the
// turn is done.
int64_t AnswerBytes(const AlternativesParams& params) {
  constexpr int64_t kAlternativeBytes = 64;
  constexpr int64_t kTokenBytes = 48;  // with its text, a word's
  const int64_t token = static_cast<int64_t>(sizeof(ScoredToken)) +
                        (params.return_tokens ? kTokenBytes : 0);
  return kAlternativeBytes * static_cast<int64_t>(params.alternatives.size()) +
         token * params.tokens();
}

absl::Status SubmitAlternatives(const TurnContext& service, Work& work,
                                SessionLease lease,
                                const std::shared_ptr<UnaryTurn>& sink) {
  if (work.params.return_tokens) work.detokenizer = lease.CloneDetokenizer();
  Turn turn;
  turn.kind = TurnKind::kAlternatives;
  turn.lease = std::move(lease);
  turn.input = work.params.context;
  turn.alternatives = work.params.alternatives;
  UnaryTurn::Attach(sink, &turn);
  return service.scheduler->Submit(std::move(turn));
}

}  // namespace

void ScoreAlternatives(const TurnContext& service,
                       const std::shared_ptr<ApiCall>& call) {
  SessionName session;
  absl::StatusOr<AlternativesParams> params =
      ReadAlternativesCall(service, *call, &session);
  if (!params.ok()) return call->End(params.status());
  absl::StatusOr<ByteHold> hold = call->desk().HoldAnswer(AnswerBytes(*params));
  if (!hold.ok()) return call->End(hold.status());
  call->record().prompt_tokens = params->tokens();
  const auto work = std::make_shared<Work>();
  work->params = *std::move(params);
  const auto sink = UnaryTurn::Create(
      service, call, *std::move(hold),
      [work](const TurnFinished& finished,
             const std::vector<ScoredToken>& scored) {
        return std::make_unique<v1::ScoreAlternativesResponse>(
            WriteAlternatives(work->params, work->detokenizer.get(), finished,
                              scored));
      });
  LeaseSession(service, {std::move(session), TurnIdentity(), std::nullopt},
               [&service, sink, work](absl::StatusOr<LeasedSession> leased) {
                 if (!leased.ok()) return sink->Failed(leased.status());
                 const std::string& session_id = work->params.session_id;
                 if (!session_id.empty()) sink->Found(session_id);
                 const absl::Status submitted = SubmitAlternatives(
                     service, *work, std::move(leased->lease), sink);
                 if (!submitted.ok()) sink->Failed(submitted);
               });
}

}  // namespace txl
