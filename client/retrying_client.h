#pragma once

// Calls that survive what happens between client and server: a broken turn is
// sent again under its request_id, and goes on where it stopped.

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/client.h"
#include "client/retry_policy.h"
#include "txl/v1/generation_service.pb.h"
#include "txl/v1/session_service.pb.h"

namespace txl {

// Thread-safe, like the client. `client` outlives it.
class RetryingClient {
 public:
  RetryingClient(Client* client, const RetryPolicy& policy)
      : client_(client), policy_(policy) {}

  // Client::Generate, but `on_response` gets the turn once, whatever number
  // of attempts it takes: Started, gap-free tokens, one Finished. Where the
  // server began the turn anew before any token, Started comes again: the last
  // one tells position and seed. A request without request_id gets a random
  // one. Attempts after a Started carry what was received, so that a turn goes
  // on also without a session, or on a server that has lost its tokens; a
  // request that carries it itself goes on from there. An end by SERVER_DRAIN
  // is handed on where no server goes on with the turn. The timeout is that of
  // all attempts together. Where others use the session too, set
  // expected_position: else a retry after their turn is a new turn. Errors: the
  // last attempt's; DataLoss where the server did not continue the same turn.
  absl::Status Generate(
      v1::GenerateRequest request, const CallOptions& options,
      absl::FunctionRef<void(const v1::GenerateResponse&)> on_response);

  // Client::AppendTokens, but nothing is fed twice.
  absl::StatusOr<v1::AppendTokensResponse> AppendTokens(
      v1::AppendTokensRequest request, const CallOptions& options = {});

 private:
  Client* const client_;
  const RetryPolicy policy_;
};

}  // namespace txl
