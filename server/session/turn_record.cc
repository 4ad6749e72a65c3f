#include "server/session/turn_record.h"

#include <utility>

#include "server/base/error.h"
#include "server/session/session_errors.h"

namespace txl {
namespace {

// Bytes of vectors and strings beyond the objects themselves.
int64_t ExtraBytes(const std::string& text,
                   const std::vector<TokenLogprob>& top_logprobs) {
  return static_cast<int64_t>(text.capacity() +
                              top_logprobs.capacity() * sizeof(TokenLogprob));
}

}  // namespace

int64_t TurnRecord::Bytes() const {
  int64_t bytes = static_cast<int64_t>(sizeof(TurnRecord) +
                                       tokens.capacity() * sizeof(TokenEvent) +
                                       scored.capacity() * sizeof(ScoredToken));
  for (const TokenEvent& token : tokens) {
    bytes += ExtraBytes(token.text, token.top_logprobs);
  }
  for (const ScoredToken& token : scored) {
    bytes += ExtraBytes(token.text, token.top_logprobs);
  }
  return bytes;
}

absl::StatusOr<std::shared_ptr<const TurnRecord>> RecordFor(
    const TurnIdentity& identity, std::shared_ptr<const TurnRecord> record,
    const LastTurn& last, const RequestHistory& earlier) {
  if (!identity.named()) return std::shared_ptr<const TurnRecord>();
  const bool is_last = identity.request_id == last.request_id;
  if (!is_last && !earlier.Contains(identity.request_id)) {
    return std::shared_ptr<const TurnRecord>();
  }
  if (!is_last || record == nullptr) {
    // Where the last turn ended is where the session is.
    return ReplayEvictedError(last.start_position + last.prompt_tokens +
                              last.generated_tokens);
  }
  if (identity.digest != record->identity.digest) {
    return OtherRequestError();
  }
  return record;
}

}  // namespace txl
