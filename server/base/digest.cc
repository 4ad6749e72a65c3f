#include "server/base/digest.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <unistd.h>

#include <cstdlib>
#include <random>

namespace txl {
namespace {

// OpenSSL refuses only when its library is broken or there is no memory.
void Require(bool worked) {
  if (!worked) std::abort();
}

}  // namespace

void RunningDigest::Free::operator()(evp_md_ctx_st* context) const {
  EVP_MD_CTX_free(context);
}

RunningDigest::RunningDigest(bool keyed)
    : context_(EVP_MD_CTX_new()), keyed_(keyed) {
  Require(context_ != nullptr);
}

RunningDigest::RunningDigest(RunningDigest&&) noexcept = default;
RunningDigest& RunningDigest::operator=(RunningDigest&&) noexcept = default;
RunningDigest::~RunningDigest() = default;

RunningDigest RunningDigest::Sha256() {
  RunningDigest digest(/*keyed=*/false);
  Require(EVP_DigestInit_ex(digest.context_.get(), EVP_sha256(), nullptr) == 1);
  return digest;
}

RunningDigest RunningDigest::HmacSha256(absl::string_view key) {
  RunningDigest digest(/*keyed=*/true);
  EVP_PKEY* const pkey = EVP_PKEY_new_raw_private_key(
      EVP_PKEY_HMAC, nullptr,
      reinterpret_cast<const unsigned char*>(key.data()), key.size());
  Require(pkey != nullptr);
  Require(EVP_DigestSignInit(digest.context_.get(), nullptr, EVP_sha256(),
                             nullptr, pkey) == 1);
  EVP_PKEY_free(pkey);  // the context holds on to it
  return digest;
}

void RunningDigest::Add(absl::string_view bytes) {
  Require(
      (keyed_ ? EVP_DigestSignUpdate(context_.get(), bytes.data(), bytes.size())
              : EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size())) ==
      1);
}

std::string RunningDigest::Finish() {
  std::string digest(kDigestBytes, '\0');
  auto* out = reinterpret_cast<unsigned char*>(digest.data());
  size_t size = digest.size();
  Require((keyed_ ? EVP_DigestSignFinal(context_.get(), out, &size)
                  : EVP_DigestFinal_ex(context_.get(), out, nullptr)) == 1);
  return digest;
}

std::string Sha256Of(absl::string_view bytes) {
  RunningDigest digest = RunningDigest::Sha256();
  digest.Add(bytes);
  return digest.Finish();
}

bool EqualDigests(absl::string_view a, absl::string_view b) {
  return a.size() == b.size() &&
         CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

uint64_t RandomBits() {
  uint64_t bits = 0;
  // The kernel's generator itself: a random_device takes many times as long
  // where it asks the processor's, and every call needs some.
  if (getentropy(&bits, sizeof(bits)) == 0) return bits;
  std::random_device device;
  return (uint64_t{device()} << 32) | device();
}

}  // namespace txl
