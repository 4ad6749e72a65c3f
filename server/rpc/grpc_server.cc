#include "server/rpc/grpc_server.h"

#include <google/protobuf/stubs/logging.h>
#include <grpc/support/log.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/server_builder.h>

#include <cstdlib>
#include <mutex>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "model/base/status_macros.h"
#include "server/api/methods.h"
#include "server/base/log.h"
#include "server/rpc/call_context.h"
#include "server/rpc/open_call.h"
#include "txl/v1/admin_service.grpc.pb.h"
#include "txl/v1/generation_service.grpc.pb.h"
#include "txl/v1/model_service.grpc.pb.h"
#include "txl/v1/session_service.grpc.pb.h"

namespace txl {
namespace {

// Says no more than any method to who has no key.
class NoSuchMethod final : public grpc::ServerGenericBidiReactor {
 public:
  NoSuchMethod(CallDesk& desk, grpc::GenericCallbackServerContext& context) {
    const CallOrigin origin = OriginOf(context, desk.context().trace_rate);
    context.AddInitialMetadata(kTraceparent, TraceparentOf(origin.trace));
    const absl::StatusOr<Caller> caller =
        Identify(desk.context().keys, CallCredentials(context));
    if (caller.ok()) {
      Finish(grpc::Status(grpc::StatusCode::UNIMPLEMENTED, ""));
      return;
    }
    CallRecord record =
        StartRecord("unknown", desk.context().clock, desk.context().metrics);
    record.lines = &desk.lines();
    record.peer = origin.peer;
    record.trace = origin.trace;
    EndRecord(record, caller.status());
    Finish(ToGrpcStatus(caller.status()));
  }
  void OnDone() override { delete this; }
};

const ApiMethod* MethodOf(absl::string_view path, bool administration) {
  if (!absl::ConsumePrefix(&path, "/")) return nullptr;
  if (administration) return FindAdminMethod(path);
  if (path == ReflectionMethod().name) return &ReflectionMethod();
  return FindMethod(path);
}

}  // namespace

grpc::ServerGenericBidiReactor* ApiService::CreateReactor(
    grpc::GenericCallbackServerContext* call) {
  const ApiMethod* method =
      MethodOf(call->method(), desk_->context().administration != nullptr);
  if (method == nullptr) return new NoSuchMethod(*desk_, *call);
  return OpenCall::Open(call, *method, desk_);
}

namespace {

// Transport settings; sources: docs/design/failure.md.
constexpr int kMaxMetadataBytes = 8 << 10;
constexpr int kWindowBytes = 16 << 10;
constexpr int kKeepaliveTimeMs = 60'000;
constexpr int kKeepaliveTimeoutMs = 20'000;
constexpr int kHandshakeTimeoutMs = 10'000;

// gRPC's own lines, which it would write itself and wait for their reader.
void LogOfGrpc(gpr_log_func_args* args) {
  const LogSeverity severity =
      args->severity == GPR_LOG_SEVERITY_ERROR  ? LogSeverity::kWarning
      : args->severity == GPR_LOG_SEVERITY_INFO ? LogSeverity::kInfo
                                                : LogSeverity::kDebug;
  Log(severity, "grpc",
      {{"file", args->file}, {"line", args->line}, {"message", args->message}});
}

void SetLibraryOptionsOnce() {
  static std::once_flag once;
  std::call_once(once, [] {
    grpc::EnableDefaultHealthCheckService(true);
    // Protobuf would log a line for every malformed message that a client
    // sends; the client is told, which is enough.
    google::protobuf::SetLogHandler(nullptr);
    gpr_set_log_function(&LogOfGrpc);
  });
}

int Milliseconds(absl::Duration duration) {
  return static_cast<int>(absl::ToInt64Milliseconds(duration));
}

void SetTransport(const RequestLimits& limits, const CallLimits& calls,
                  grpc::ServerBuilder* builder) {
  // A compressed message would be unpacked before its size is checked. So none
  // is taken, and no coding is offered: gRPC answers UNIMPLEMENTED.
  builder->AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
  for (const auto algorithm : {GRPC_COMPRESS_DEFLATE, GRPC_COMPRESS_GZIP}) {
    builder->SetCompressionAlgorithmSupportStatus(algorithm, false);
  }
  builder->SetMaxReceiveMessageSize(static_cast<int>(limits.message_bytes));
  builder->AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, kMaxMetadataBytes);
  // What a client may send of a message that nobody reads yet: not to grow.
  builder->AddChannelArgument(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES,
                              kWindowBytes);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  // What a connection keeps to read into, see SetGrpcExperiments.
  builder->AddChannelArgument(GRPC_ARG_TCP_MAX_READ_CHUNK_SIZE, kWindowBytes);
  builder->AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS,
                              static_cast<int>(calls.streams_per_connection));
  builder->AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS,
                              Milliseconds(calls.connection_idle));
  builder->AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_MS,
                              Milliseconds(calls.connection_age));
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveTimeMs);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS,
                              kKeepaliveTimeoutMs);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  // A PING is answered for next to nothing. gRPC 1.51, where it ends a
  // connection for too many of them, keeps an error of 1 to 2 KiB for each that
  // comes until its last write is done: 0 is "however many".
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);
  builder->AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS,
                              kHandshakeTimeoutMs);
}

}  // namespace

void SetGrpcExperiments() {
  constexpr char kName[] = "GRPC_EXPERIMENTS";
  const char* given = std::getenv(kName);
  setenv(kName,
         absl::StrCat("-tcp_read_chunks", given == nullptr ? "" : ",",
                      given == nullptr ? "" : given)
             .c_str(),
         /*overwrite=*/1);
}

GrpcServer::GrpcServer(const ServiceContext* context)
    : administration_(context->administration != nullptr),
      desk_(context),
      api_(&desk_) {}

GrpcServer::~GrpcServer() = default;

absl::StatusOr<std::unique_ptr<GrpcServer>> GrpcServer::Start(
    const std::string& listen, const ServiceContext* context,
    const CertificateWatch* certificates) {
  SetLibraryOptionsOnce();
  std::unique_ptr<GrpcServer> server(new GrpcServer(context));
  TXL_ASSIGN_OR_RETURN(server->gate_,
                       ConnectionGate::Listen(listen, context->call_limits,
                                              server->administration_));
  server->desk_.AddConnections(
      [gate = server->gate_.get()] { return gate->counts(); });
  server->desk_.SetCutOff([gate = server->gate_.get()](
                              const std::string& peer) { gate->CutOff(peer); });
  if (certificates != nullptr && !absl::StartsWith(listen, "unix:")) {
    server->tls_ = std::make_unique<TlsServerCredentials>(certificates);
  }
  grpc::ServerBuilder builder;
  SetTransport(context->turns.model.limits, context->call_limits, &builder);
  auto acceptor = builder.experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
      server->tls_ == nullptr ? grpc::InsecureServerCredentials()
                              : server->tls_->Make());
  builder.RegisterCallbackGenericService(&server->api_);
  server->server_ = builder.BuildAndStart();
  if (server->server_ == nullptr) {
    return absl::UnavailableError("gRPC's server does not start");
  }
  server->SetServing(false);
  server->gate_->Start(std::move(acceptor));
  return server;
}

void GrpcServer::SetServing(bool serving) {
  grpc::HealthCheckServiceInterface* health = server_->GetHealthCheckService();
  health->SetServingStatus("", serving);
  if (administration_) {
    health->SetServingStatus(v1::AdminService::service_full_name(), serving);
    return;
  }
  for (const char* name : {v1::GenerationService::service_full_name(),
                           v1::SessionService::service_full_name(),
                           v1::ModelService::service_full_name()}) {
    health->SetServingStatus(name, serving);
  }
}

void GrpcServer::Shutdown(absl::Duration timeout) {
  gate_->Stop();
  server_->Shutdown(InTime(timeout));
  server_->Wait();
}

}  // namespace txl
