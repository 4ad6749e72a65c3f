#pragma once

// A whole server without weights: real gRPC on a loopback port, real sessions
// and scheduler, a fake device. And what tests do with it as clients.

#include <google/protobuf/text_format.h>
#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/text/byte_vocabulary.h"
#include "server/base/clock.h"
#include "server/base/log.h"
#include "server/rpc/grpc_server.h"
#include "tests/fakes/fake_step_runner.h"
#include "txl/v1/generation_service.grpc.pb.h"
#include "txl/v1/model_service.grpc.pb.h"
#include "txl/v1/session_service.grpc.pb.h"

namespace txl {

struct RpcWorldOptions {
  bool tokenizer = true;
  bool ready = true;
  GenerationDefaults generation;
  FakeStepRunnerOptions runner;  // vocab_size is the byte vocabulary's
  SchedulerOptions scheduler;
  RequestLimits limits;
  CallLimits calls;
  WorkPoolOptions work;
  SessionStoreOptions sessions;
  // Of the file of --tenants; absent: there is none.
  std::optional<std::map<std::string, TenantLimits>> tenants;
  const KeyRing* keys = nullptr;  // null: nobody needs one; outlives the world
  LineFile* audit = nullptr;      // null: none; outlives the world
  LineFile* spans = nullptr;      // likewise
  double trace_rate = 1;
  std::string export_key;
  std::string fingerprint = "f00d";
  ByteBudget* requests = ByteBudget::Unlimited();  // outlive the world
  ByteBudget* streams = ByteBudget::Unlimited();
  Clock* clock = Clock::Real();  // of calls; outlives the world
};

// A finished Generate call.
struct Stream {
  std::vector<v1::GenerateResponse> events;
  std::vector<v1::Token> tokens;  // of single and batched events
  std::string session_metadata;   // x-txl-session of the initial metadata
  std::string traceparent;        // likewise
  grpc::Status status;

  std::vector<int32_t> ids() const;
  std::string text() const;
  const v1::Started& started() const { return events.front().started(); }
  const v1::Finished& finished() const { return events.back().finished(); }
};

class RpcWorld {
 public:
  explicit RpcWorld(RpcWorldOptions options = {});
  ~RpcWorld();

  // A request in protobuf's text format; `metadata` is sent with it.
  using Metadata = std::multimap<std::string, std::string>;
  Stream Generate(const std::string& request, const Metadata& metadata = {});
  // A session with these tokens fed.
  void MakeSession(const std::string& id, const std::vector<int32_t>& ids = {});
  v1::Session GetSession(const std::string& id);
  // Waits for a line of the log that holds `text`; false after ten seconds.
  bool Logged(const std::string& text) const;
  // A channel of its own: another connection.
  std::shared_ptr<grpc::Channel> NewChannel();

  // Blocks gRPC's writer of streams until the returned function is called.
  std::function<void()> HoldWrites();

  LogCapture log;
  ByteVocabulary vocabulary;
  FakeStepRunner runner;
  Metrics metrics;
  Lifecycle lifecycle;
  std::unique_ptr<Tenants> tenants;  // null: there are none
  std::unique_ptr<SessionStore> store;
  std::unique_ptr<Scheduler> scheduler;
  std::unique_ptr<TaskThread> callbacks;
  std::unique_ptr<WorkPool> work;
  ModelFacts facts;
  ServiceContext context;
  std::unique_ptr<GrpcServer> server;
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<v1::GenerationService::Stub> generation;
  std::unique_ptr<v1::SessionService::Stub> sessions;
  std::unique_ptr<v1::ModelService::Stub> model;
};

// "ABORTED SESSION_BUSY", "INVALID_ARGUMENT FIELD_INVALID prompt", "OK". The
// status must carry google.rpc details unless gRPC itself made it.
std::string Outcome(const grpc::Status& status);
// ErrorInfo's metadata.
std::string ErrorMetadata(const grpc::Status& status, const std::string& key);
bool HasRetryInfo(const grpc::Status& status);

// Waits for what another thread does; false after ten seconds.
bool Eventually(const std::function<bool()>& condition);

// A call of any method with raw bytes, which may be no message.
struct RawReply {
  std::vector<std::string> messages;
  std::string traceparent;  // of the initial metadata
  grpc::Status status;
};
RawReply CallRaw(const std::shared_ptr<grpc::Channel>& channel,
                 const std::string& method, const std::string& bytes,
                 bool compressed = false,
                 const std::function<void()>& on_message = nullptr,
                 const RpcWorld::Metadata& metadata = {});

template <typename Message>
Message Proto(const std::string& text) {
  Message message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &message))
      << text;
  return message;
}

}  // namespace txl
