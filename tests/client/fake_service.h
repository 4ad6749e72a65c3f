#pragma once

// The public API served from canned answers: what a client meets, without a
// model. Its vocabulary is bytes: id = byte value.

#include <grpcpp/server.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "txl/v1/generation_service.grpc.pb.h"
#include "txl/v1/model_service.grpc.pb.h"
#include "txl/v1/session_service.grpc.pb.h"

namespace txl::testing {

// A status with google.rpc details as api.md wants them.
grpc::Status FakeError(grpc::StatusCode code, const std::string& message,
                       const std::string& reason, const std::string& field = "",
                       std::optional<int64_t> retry_milliseconds = {});

v1::GenerateResponse StartedEvent(int64_t position, int64_t prompt_tokens);
v1::GenerateResponse TokenEvent(int32_t index, char character);
v1::GenerateResponse FinishedEvent(int64_t position, int64_t prompt_tokens,
                                   int64_t generated_tokens);
// A whole turn that generates `text`, a token for each byte, after a prompt.
std::vector<v1::GenerateResponse> TurnEvents(int64_t prompt_tokens,
                                             const std::string& text);

// One call as the service saw it.
struct SeenCall {
  std::string method;
  std::optional<std::string> session_header;  // x-txl-session
  v1::UnknownText unknown = v1::UNKNOWN_TEXT_UNSPECIFIED;
};

// Set its fields before the calls that they are for.
class FakeService final : public v1::GenerationService::Service,
                          public v1::SessionService::Service,
                          public v1::ModelService::Service {
 public:
  using Writer = grpc::ServerWriter<v1::GenerateResponse>;

  // What Generate does. Default: the turn "Hello" after the prompt.
  std::function<grpc::Status(grpc::ServerContext*, const v1::GenerateRequest&,
                             Writer*)>
      on_generate;
  // What AppendTokens does instead of feeding, if anything.
  std::function<grpc::Status(grpc::ServerContext*)> on_append;
  // Fills in more of GetServerStatus's answer.
  std::function<void(v1::GetServerStatusResponse*)> on_status;
  // What every other method answers when it is an error.
  grpc::Status unary_status;
  // Methods that the caller's role may not call.
  std::set<std::string> denied;
  v1::ServerState state = v1::SERVER_STATE_READY;
  int64_t max_prompt_tokens = 8192;
  int64_t max_prompt_bytes = 256 << 10;
  // What Tokenize leaves out of a MIDI file, whose tokens are its bytes.
  std::map<std::string, int64_t> left_out;
  // What each GetServerStatus reports more than the one before.
  int64_t turns_ok_step = 0;
  int64_t tokens_step = 0;
  // Bytes of each message of the imports so far.
  std::vector<size_t> import_chunk_sizes;

  // Log-probability of a byte in this service's model: -(byte % 8) / 8.
  static float Logprob(uint32_t id) {
    return -static_cast<float>(id % 8) / 8.0f;
  }

  std::vector<SeenCall> calls() const;
  std::vector<v1::GenerateRequest> generate_requests() const;
  // Tokens of each session that was made and not deleted.
  std::map<std::string, std::vector<uint32_t>> sessions() const;
  std::vector<int64_t> append_sizes() const;

 private:
  grpc::Status Generate(grpc::ServerContext* context,
                        const v1::GenerateRequest* request,
                        Writer* writer) override;
  grpc::Status Score(grpc::ServerContext* context,
                     const v1::ScoreRequest* request,
                     v1::ScoreResponse* response) override;
  grpc::Status ScoreAlternatives(
      grpc::ServerContext* context, const v1::ScoreAlternativesRequest* request,
      v1::ScoreAlternativesResponse* response) override;
  grpc::Status CreateSession(grpc::ServerContext* context,
                             const v1::CreateSessionRequest* request,
                             v1::CreateSessionResponse* response) override;
  grpc::Status GetSession(grpc::ServerContext* context,
                          const v1::GetSessionRequest* request,
                          v1::GetSessionResponse* response) override;
  // One session a page.
  grpc::Status ListSessions(grpc::ServerContext* context,
                            const v1::ListSessionsRequest* request,
                            v1::ListSessionsResponse* response) override;
  grpc::Status DeleteSession(grpc::ServerContext* context,
                             const v1::DeleteSessionRequest* request,
                             v1::DeleteSessionResponse* response) override;
  grpc::Status AppendTokens(grpc::ServerContext* context,
                            const v1::AppendTokensRequest* request,
                            v1::AppendTokensResponse* response) override;
  grpc::Status ForkSession(grpc::ServerContext* context,
                           const v1::ForkSessionRequest* request,
                           v1::ForkSessionResponse* response) override;
  grpc::Status RewindSession(grpc::ServerContext* context,
                             const v1::RewindSessionRequest* request,
                             v1::RewindSessionResponse* response) override;
  grpc::Status ExportSession(
      grpc::ServerContext* context, const v1::ExportSessionRequest* request,
      grpc::ServerWriter<v1::ExportSessionResponse>* writer) override;
  grpc::Status ImportSession(
      grpc::ServerContext* context,
      grpc::ServerReader<v1::ImportSessionRequest>* reader,
      v1::ImportSessionResponse* response) override;
  // Adds a turn to its session, if it has one: OK also where the same turn was
  // added before.
  grpc::Status Feed(const v1::GenerateRequest& request, int64_t prompt);
  // A new session of that name, or of one that is made up.
  grpc::Status Add(const std::string& id, std::vector<uint32_t> tokens,
                   v1::Session* session) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  grpc::Status GetModel(grpc::ServerContext* context,
                        const v1::GetModelRequest* request,
                        v1::GetModelResponse* response) override;
  grpc::Status GetServerStatus(grpc::ServerContext* context,
                               const v1::GetServerStatusRequest* request,
                               v1::GetServerStatusResponse* response) override;
  grpc::Status Tokenize(grpc::ServerContext* context,
                        const v1::TokenizeRequest* request,
                        v1::TokenizeResponse* response) override;
  grpc::Status Detokenize(grpc::ServerContext* context,
                          const v1::DetokenizeRequest* request,
                          v1::DetokenizeResponse* response) override;

  grpc::Status See(const std::string& method, grpc::ServerContext* context,
                   v1::UnknownText unknown = v1::UNKNOWN_TEXT_UNSPECIFIED);

  mutable absl::Mutex mutex_;
  std::vector<SeenCall> calls_ ABSL_GUARDED_BY(mutex_);
  std::vector<v1::GenerateRequest> generate_requests_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::vector<uint32_t>> sessions_
      ABSL_GUARDED_BY(mutex_);
  std::vector<int64_t> append_sizes_ ABSL_GUARDED_BY(mutex_);
  // Named turns as they were sent, by their names.
  std::map<std::string, std::string> turns_ ABSL_GUARDED_BY(mutex_);
  int64_t statuses_ ABSL_GUARDED_BY(mutex_) = 0;
};

// A FakeService that listens.
class FakeServer {
 public:
  // `address`: where it listens, "127.0.0.1:0" at any free port.
  explicit FakeServer(const std::string& address = "127.0.0.1:0");
  ~FakeServer();

  FakeService* operator->() { return &service_; }
  // What its health service says; at first, that it serves.
  void SetServing(bool serving);
  const std::string& address() const { return address_; }

 private:
  FakeService service_;
  std::unique_ptr<grpc::Server> server_;
  std::string address_;
};

// Blocks until the client has left the call.
grpc::Status WaitUntilCancelled(grpc::ServerContext* context);

}  // namespace txl::testing
