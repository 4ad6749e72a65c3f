#pragma once

// Calls that survive what happens between client and server: a broken turn is
// sent again under its request_id, and goes on where it stopped.

#include <optional>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/client.h"
#include "txl/v1/generation_service.pb.h"
#include "txl/v1/session_service.pb.h"

namespace txl {

// When to send a call again, and when not.

struct RetryPolicy {
  // Failures in a row, without anything new in between, after which the last
  // one is returned; >= 1. 1: nothing is retried.
  int max_failures = 8;
  // The first wait; each further one is twice as long, up to max_delay.
  absl::Duration first_delay = absl::Milliseconds(100);
  absl::Duration max_delay = absl::Seconds(5);
};

// True for errors that another attempt may not meet: UNAVAILABLE, whatever the
// server gave a RetryInfo with, and calls that broke on the way (INTERNAL,
// UNKNOWN, CANCELLED without the server's reason), but for a port of HTTP/1 and
// an HTTP status of a proxy that says the request is wrong. A call that the
// caller cancelled itself looks like one that broke.
bool IsRetryable(const absl::Status& status);

// How long to wait after the `failures`-th failure in a row (>= 1); nullopt:
// give up. `jitter` in [0, 1) shortens the wait by up to a half, so that many
// clients do not come back at once; a delay that the server asked for is kept.
std::optional<absl::Duration> RetryDelay(const RetryPolicy& policy,
                                         int failures,
                                         const absl::Status& status,
                                         double jitter);

// Thread-safe, like the client. `client` outlives it.
class RetryingClient {
 public:
  RetryingClient(Client* client, const RetryPolicy& policy)
      : client_(client), policy_(policy) {}

  // Client::Generate, but `on_response` gets the turn once, whatever number
  // of attempts it takes: Started, gap-free tokens, one Finished. Where the
  // server restarted the turn before any token, Started comes again: the last
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
