#pragma once

// kinds.json of a model directory: kinds of tokens, and which may follow which.
//
//   {"kinds": {
//     "Bar": {"tokens": [0], "next": ["Bar", "Position"]},
//     "Position": {"tokens": [[1, 16]], "next": ["Velocity"],
//                  "next_temperature": 0.9},
//     ...}}
//
// `tokens` has ids, and pairs of a first and a last id. `next` and
// `next_temperature` may be absent (model/sampling/token_kinds.h).

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "model/sampling/token_kinds.h"

namespace txl {

inline constexpr char kTokenKindsFile[] = "kinds.json";

// The kinds stand in the order of their names. Errors: InvalidArgument naming
// `origin` and the field, as TokenKinds::Make; also for unknown fields.
absl::StatusOr<TokenKinds> ParseTokenKinds(absl::string_view json,
                                           absl::string_view origin,
                                           int64_t vocab_size);

// The text of a kinds.json with these kinds, one a line.
std::string TokenKindsToJson(const std::vector<TokenKind>& kinds);

}  // namespace txl
