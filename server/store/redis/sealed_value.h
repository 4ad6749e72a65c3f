#pragma once

// Values as they lie in Redis, which keeps no checksums: what a server writes
// there has one, and what does not fit is refused where it is read.

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace txl {

// The value with a CRC-32C behind it, of `beside` and the value: `beside` is
// another value, that is stored elsewhere and belongs to this one.
std::string Sealed(absl::string_view value, absl::string_view beside = "");
// Nothing: damaged.
std::optional<std::string> Unsealed(absl::string_view stored,
                                    absl::string_view beside = "");

// A session's chain (txl_1.lua): a digest of all changes of its ids, and the
// CRC-32C of the ids' bytes.
struct IdChain {
  std::string digest;  // 128 bits of SHA-256
  uint32_t ids_crc = 0;

  // Digest and checksum in hexadecimal digits, with a hyphen between.
  std::string text() const;
  // Nothing: none has this text.
  static std::optional<IdChain> Of(absl::string_view text);
};

// The chain behind a change of this kind that adds these bytes. Changes of the
// same ids in another order or in other pieces have another one. `before` may
// be the text of none: that of a session that is made.
std::string NextChain(absl::string_view before, absl::string_view kind,
                      absl::string_view bytes);
// NextChain for a change that leaves a session with these bytes; `mark` tells
// two changes to the same bytes apart.
std::string ChainOf(absl::string_view before, absl::string_view kind,
                    absl::string_view mark, absl::string_view bytes);

}  // namespace txl
