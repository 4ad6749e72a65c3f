#include "tests/server/rpc/rpc_world.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace txl {
namespace {

FakeStepRunnerOptions WithByteVocabulary(FakeStepRunnerOptions options) {
  options.vocab_size = ByteVocabulary::kSize;
  return options;
}

template <typename Detail>
bool FindDetail(const grpc::Status& status, Detail* detail) {
  google::rpc::Status rich;
  if (!rich.ParseFromString(status.error_details())) return false;
  for (const auto& any : rich.details()) {
    if (any.Is<Detail>() && any.UnpackTo(detail)) return true;
  }
  return false;
}

}  // namespace

std::vector<int32_t> Stream::ids() const {
  std::vector<int32_t> ids;
  for (const v1::Token& token : tokens) {
    ids.push_back(static_cast<int32_t>(token.token_id()));
  }
  return ids;
}

std::string Stream::text() const {
  std::string text;
  for (const v1::Token& token : tokens) text += token.text();
  return text + finished().text();
}

RpcWorld::RpcWorld(RpcWorldOptions options)
    : runner(WithByteVocabulary(options.runner)) {
  SetLogLevel(LogSeverity::kDebug);
  SessionStoreOptions store_options = options.sessions;
  store_options.bytes_per_slot = runner.info().bytes_per_slot;
  if (options.tokenizer) store_options.vocabulary = &vocabulary;
  if (options.tenants.has_value()) {
    tenants = std::make_unique<Tenants>(
        [this](const std::string& name) { return metrics.AddTenant(name); });
    tenants->SetLimits(*options.tenants, Clock::Real()->Monotonic());
    store_options.limits_of = LimitsOfTenants(tenants.get(), Clock::Real());
  }
  store = std::make_unique<SessionStore>(store_options, Clock::Real());
  scheduler = std::make_unique<Scheduler>(options.scheduler, &runner,
                                          store.get(), &metrics, Clock::Real());
  callbacks = std::make_unique<TaskThread>();
  work = std::make_unique<WorkPool>(options.work);
  facts.name = "fake";
  facts.fingerprint = options.fingerprint;
  facts.config.vocab_size = ByteVocabulary::kSize;
  facts.generation = options.generation;
  if (options.tokenizer) facts.vocabulary = &vocabulary;
  facts.kinds = options.runner.kinds;
  TurnContext& turns = context.turns;
  turns.model = {&facts, options.limits, options.scheduler, store_options,
                 SelfTestReport()};
  turns.sessions = SessionAccess(store.get(), scheduler.get(), callbacks.get());
  turns.scheduler = scheduler.get();
  context.metrics = &metrics;
  context.clock = options.clock;
  turns.lifecycle = &lifecycle;
  turns.callbacks = callbacks.get();
  turns.work = work.get();
  turns.state_identity = runner.info().identity;
  context.tenants = tenants.get();
  context.keys = options.keys;
  context.audit = options.audit;
  context.spans = options.spans;
  context.trace_rate = options.trace_rate;
  turns.export_key = options.export_key;
  context.memory.requests = options.requests;
  context.memory.streams = options.streams;
  context.call_limits = options.calls;
  auto started = GrpcServer::Start("127.0.0.1:0", &context);
  EXPECT_TRUE(started.ok()) << started.status();
  server = *std::move(started);
  if (options.ready) {
    lifecycle.SetReady();
    server->SetServing(true);
  }
  channel = NewChannel();
  generation = v1::GenerationService::NewStub(channel);
  sessions = v1::SessionService::NewStub(channel);
  model = v1::ModelService::NewStub(channel);
}

RpcWorld::~RpcWorld() {
  runner.Release();
  server->Shutdown(absl::Milliseconds(200));
  server.reset();
  scheduler.reset();
  callbacks.reset();
  work.reset();
  EXPECT_TRUE(runner.violations().empty());
}

std::shared_ptr<grpc::Channel> RpcWorld::NewChannel() {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  // Windows that do not grow: what is not read stops the server soon.
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 65535);
  return grpc::CreateCustomChannel(
      server->address(), grpc::InsecureChannelCredentials(), arguments);
}

Stream RpcWorld::Generate(const std::string& request,
                          const Metadata& metadata) {
  grpc::ClientContext client;
  for (const auto& [key, value] : metadata) client.AddMetadata(key, value);
  auto reader =
      generation->Generate(&client, Proto<v1::GenerateRequest>(request));
  Stream stream;
  v1::GenerateResponse event;
  while (reader->Read(&event)) {
    if (event.has_token()) stream.tokens.push_back(event.token());
    for (const auto& token : event.tokens().tokens()) {
      stream.tokens.push_back(token);
    }
    stream.events.push_back(event);
  }
  stream.status = reader->Finish();
  const auto& initial = client.GetServerInitialMetadata();
  if (const auto it = initial.find("x-txl-session"); it != initial.end()) {
    stream.session_metadata = std::string(it->second.data(), it->second.size());
  }
  if (const auto it = initial.find("traceparent"); it != initial.end()) {
    stream.traceparent = std::string(it->second.data(), it->second.size());
  }
  return stream;
}

bool RpcWorld::Logged(const std::string& text) const {
  return Eventually([&] {
    for (const std::string& line : log.lines()) {
      if (absl::StrContains(line, text)) return true;
    }
    return false;
  });
}

void RpcWorld::MakeSession(const std::string& id,
                           const std::vector<int32_t>& ids) {
  grpc::ClientContext create;
  v1::CreateSessionRequest request;
  request.set_session_id(id);
  v1::CreateSessionResponse created;
  EXPECT_EQ(Outcome(sessions->CreateSession(&create, request, &created)), "OK");
  if (ids.empty()) return;
  v1::AppendTokensRequest append;
  append.set_session_id(id);
  append.mutable_tokens()->mutable_ids()->Add(ids.begin(), ids.end());
  grpc::ClientContext feed;
  v1::AppendTokensResponse fed;
  EXPECT_EQ(Outcome(sessions->AppendTokens(&feed, append, &fed)), "OK");
}

v1::Session RpcWorld::GetSession(const std::string& id) {
  grpc::ClientContext client;
  v1::GetSessionRequest request;
  request.set_session_id(id);
  v1::GetSessionResponse response;
  EXPECT_EQ(Outcome(sessions->GetSession(&client, request, &response)), "OK");
  return response.session();
}

std::function<void()> RpcWorld::HoldWrites() {
  auto gate = std::make_shared<absl::Notification>();
  callbacks->Run([gate] { gate->WaitForNotification(); });
  return [gate] { gate->Notify(); };
}

std::string Outcome(const grpc::Status& status) {
  const auto code = static_cast<absl::StatusCode>(status.error_code());
  std::string text = absl::StatusCodeToString(code);
  google::rpc::ErrorInfo info;
  if (!FindDetail(status, &info)) return text;
  EXPECT_EQ(info.domain(), "txl.v1");
  text += " " + info.reason();
  google::rpc::BadRequest bad;
  if (FindDetail(status, &bad)) text += " " + bad.field_violations(0).field();
  return text;
}

std::string ErrorMetadata(const grpc::Status& status, const std::string& key) {
  google::rpc::ErrorInfo info;
  if (!FindDetail(status, &info)) return "no ErrorInfo";
  const auto it = info.metadata().find(key);
  return it == info.metadata().end() ? "absent" : it->second;
}

bool HasRetryInfo(const grpc::Status& status) {
  google::rpc::RetryInfo retry;
  return FindDetail(status, &retry);
}

bool Eventually(const std::function<bool()>& condition) {
  const absl::Time end = absl::Now() + absl::Seconds(10);
  while (!condition()) {
    if (absl::Now() > end) return false;
    absl::SleepFor(absl::Milliseconds(1));
  }
  return true;
}

RawReply CallRaw(const std::shared_ptr<grpc::Channel>& channel,
                 const std::string& method, const std::string& bytes,
                 bool compressed, const std::function<void()>& on_message,
                 const RpcWorld::Metadata& metadata) {
  grpc::GenericStub stub(channel);
  grpc::ClientContext client;
  if (compressed) client.set_compression_algorithm(GRPC_COMPRESS_GZIP);
  for (const auto& [name, value] : metadata) client.AddMetadata(name, value);
  grpc::CompletionQueue queue;
  const auto call = stub.PrepareCall(&client, method, &queue);
  const auto next = [&queue] {
    void* tag = nullptr;
    bool ok = false;
    return queue.Next(&tag, &ok) && ok;
  };
  call->StartCall(nullptr);
  next();
  grpc::Slice slice(bytes);
  call->WriteLast(grpc::ByteBuffer(&slice, 1), grpc::WriteOptions(), nullptr);
  next();
  RawReply reply;
  while (true) {
    grpc::ByteBuffer message;
    call->Read(&message, nullptr);
    if (!next()) break;
    std::vector<grpc::Slice> slices;
    (void)message.Dump(&slices);
    std::string text;
    for (const grpc::Slice& one : slices) {
      text.append(reinterpret_cast<const char*>(one.begin()), one.size());
    }
    reply.messages.push_back(text);
    if (on_message) on_message();
  }
  call->Finish(&reply.status, nullptr);
  next();
  const auto& initial = client.GetServerInitialMetadata();
  if (const auto it = initial.find("traceparent"); it != initial.end()) {
    reply.traceparent = std::string(it->second.data(), it->second.size());
  }
  return reply;
}

}  // namespace txl
