#pragma once

// What is drawn for a completion before it runs.

#include <cstdint>
#include <optional>

#include "server/api/model_facts.h"
#include "server/http/completion_fields.h"
#include "server/http/completion_json.h"

namespace txl {

// With an id of its own and the present time.
CompletionHead NewHead(const CompletionRequest& request,
                       const ModelFacts& facts);

// Absent: the turn chooses. One that may have run before does where the body
// does not say: it has to be the same request, and keeps the seed that was
// drawn.
std::optional<uint64_t> FirstSeed(const CompletionRequest& request,
                                  const ModelFacts& facts);

}  // namespace txl
