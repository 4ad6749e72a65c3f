#include "client/cli/long_text.h"

#include <algorithm>

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

// Feeds all but the last part of the prompt, which then is the request's.
absl::Status FeedAllButTheLast(Client& client, const RetryPolicy& policy,
                               const CallOptions& options,
                               v1::GenerateRequest* request) {
  const auto model = client.GetModel(options);
  if (!model.ok()) return model.status();
  const auto ids = PromptIds(client, *request, options);
  if (!ids.ok()) return ids.status();
  const auto most = static_cast<size_t>(
      std::max<int64_t>(1, model->limits().max_prompt_tokens()));
  size_t fed = 0;
  for (; ids->size() - fed > most; fed += most) {
    v1::AppendTokensRequest part;
    part.set_session_id(request->session_id());
    part.mutable_tokens()->mutable_ids()->Assign(ids->begin() + fed,
                                                 ids->begin() + fed + most);
    if (request->has_expected_position()) {
      part.set_expected_position(request->expected_position());
    }
    const auto response =
        RetryingClient(&client, policy).AppendTokens(part, options);
    if (!response.ok()) return response.status();
    request->set_expected_position(response->position());
  }
  request->mutable_tokens()->mutable_ids()->Assign(ids->begin() + fed,
                                                   ids->end());
  return absl::OkStatus();
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
  RetryingClient retrying(&client, policy);
  if (request.ByteSizeLong() <= kOneMessage) {
    const absl::Status status =
        retrying.Generate(request, options, on_response);
    if (!IsPromptOverLimit(status)) return status;
  }
  v1::GenerateRequest last = request;
  if (request.session_id().empty()) {
    const auto session = client.CreateSession({}, options);
    if (!session.ok()) return session.status();
    last.set_session_id(session->session().session_id());
  }
  absl::Status status = FeedAllButTheLast(client, policy, options, &last);
  if (status.ok()) status = retrying.Generate(last, options, on_response);
  if (request.session_id().empty()) {
    v1::DeleteSessionRequest end;
    end.set_session_id(last.session_id());
    CallOptions uncancelled = options;  // nothing is left behind
    uncancelled.canceller = nullptr;
    status.Update(client.DeleteSession(end, uncancelled).status());
  }
  return status;
}

}  // namespace txl::cli
