#include "client/cli/long_text.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "absl/strings/str_cat.h"
#include "client/call_error.h"
#include "client/retrying_client.h"

namespace txl::cli {
namespace {

constexpr size_t kLeastBytes = 4;  // a character
// A larger message may be more than gRPC lets a server read.
constexpr size_t kOneMessage = 64 << 10;

bool IsContinuation(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0) == 0x80;
}

bool IsOverLimit(const absl::Status& status) {
  return GetCallError(status).reason == "OVER_LIMIT";
}

// Whether it is the prompt that is over a limit: alone the fields of a call
// that is too large have such names.
bool IsPromptOverLimit(const absl::Status& status) {
  const std::vector<std::string> fields = GetCallError(status).fields;
  return IsOverLimit(status) &&
         std::any_of(fields.begin(), fields.end(), [](const std::string& f) {
           return f == "text" || f == "tokens" || f == "tokens.ids" ||
                  f == "prompt";
         });
}

// Whether the session has the whole turn already. The server checks the request
// without running it, because it expects a position that no session reaches. So
// a mistake in another field is an error before anything is fed. `named`: the
// request keeps its id. If the session knows a turn of that id, the server
// refuses the field request_id.
absl::StatusOr<bool> IsKnownTurn(Client& client, v1::GenerateRequest request,
                                 bool named, const CallOptions& options) {
  request.mutable_tokens()->Clear();
  request.mutable_tokens()->add_ids(0);
  request.set_expected_position(std::numeric_limits<int64_t>::max());
  if (!named) request.clear_request_id();
  const absl::Status status =
      client.Generate(request, options, [](const v1::GenerateResponse&) {});
  const CallError error = GetCallError(status);
  if (named && error.fields == std::vector<std::string>{"request_id"}) {
    return true;
  }
  if (absl::IsInvalidArgument(status) || error.reason == "REPLAY_EVICTED") {
    return status;
  }
  return false;
}

absl::Status CheckIds(const std::vector<uint32_t>& ids, int64_t vocabulary) {
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < vocabulary) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "tokens.ids[", i, "]: must be in [0, ", vocabulary, "), is ", ids[i]));
  }
  return absl::OkStatus();
}

// A session remembers the names of 16 turns before the last one
// (GenerateRequest.request_id).
constexpr size_t kMostNamedParts = 16;
constexpr size_t kMostNameBytes = 60;  // of 64, with "_p15" behind it

absl::Status CheckName(const std::string& name, size_t parts) {
  if (parts > kMostNamedParts) {
    return absl::InvalidArgumentError(
        absl::StrCat("request_id: the prompt takes ", parts + 1,
                     " calls; under a name it can take ", kMostNamedParts + 1,
                     ": append its beginning first"));
  }
  if (name.size() > kMostNameBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("request_id: must have at most ", kMostNameBytes,
                     " characters for a prompt that takes several calls"));
  }
  return absl::OkStatus();
}

// A prompt in parts, of which all but the last one are appended.
struct Parts {
  std::vector<uint32_t> ids;
  size_t most = 1;  // ids of a part
  // Each part has a name made of the request's: sent again, it is not fed
  // again.
  bool named = false;

  size_t before_last() const {
    return ids.empty() ? 0 : (ids.size() - 1) / most;
  }
};

// Feeds all but the last part.
absl::Status FeedAllButTheLast(RetryingClient& client, const Parts& parts,
                               const CallOptions& options,
                               v1::GenerateRequest* request) {
  std::optional<int64_t> position;
  if (request->has_expected_position()) {
    position = request->expected_position();
  }
  for (size_t i = 0; i < parts.before_last(); ++i) {
    v1::AppendTokensRequest part;
    part.set_session_id(request->session_id());
    const auto begin = parts.ids.begin() + i * parts.most;
    part.mutable_tokens()->mutable_ids()->Assign(begin, begin + parts.most);
    if (position.has_value()) part.set_expected_position(*position);
    if (parts.named) {
      part.set_request_id(absl::StrCat(request->request_id(), "_p", i));
    }
    const auto response = client.AppendTokens(part, options);
    const bool fed_before =
        parts.named &&
        GetCallError(response.status()).reason == "REPLAY_EVICTED";
    if (!response.ok() && !fed_before) return response.status();
    if (!parts.named) {
      position = response->position();
    } else if (position.has_value()) {
      // Every attempt expects the same position of a part.
      *position += static_cast<int64_t>(parts.most);
    }
  }
  if (!parts.named && position.has_value()) {
    request->set_expected_position(*position);
  }
  return absl::OkStatus();
}

absl::StatusOr<Parts> PartsOf(Client& client,
                              const v1::GenerateRequest& request, bool named,
                              const CallOptions& options) {
  const auto model = client.GetModel(options);
  if (!model.ok()) return model.status();
  auto ids = PromptIds(client, request, options);
  if (!ids.ok()) return ids.status();
  Parts parts;
  parts.ids = *std::move(ids);
  parts.most = static_cast<size_t>(
      std::max<int64_t>(1, model->limits().max_prompt_tokens()));
  parts.named = named;
  absl::Status status = CheckIds(parts.ids, model->vocabulary_size());
  if (named) {
    status.Update(CheckName(request.request_id(), parts.before_last()));
  }
  if (!status.ok()) return status;
  return parts;
}

absl::Status GenerateInParts(
    Client& client, const RetryPolicy& policy, v1::GenerateRequest request,
    const CallOptions& options, bool named,
    absl::FunctionRef<void(const v1::GenerateResponse&)> on_response) {
  const auto parts = PartsOf(client, request, named, options);
  if (!parts.ok()) return parts.status();
  const auto known = IsKnownTurn(client, request, named, options);
  if (!known.ok()) return known.status();
  RetryingClient retrying(&client, policy);
  if (!*known) {
    const absl::Status fed =
        FeedAllButTheLast(retrying, *parts, options, &request);
    if (!fed.ok()) return fed;
  }
  const size_t before = parts->before_last() * parts->most;
  if (named && request.has_expected_position()) {
    request.set_expected_position(request.expected_position() +
                                  static_cast<int64_t>(before));
  }
  request.mutable_tokens()->mutable_ids()->Assign(parts->ids.begin() + before,
                                                  parts->ids.end());
  return retrying.Generate(request, options, on_response);
}

}  // namespace

absl::string_view FirstPiece(absl::string_view text, size_t max_bytes) {
  if (text.size() <= max_bytes) return text;
  const size_t line_end = text.rfind('\n', max_bytes - 1);
  if (line_end != absl::string_view::npos) return text.substr(0, line_end + 1);
  const size_t space = text.rfind(' ', max_bytes);
  if (space != absl::string_view::npos && space > 0) {
    return text.substr(0, space);
  }
  size_t length = max_bytes;
  while (length > 1 && IsContinuation(text[length])) --length;
  return text.substr(0, length);
}

int64_t CountCharacters(absl::string_view text) {
  return std::count_if(text.begin(), text.end(),
                       [](char byte) { return !IsContinuation(byte); });
}

absl::StatusOr<std::vector<uint32_t>> TokenizeAll(Client& client,
                                                  absl::string_view text,
                                                  v1::UnknownText unknown,
                                                  const CallOptions& options) {
  const auto model = client.GetModel(options);
  if (!model.ok()) return model.status();
  size_t most =
      std::max<size_t>(kLeastBytes, model->limits().max_prompt_bytes());
  std::vector<uint32_t> ids;
  while (!text.empty()) {
    const absl::string_view piece = FirstPiece(text, most);
    v1::TokenizeRequest request;
    request.set_text(std::string(piece));
    request.set_unknown(unknown);
    const auto response = client.Tokenize(request, options);
    // How many tokens a text has nobody knows before.
    if (IsOverLimit(response.status()) && piece.size() > kLeastBytes) {
      most = std::max(kLeastBytes, piece.size() / 2);
      continue;
    }
    if (!response.ok()) return response.status();
    ids.insert(ids.end(), response->token_ids().begin(),
               response->token_ids().end());
    text.remove_prefix(piece.size());
  }
  return ids;
}

absl::StatusOr<std::vector<uint32_t>> PromptIds(
    Client& client, const v1::GenerateRequest& request,
    const CallOptions& options) {
  if (request.has_text()) {
    return TokenizeAll(client, request.text(), request.unknown(), options);
  }
  return std::vector<uint32_t>(request.tokens().ids().begin(),
                               request.tokens().ids().end());
}

absl::Status GenerateAfterPrompt(
    Client& client, const RetryPolicy& policy,
    const v1::GenerateRequest& request, const CallOptions& options,
    absl::FunctionRef<void(const v1::GenerateResponse&)> on_response) {
  if (request.ByteSizeLong() <= kOneMessage) {
    const absl::Status status =
        RetryingClient(&client, policy).Generate(request, options, on_response);
    if (!IsPromptOverLimit(status)) return status;
  }
  if (!request.session_id().empty()) {
    return GenerateInParts(client, policy, request, options,
                           !request.request_id().empty(), on_response);
  }
  const auto session = client.CreateSession({}, options);
  if (!session.ok()) return session.status();
  v1::GenerateRequest own = request;
  own.set_session_id(session->session().session_id());
  absl::Status status = GenerateInParts(client, policy, own, options,
                                        /*named=*/false, on_response);
  v1::DeleteSessionRequest end;
  end.set_session_id(own.session_id());
  CallOptions uncancelled = options;  // nothing is left behind
  uncancelled.canceller = nullptr;
  status.Update(client.DeleteSession(end, uncancelled).status());
  return status;
}

}  // namespace txl::cli
