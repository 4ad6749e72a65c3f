#pragma once

// SHA-256 and HMAC-SHA-256 (FIPS 180-4, RFC 2104) of bytes that come in pieces.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"

struct evp_md_ctx_st;  // OpenSSL's EVP_MD_CTX

namespace txl {

inline constexpr size_t kDigestBytes = 32;

// Either of the two; of one text. Move-only; thread-compatible.
class RunningDigest {
 public:
  static RunningDigest Sha256();
  // REQUIRES: the key is not empty.
  static RunningDigest HmacSha256(absl::string_view key);
  RunningDigest(RunningDigest&&) noexcept;
  RunningDigest& operator=(RunningDigest&&) noexcept;
  ~RunningDigest();

  void Add(absl::string_view bytes);
  // kDigestBytes of them. Nothing may follow.
  std::string Finish();

 private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const;
  };
  explicit RunningDigest(bool keyed);

  std::unique_ptr<evp_md_ctx_st, Free> context_;
  bool keyed_;
};

std::string Sha256Of(absl::string_view bytes);

// Takes as long wherever they differ.
bool EqualDigests(absl::string_view a, absl::string_view b);

// Bits for names and seeds that need not be hard to guess.

// 64 bits of the machine's generator. Thread-safe.
uint64_t RandomBits();

}  // namespace txl
