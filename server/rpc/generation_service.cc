#include "server/rpc/generation_service.h"

#include <memory>
#include <random>
#include <utility>

#include "model/base/status_macros.h"
#include "server/rpc/call_context.h"
#include "server/rpc/convert_input.h"
#include "server/rpc/convert_output.h"
#include "server/rpc/raw_message.h"
#include "server/rpc/token_stream.h"
#include "server/rpc/turn_submit.h"
#include "server/rpc/unary_call.h"

namespace txl {
namespace {

// A client that has not read the end of its turn for this many slow-reader
// limits loses its call.
constexpr int kStallLimits = 10;

uint64_t RandomSeed() {
  std::random_device device;
  return (uint64_t{device()} << 32) | device();
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
  options.stall_limit =
      kStallLimits * service.scheduler_options.slow_reader_limit;
  options.park_events = service.scheduler_options.park_events;
  options.wake = [scheduler = service.scheduler] { scheduler->Wake(); };
  options.callbacks = service.callbacks;
  options.record = record;
  return options;
}

absl::StatusOr<GenerateParams> ReadCall(const ServiceContext& service,
                                        grpc::CallbackServerContext* call,
                                        const grpc::ByteBuffer& bytes) {
  TXL_RETURN_IF_ERROR(service.lifecycle->CheckServing());
  v1::GenerateRequest request;
  TXL_RETURN_IF_ERROR(ParseMessage(bytes, &request));
  TXL_ASSIGN_OR_RETURN(GenerateParams params,
                       ReadGenerate(request, *service.facts, service.limits));
  if (!request.sampling().has_seed() &&
      !service.facts->generation.sampling.seed.has_value()) {
    params.sampling.seed = RandomSeed();
  }
  TXL_RETURN_IF_ERROR(ExchangeSessionMetadata(call, params.session_id));
  return params;
}

// The session is free before the client hears of it.
void Refuse(SessionLease lease, TokenStream& stream,
            const absl::Status& status) {
  lease.Release();
  stream.Failed(status);
}

void RunGenerate(const ServiceContext& service, const GenerateParams& params,
                 const std::shared_ptr<TokenStream>& stream, SessionLease lease,
                 std::shared_ptr<const TurnRecord> record) {
  if (record != nullptr && record->finished.has_value()) {
    lease.Release();
    return Replay(*record, stream.get());
  }
  Turn turn;
  turn.kind = TurnKind::kGenerate;
  turn.sampling = params.sampling;
  if (record == nullptr) {
    absl::StatusOr<std::vector<int32_t>> input =
        TurnInput(params.input, lease.position(), service.facts->generation);
    if (!input.ok()) return Refuse(std::move(lease), *stream, input.status());
    turn.input = *std::move(input);
  } else {
    turn.sampling.seed = record->seed;
    turn.resumed = std::move(record);
  }
  turn.lease = std::move(lease);
  turn.stop = params.stop;
  turn.top_logprobs = params.output.top_logprobs;
  turn.identity = params.identity;
  turn.deadline = stream->deadline();
  turn.sink = stream;
  turn.cancel = stream->cancel();
  const absl::Status status = service.scheduler->Submit(std::move(turn));
  if (!status.ok()) stream->Failed(status);
}

grpc::ByteBuffer ScoreAnswer(const TurnFinished&,
                             const std::vector<ScoredToken>& scored) {
  v1::ScoreResponse response;
  response.set_sum_logprob(WriteScored(scored, response.mutable_tokens()));
  return SerializeMessage(response);
}

}  // namespace

grpc::ServerWriteReactor<grpc::ByteBuffer>* GenerationService::Generate(
    grpc::CallbackServerContext* call, const grpc::ByteBuffer* request) {
  CallRecord record = StartRecord("txl.v1.GenerationService/Generate",
                                  context_.clock, context_.metrics);
  absl::StatusOr<GenerateParams> params = ReadCall(context_, call, *request);
  if (!params.ok()) return TokenStream::Refuse(record, params.status());
  record.named_session = !params->session_id.empty();
  if (!record.named_session) {
    // No session is made for a turn that cannot run.
    const absl::Status input =
        TurnInput(params->input, 0, context_.facts->generation).status();
    if (!input.ok()) return TokenStream::Refuse(record, input);
  }

  TokenStreamOptions options = StreamOptions(context_, *params, record);
  options.deadline = CallDeadline(*call, context_.clock);
  const std::shared_ptr<TokenStream> stream =
      TokenStream::Create(call, std::move(options));
  TurnStart start;
  start.session_id = params->session_id;
  start.identity = params->identity;
  start.expected_position = params->expected_position;
  start.fail = [stream](const absl::Status& status) { stream->Failed(status); };
  start.run = [this, stream, params = *std::move(params)](
                  SessionLease lease, std::shared_ptr<const TurnRecord> kept) {
    RunGenerate(context_, params, stream, std::move(lease), std::move(kept));
  };
  StartTurn(context_, std::move(start));
  // From here the stream is gRPC's: it ends the call itself.
  return stream.get();
}

grpc::ServerUnaryReactor* GenerationService::Score(
    grpc::CallbackServerContext* call, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* response) {
  CallRecord record = StartRecord("txl.v1.GenerationService/Score",
                                  context_.clock, context_.metrics);
  const auto submit = [&]() -> absl::StatusOr<grpc::ServerUnaryReactor*> {
    TXL_RETURN_IF_ERROR(context_.lifecycle->CheckServing());
    v1::ScoreRequest message;
    TXL_RETURN_IF_ERROR(ParseMessage(*request, &message));
    TXL_ASSIGN_OR_RETURN(FeedParams params,
                         ReadScore(message, *context_.facts, context_.limits));
    TXL_RETURN_IF_ERROR(ExchangeSessionMetadata(call, params.session_id));
    record.named_session = !params.session_id.empty();
    record.prompt_tokens = static_cast<int64_t>(params.input.size());
    UnaryTurnOptions options;
    options.answer = ScoreAnswer;
    options.deadline = CallDeadline(*call, context_.clock);
    options.wake = [scheduler = context_.scheduler] { scheduler->Wake(); };
    options.callbacks = context_.callbacks;
    options.record = record;
    return SubmitFeed(context_, TurnKind::kScore, std::move(params),
                      UnaryTurn::Create(response, std::move(options)));
  };
  absl::StatusOr<grpc::ServerUnaryReactor*> reactor = submit();
  return reactor.ok() ? *reactor : FinishNow(call, record, reactor.status());
}

}  // namespace txl
