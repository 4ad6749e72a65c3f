#include "server/store/redis/sealed_value.h"

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "model/base/crc32c.h"
#include "server/base/byte_fields.h"
#include "server/base/digest.h"

namespace txl {
namespace {

constexpr size_t kCrcBytes = 4;
constexpr size_t kDigestSize = 16;

uint32_t CrcOf(absl::string_view bytes, uint32_t before = 0) {
  return ExtendCrc32c(before, bytes.data(), bytes.size());
}

std::string DigestOf(absl::string_view before, absl::string_view kind,
                     absl::string_view bytes) {
  return Sha256Of(absl::StrCat(before, kind, bytes)).substr(0, kDigestSize);
}

}  // namespace

std::string Sealed(absl::string_view value, absl::string_view beside) {
  ByteWriter crc;
  crc.U32(CrcOf(value, CrcOf(beside)));
  return absl::StrCat(value, crc.bytes());
}

std::optional<std::string> Unsealed(absl::string_view stored,
                                    absl::string_view beside) {
  if (stored.size() < kCrcBytes) return std::nullopt;
  const absl::string_view value = stored.substr(0, stored.size() - kCrcBytes);
  if (Sealed(value, beside) != stored) return std::nullopt;
  return std::string(value);
}

std::string IdChain::text() const {
  return absl::StrCat(absl::BytesToHexString(digest), "-",
                      absl::Hex(ids_crc, absl::kZeroPad8));
}

std::optional<IdChain> IdChain::Of(absl::string_view text) {
  if (text.size() != 2 * kDigestSize + 9) return std::nullopt;
  IdChain chain;
  chain.digest = absl::HexStringToBytes(text.substr(0, 2 * kDigestSize));
  const bool is_one =
      absl::SimpleHexAtoi(text.substr(2 * kDigestSize + 1), &chain.ids_crc);
  // In one way only.
  if (!is_one || chain.text() != text) return std::nullopt;
  return chain;
}

std::string NextChain(absl::string_view before, absl::string_view kind,
                      absl::string_view bytes) {
  const std::optional<IdChain> chain = IdChain::Of(before);
  const uint32_t crc = chain.has_value() ? chain->ids_crc : 0;
  return IdChain{DigestOf(before, kind, bytes), CrcOf(bytes, crc)}.text();
}

std::string ChainOf(absl::string_view before, absl::string_view kind,
                    absl::string_view mark, absl::string_view bytes) {
  return IdChain{DigestOf(before, kind, mark), CrcOf(bytes)}.text();
}

}  // namespace txl
