#pragma once

// A turn whose prompt has been scored before it runs.

#include "absl/status/statusor.h"
#include "txl/v1/generation_service.pb.h"

namespace txl {

// The turn that begins where the session stood for the scores, so that they are
// those of its own context: where it stands elsewhere by then, the turn is
// refused. The same turn where it has no session. Errors: POSITION_MISMATCH
// where the scores are not of the position that the turn expects.
absl::StatusOr<v1::GenerateRequest> TurnBehind(const v1::ScoreResponse& scores,
                                               v1::GenerateRequest turn);

}  // namespace txl
