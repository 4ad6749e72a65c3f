#include "client/client.h"

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/call_error.h"
#include "client/text_check.h"
#include "txl/v1/generation_service.grpc.pb.h"
#include "txl/v1/model_service.grpc.pb.h"
#include "txl/v1/session_service.grpc.pb.h"

namespace txl {
namespace {

// Deadline and cancellation of one call.
class Call {
 public:
  explicit Call(const CallOptions& options)
      : scope_(options.canceller, &context_) {
    if (options.timeout != absl::InfiniteDuration()) {
      context_.set_deadline(absl::ToChronoTime(absl::Now() + options.timeout));
    }
  }

  // An id that no header may carry is left to the server's check of the field:
  // gRPC would abort the program.
  void SetSession(const std::string& session_id) {
    session_id_ = session_id;
    if (!session_id.empty() &&
        absl::c_all_of(session_id, absl::ascii_isgraph)) {
      context_.AddMetadata("x-txl-session", session_id);
    }
  }

  grpc::ClientContext* context() { return &context_; }
  absl::Status End(const grpc::Status& status) const {
    return WithSession(FromGrpcStatus(status, context_), session_id_);
  }

 private:
  std::string session_id_;
  grpc::ClientContext context_;
  Canceller::Scope scope_;
};

template <typename Stub, typename Request, typename Response>
using UnaryMethod = grpc::Status (Stub::*)(grpc::ClientContext*, const Request&,
                                           Response*);

template <typename Stub, typename Request, typename Response>
absl::StatusOr<Response> Unary(UnaryMethod<Stub, Request, Response> method,
                               Stub& stub, const Request& request, Call& call) {
  const absl::Status texts = CheckTexts(request);
  if (!texts.ok()) return texts;
  Response response;
  const absl::Status status =
      call.End((stub.*method)(call.context(), request, &response));
  if (!status.ok()) return status;
  return response;
}

// A call that names a session.
template <typename Stub, typename Request, typename Response>
absl::StatusOr<Response> SessionCall(
    UnaryMethod<Stub, Request, Response> method, Stub& stub,
    const Request& request, const CallOptions& options) {
  Call call(options);
  call.SetSession(request.session_id());
  return Unary(method, stub, request, call);
}

template <typename Stub, typename Request, typename Response>
absl::StatusOr<Response> PlainCall(UnaryMethod<Stub, Request, Response> method,
                                   Stub& stub, const Request& request,
                                   const CallOptions& options) {
  Call call(options);
  return Unary(method, stub, request, call);
}

// Bytes of a message of an import: far below what a server takes at least.
constexpr size_t kImportChunkBytes = 256 << 10;

bool WriteChunks(absl::string_view bytes,
                 grpc::ClientWriterInterface<v1::ImportSessionRequest>& to) {
  while (!bytes.empty()) {
    v1::ImportSessionRequest message;
    message.set_chunk(std::string(bytes.substr(0, kImportChunkBytes)));
    if (!to.Write(message)) return false;
    bytes.remove_prefix(message.chunk().size());
  }
  return true;
}

}  // namespace

using Generation = v1::GenerationService::StubInterface;
using Sessions = v1::SessionService::StubInterface;
using Model = v1::ModelService::StubInterface;

struct Client::Stubs {
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<Generation> generation;
  std::unique_ptr<Sessions> sessions;
  std::unique_ptr<Model> model;
};

Client::Client(std::unique_ptr<Stubs> stubs) : stubs_(std::move(stubs)) {}
Client::~Client() = default;

absl::StatusOr<std::unique_ptr<Client>> Client::Create(
    const ChannelOptions& options) {
  absl::StatusOr<std::shared_ptr<grpc::Channel>> channel = OpenChannel(options);
  if (!channel.ok()) return channel.status();
  auto stubs = std::make_unique<Stubs>();
  stubs->channel = *channel;
  stubs->generation = v1::GenerationService::NewStub(*channel);
  stubs->sessions = v1::SessionService::NewStub(*channel);
  stubs->model = v1::ModelService::NewStub(*channel);
  return std::unique_ptr<Client>(new Client(std::move(stubs)));
}

absl::Status Client::Connect(absl::Duration timeout) {
  if (stubs_->channel->WaitForConnected(
          absl::ToChronoTime(absl::Now() + timeout))) {
    return absl::OkStatus();
  }
  return absl::UnavailableError(
      absl::StrCat("not connected within ", absl::FormatDuration(timeout)));
}

absl::Status Client::Generate(
    const v1::GenerateRequest& request, const CallOptions& options,
    absl::FunctionRef<void(const v1::GenerateResponse&)> on_response) {
  const absl::Status texts = CheckTexts(request);
  if (!texts.ok()) return texts;
  Call call(options);
  call.SetSession(request.session_id());
  auto reader = stubs_->generation->Generate(call.context(), request);
  bool finished = false;
  v1::GenerateResponse response;
  while (reader->Read(&response)) {
    finished = finished || response.has_finished();
    on_response(response);
  }
  const absl::Status status = call.End(reader->Finish());
  if (status.ok() && !finished) {
    return absl::InternalError("the stream ended without Finished");
  }
  return status;
}

absl::StatusOr<v1::ScoreResponse> Client::Score(const v1::ScoreRequest& request,
                                                const CallOptions& options) {
  return SessionCall(&Generation::Score, *stubs_->generation, request, options);
}

absl::StatusOr<v1::ScoreAlternativesResponse> Client::ScoreAlternatives(
    const v1::ScoreAlternativesRequest& request, const CallOptions& options) {
  return SessionCall(&Generation::ScoreAlternatives, *stubs_->generation,
                     request, options);
}

absl::StatusOr<v1::CreateSessionResponse> Client::CreateSession(
    const v1::CreateSessionRequest& request, const CallOptions& options) {
  return SessionCall(&Sessions::CreateSession, *stubs_->sessions, request,
                     options);
}

absl::StatusOr<v1::GetSessionResponse> Client::GetSession(
    const v1::GetSessionRequest& request, const CallOptions& options) {
  return SessionCall(&Sessions::GetSession, *stubs_->sessions, request,
                     options);
}

absl::StatusOr<v1::ListSessionsResponse> Client::ListSessions(
    const v1::ListSessionsRequest& request, const CallOptions& options) {
  return PlainCall(&Sessions::ListSessions, *stubs_->sessions, request,
                   options);
}

absl::StatusOr<v1::DeleteSessionResponse> Client::DeleteSession(
    const v1::DeleteSessionRequest& request, const CallOptions& options) {
  return SessionCall(&Sessions::DeleteSession, *stubs_->sessions, request,
                     options);
}

absl::StatusOr<v1::AppendTokensResponse> Client::AppendTokens(
    const v1::AppendTokensRequest& request, const CallOptions& options) {
  return SessionCall(&Sessions::AppendTokens, *stubs_->sessions, request,
                     options);
}

absl::StatusOr<v1::ForkSessionResponse> Client::ForkSession(
    const v1::ForkSessionRequest& request, const CallOptions& options) {
  auto fork =
      SessionCall(&Sessions::ForkSession, *stubs_->sessions, request, options);
  // It is the new one that is there already.
  if (absl::IsAlreadyExists(fork.status())) {
    return WithSession(fork.status(), request.new_session_id());
  }
  return fork;
}

absl::StatusOr<v1::RewindSessionResponse> Client::RewindSession(
    const v1::RewindSessionRequest& request, const CallOptions& options) {
  return SessionCall(&Sessions::RewindSession, *stubs_->sessions, request,
                     options);
}

absl::Status Client::ExportSession(
    const v1::ExportSessionRequest& request, const CallOptions& options,
    absl::FunctionRef<absl::Status(absl::string_view)> on_chunk) {
  const absl::Status texts = CheckTexts(request);
  if (!texts.ok()) return texts;
  Call call(options);
  call.SetSession(request.session_id());
  const auto reader = stubs_->sessions->ExportSession(call.context(), request);
  v1::ExportSessionResponse response;
  absl::Status taken;
  while (reader->Read(&response)) {
    if (!taken.ok()) continue;
    taken = on_chunk(response.chunk());
    if (!taken.ok()) call.context()->TryCancel();
  }
  const absl::Status status = call.End(reader->Finish());
  return taken.ok() ? status : taken;
}

absl::StatusOr<v1::ImportSessionResponse> Client::ImportSession(
    const v1::ImportSessionRequest& request, const CallOptions& options,
    absl::FunctionRef<absl::StatusOr<std::string>()> source) {
  const absl::Status texts = CheckTexts(request);
  if (!texts.ok()) return texts;
  Call call(options);
  call.SetSession(request.session_id());
  v1::ImportSessionResponse response;
  const auto writer =
      stubs_->sessions->ImportSession(call.context(), &response);
  // A write fails when the server has ended the call, which Finish explains.
  bool open = writer->Write(request);
  absl::StatusOr<std::string> bytes = std::string();
  while (open) {
    bytes = source();
    if (!bytes.ok() || bytes->empty()) break;
    open = WriteChunks(*bytes, *writer);
  }
  if (!bytes.ok()) call.context()->TryCancel();
  if (bytes.ok() && open) writer->WritesDone();
  const absl::Status status = call.End(writer->Finish());
  if (!bytes.ok()) return bytes.status();
  if (!status.ok()) return status;
  return response;
}

absl::StatusOr<v1::GetModelResponse> Client::GetModel(
    const CallOptions& options) {
  return PlainCall(&Model::GetModel, *stubs_->model, v1::GetModelRequest(),
                   options);
}

absl::StatusOr<v1::GetServerStatusResponse> Client::GetServerStatus(
    const CallOptions& options) {
  return PlainCall(&Model::GetServerStatus, *stubs_->model,
                   v1::GetServerStatusRequest(), options);
}

absl::StatusOr<v1::TokenizeResponse> Client::Tokenize(
    const v1::TokenizeRequest& request, const CallOptions& options) {
  return PlainCall(&Model::Tokenize, *stubs_->model, request, options);
}

absl::StatusOr<v1::DetokenizeResponse> Client::Detokenize(
    const v1::DetokenizeRequest& request, const CallOptions& options) {
  return PlainCall(&Model::Detokenize, *stubs_->model, request, options);
}

}  // namespace txl
