#pragma once

// Names that go into metadata, paths, metrics and logs as they are.

#include <algorithm>
#include <cstddef>

#include "absl/strings/ascii.h"
#include "absl/strings/string_view.h"

namespace txl {

inline constexpr size_t kMostNameBytes = 64;

// Names of sessions, requests, tenants and keys: `[A-Za-z0-9_-]{1,64}`.
inline bool IsPlainName(absl::string_view name) {
  return !name.empty() && name.size() <= kMostNameBytes &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
                  c == '_' || c == '-';
         });
}

// Tenants are owners that share a server and know nothing of each other.

// Every caller's tenant where callers need not identify themselves.
inline constexpr char kDefaultTenant[] = "default";

}  // namespace txl
