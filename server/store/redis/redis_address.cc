#include "server/store/redis/redis_address.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "model/base/crc32c.h"

namespace txl {
namespace {

absl::StatusOr<RedisAddress> ParseOne(absl::string_view text) {
  const absl::Status bad = absl::InvalidArgumentError(absl::StrCat(
      "no address of a store: \"", text, "\"; one is redis://HOST:PORT"));
  absl::string_view rest = text;
  if (!absl::ConsumePrefix(&rest, "redis://")) return bad;
  absl::ConsumeSuffix(&rest, "/");
  const size_t colon = rest.rfind(':');
  if (colon == absl::string_view::npos) return bad;
  RedisAddress address;
  absl::string_view host = rest.substr(0, colon);
  const bool bracketed = absl::ConsumePrefix(&host, "[");
  if (bracketed != absl::ConsumeSuffix(&host, "]")) return bad;
  if (host.empty() || host.find_first_of("@/[]") != host.npos) return bad;
  if (!bracketed && host.find(':') != host.npos) return bad;
  address.host = std::string(host);
  if (!absl::SimpleAtoi(rest.substr(colon + 1), &address.port) ||
      address.port < 1 || address.port > 65535) {
    return bad;
  }
  return address;
}

}  // namespace

std::string RedisAddress::text() const {
  return host.find(':') == std::string::npos
             ? absl::StrCat(host, ":", port)
             : absl::StrCat("[", host, "]:", port);
}

absl::StatusOr<std::vector<RedisAddress>> ParseRedisAddresses(
    absl::string_view text) {
  std::vector<RedisAddress> addresses;
  for (const absl::string_view one : absl::StrSplit(text, ',')) {
    absl::StatusOr<RedisAddress> address = ParseOne(one);
    if (!address.ok()) return address.status();
    for (const RedisAddress& before : addresses) {
      if (before.text() == address->text()) {
        return absl::InvalidArgumentError(
            absl::StrCat(address->text(), " is named twice"));
      }
    }
    addresses.push_back(*std::move(address));
  }
  return addresses;
}

size_t ShardOf(absl::string_view session_name, size_t shards) {
  return ExtendCrc32c(0, session_name.data(), session_name.size()) % shards;
}

}  // namespace txl
