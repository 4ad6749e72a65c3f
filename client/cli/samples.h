#pragma once

// txl generate --n: several samples behind one prompt, which is fed once.

#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "client/client.h"
#include "txl/v1/generation_service.pb.h"

namespace txl::cli {

// One response as a line of JSON that says of which sample it is.
std::string SampleJson(int64_t sample, const v1::GenerateResponse& response);

// Runs `count` turns as `request` says, one after the other, each in a fork of
// the session behind the prompt; a seed in the request is that of sample 0, and
// the next ones have the next. `turn` runs one of them. The session of the
// request stays as it is; sessions made here are deleted, whatever happens.
absl::Status GenerateSamples(
    Client& client, const v1::GenerateRequest& request, int64_t count,
    const CallOptions& options,
    absl::FunctionRef<absl::Status(int64_t, const v1::GenerateRequest&)> turn);

}  // namespace txl::cli
