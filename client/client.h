#pragma once

// The public API from C++: one method per RPC, absl::Status for errors.
//
// Streaming one turn (client/example/stream_text.cc is a whole program):
//
//   absl::StatusOr<std::unique_ptr<Client>> client = Client::Create(server);
//   if (!client.ok()) return client.status();
//   v1::GenerateRequest request;
//   request.set_text("ROMEO:");
//   CallOptions options;
//   options.timeout = absl::Seconds(30);
//   return (*client)->Generate(
//       request, options, [](const v1::GenerateResponse& response) {
//         std::cout << response.token().text() << response.finished().text();
//       });

#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "client/canceller.h"
#include "client/channel.h"
#include "txl/v1/generation_service.pb.h"
#include "txl/v1/model_service.pb.h"
#include "txl/v1/session_service.pb.h"

namespace txl {

struct CallOptions {
  // The whole call may take so long; the server ends it then with
  // DEADLINE_EXCEEDED.
  absl::Duration timeout = absl::InfiniteDuration();
  Canceller* canceller = nullptr;  // may be null
};

// Thread-safe: any number of calls at a time share one connection. Calls block
// their thread. Every call that names a session also sends its id as the
// metadata x-txl-session, by which proxies route.
//
// Errors are the server's, with the details of client/call_error.h; UNAVAILABLE
// without a reason when there is no server; InvalidArgument naming the field,
// before anything is sent, for a text that is not UTF-8. Nothing is retried:
// see client/retrying_client.h.
class Client {
 public:
  // Errors: those of OpenChannel. No connection is made yet.
  static absl::StatusOr<std::unique_ptr<Client>> Create(
      const ChannelOptions& options);
  ~Client();

  // Connects now instead of at the first call, which fails at once where its
  // attempt to connect does; this one tries again until `timeout` has passed.
  // UNAVAILABLE when it has.
  absl::Status Connect(absl::Duration timeout);

  // One turn. Every response is handed over on the calling thread as it comes:
  // Started, tokens, Finished. While `on_response` runs nothing is read, so a
  // slow one slows the turn down. A stream that ends OK without Finished is
  // INTERNAL.
  absl::Status Generate(
      const v1::GenerateRequest& request, const CallOptions& options,
      absl::FunctionRef<void(const v1::GenerateResponse&)> on_response);

  absl::StatusOr<v1::ScoreResponse> Score(const v1::ScoreRequest& request,
                                          const CallOptions& options = {});
  absl::StatusOr<v1::ScoreAlternativesResponse> ScoreAlternatives(
      const v1::ScoreAlternativesRequest& request,
      const CallOptions& options = {});

  absl::StatusOr<v1::CreateSessionResponse> CreateSession(
      const v1::CreateSessionRequest& request, const CallOptions& options = {});
  absl::StatusOr<v1::GetSessionResponse> GetSession(
      const v1::GetSessionRequest& request, const CallOptions& options = {});
  absl::StatusOr<v1::ListSessionsResponse> ListSessions(
      const v1::ListSessionsRequest& request, const CallOptions& options = {});
  absl::StatusOr<v1::DeleteSessionResponse> DeleteSession(
      const v1::DeleteSessionRequest& request, const CallOptions& options = {});
  absl::StatusOr<v1::AppendTokensResponse> AppendTokens(
      const v1::AppendTokensRequest& request, const CallOptions& options = {});
  absl::StatusOr<v1::ForkSessionResponse> ForkSession(
      const v1::ForkSessionRequest& request, const CallOptions& options = {});
  absl::StatusOr<v1::RewindSessionResponse> RewindSession(
      const v1::RewindSessionRequest& request, const CallOptions& options = {});

  // The session's file. Its bytes are handed over on the calling thread as they
  // come; they are the whole file only when OK is returned. An error of
  // `on_chunk` ends the call and is returned.
  absl::Status ExportSession(
      const v1::ExportSessionRequest& request, const CallOptions& options,
      absl::FunctionRef<absl::Status(absl::string_view)> on_chunk);
  // `request` without a chunk. `source` is asked for the file's next bytes, any
  // number; empty: that was all. An error of it ends the call, which makes no
  // session then, and is returned.
  absl::StatusOr<v1::ImportSessionResponse> ImportSession(
      const v1::ImportSessionRequest& request, const CallOptions& options,
      absl::FunctionRef<absl::StatusOr<std::string>()> source);

  absl::StatusOr<v1::GetModelResponse> GetModel(
      const CallOptions& options = {});
  absl::StatusOr<v1::GetServerStatusResponse> GetServerStatus(
      const CallOptions& options = {});
  absl::StatusOr<v1::TokenizeResponse> Tokenize(
      const v1::TokenizeRequest& request, const CallOptions& options = {});
  absl::StatusOr<v1::DetokenizeResponse> Detokenize(
      const v1::DetokenizeRequest& request, const CallOptions& options = {});

 private:
  struct Stubs;
  explicit Client(std::unique_ptr<Stubs> stubs);
  std::unique_ptr<Stubs> stubs_;
};

}  // namespace txl
