#pragma once

// What a failed row says, in the same words whichever runner ran it.
// NothingToSample is the sampler's own (model/sampling/sampler.h).

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace txl {

inline absl::Status UnknownInput() {
  return absl::InternalError(
      "the token to feed is unknown: the row that sampled it failed");
}

// `position`: of the row's input.
inline absl::Status NotFinite(int64_t position) {
  return absl::InternalError(absl::StrCat("the model's numbers at position ",
                                          position, " are not finite"));
}

}  // namespace txl
