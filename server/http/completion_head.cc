#include "server/http/completion_head.h"

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "server/base/random_bits.h"

namespace txl {

CompletionHead NewHead(const CompletionRequest& request,
                       const ModelFacts& facts) {
  CompletionHead head;
  head.id = absl::StrFormat("%s-%016x", request.chat ? "chatcmpl" : "cmpl",
                            RandomBits());
  head.object = !request.chat    ? "text_completion"
                : request.stream ? "chat.completion.chunk"
                                 : "chat.completion";
  head.created = absl::ToUnixSeconds(absl::Now());
  head.model = facts.name;
  head.fingerprint = facts.fingerprint;
  return head;
}

std::optional<uint64_t> FirstSeed(const CompletionRequest& request,
                                  const ModelFacts& facts) {
  if (request.seed.has_value()) return request.seed;
  const v1::GenerateRequest& first = request.turns[0];
  const bool named = !first.session_id().empty() && !first.request_id().empty();
  if (named || first.has_received()) return std::nullopt;
  return facts.generation.sampling.seed.value_or(RandomBits());
}

}  // namespace txl
