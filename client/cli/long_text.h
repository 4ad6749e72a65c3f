#pragma once

// Texts and prompts that are longer than a server takes in one call.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/client.h"
#include "client/retrying_client.h"
#include "txl/v1/token.pb.h"

namespace txl::cli {

// The beginning of `text`, at most `max_bytes` and as long as possible. It ends
// after a line end, where tokenising the pieces gives the tokens of the whole
// whatever the vocabulary; in a line longer than that before a space, else at a
// character's border.
// REQUIRES: max_bytes >= 4 (a character).
absl::string_view FirstPiece(absl::string_view text, size_t max_bytes);

// Characters (code points) of valid UTF-8.
int64_t CountCharacters(absl::string_view text);

// The token ids of a text of any length, by as many calls as the server's
// limits of bytes and of tokens make necessary. `unknown`: as in each request.
// Errors: the server's.
absl::StatusOr<std::vector<uint32_t>> TokenizeAll(Client& client,
                                                  absl::string_view text,
                                                  v1::UnknownText unknown,
                                                  const CallOptions& options);

// The ids of a request's prompt, a text's by TokenizeAll.
absl::StatusOr<std::vector<uint32_t>> PromptIds(
    Client& client, const v1::GenerateRequest& request,
    const CallOptions& options);

// RetryingClient::Generate for prompts also over the server's limits: all of it
// but the last part is fed by AppendTokens first, to a session of this
// function's own where the request names none. What is wrong with the request
// is found before anything is fed. The request's position is expected. With a
// session and a request_id each part has a name of its own, so that a request
// that is sent again goes on where it stopped, and nothing is fed twice.
// Errors: the server's; InvalidArgument where such a prompt takes more than 17
// calls, or its request_id has more than 60 characters.
absl::Status GenerateAfterPrompt(
    Client& client, const RetryPolicy& policy,
    const v1::GenerateRequest& request, const CallOptions& options,
    absl::FunctionRef<void(const v1::GenerateResponse&)> on_response);

}  // namespace txl::cli
