#pragma once

// The choices of an answer of /v1/chat/completions. Pure.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>

#include "server/http/completion_choice.h"

namespace txl {

// A whole choice, with its `message`.
nlohmann::json ChatChoiceJson(int64_t index, const CompletionChoice& choice,
                              const ChoiceFormat& format);

// A part of one, with its `delta`; the one that begins says whose it is.
nlohmann::json ChatDeltaJson(int64_t index, const CompletionChoice& part,
                             const ChoiceFormat& format);

}  // namespace txl
