#pragma once

// MIDI files as prompts: the server knows which events its model has.

#include <string>

#include "absl/status/statusor.h"
#include "client/client.h"
#include "txl/v1/model_service.pb.h"

namespace txl::cli {

// The tokens of a MIDI file, "-": standard input. Says on standard error what
// they leave out. Errors: NotFound, naming a file that
// cannot be read; InvalidArgument, naming one that is larger than the server
// takes or has no tokens; the server's.
absl::StatusOr<v1::TokenizeResponse> TokenizeMidi(Client& client,
                                                  const std::string& path,
                                                  const CallOptions& options);

}  // namespace txl::cli
