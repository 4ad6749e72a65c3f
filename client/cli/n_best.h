#pragma once

// txl score --n-best: lists of alternatives in, one JSON object a line, and
// their scores out in the same order.

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/client.h"
#include "txl/v1/generation_service.pb.h"
#include "txl/v1/token.pb.h"

namespace txl::cli {

// {"alternatives": ["...", ...]} with "context" (a text) and "session" (an id)
// where there are any. Errors: InvalidArgument, also for other keys.
absl::StatusOr<v1::ScoreAlternativesRequest> ParseNBest(absl::string_view line);

// {"sum_logprob": [...], "token_count": [...], "best": INDEX} with a line end;
// the best is the first one of the highest sum.
std::string FormatNBest(const v1::ScoreAlternativesResponse& response);

// Scores every line of `text` that is not empty and writes the answers out as
// they come. `unknown`: as in each request. Errors name the line, counted from
// 1; those before it are written.
absl::Status ScoreNBest(Client& client, absl::string_view text,
                        v1::UnknownText unknown, const CallOptions& options);

}  // namespace txl::cli
