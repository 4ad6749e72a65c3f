#include "server/session/turn_record.h"

#include <algorithm>
#include <cstring>

#include "server/base/digest.h"
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

namespace {

uint64_t HashOf(absl::string_view request_id) {
  uint64_t hash = 0;
  std::memcpy(&hash, Sha256Of(request_id).data(), sizeof(hash));
  return hash;
}

}  // namespace

void RequestHistory::Add(absl::string_view request_id, int64_t capacity) {
  hashes_.push_back(HashOf(request_id));
  if (static_cast<int64_t>(hashes_.size()) > capacity) {
    hashes_.erase(hashes_.begin());
  }
}

bool RequestHistory::Contains(absl::string_view request_id) const {
  return std::find(hashes_.begin(), hashes_.end(), HashOf(request_id)) !=
         hashes_.end();
}

}  // namespace txl
