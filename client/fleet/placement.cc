#include "client/fleet/placement.h"

namespace txl::fleet {

uint64_t Mix(uint64_t key) {
  uint64_t x = key + 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

int32_t PlaceTurn(uint64_t session, int32_t last, int32_t servers,
                  absl::FunctionRef<bool(int32_t)> up) {
  if (last >= 0 && up(last)) return last;
  const auto count = static_cast<uint64_t>(servers);
  // Tries at random find one soon while many are up.
  for (uint64_t salt = 0; salt < 8 * count; ++salt) {
    const auto server = static_cast<int32_t>(Mix(Mix(session) + salt) % count);
    if (up(server)) return server;
  }
  for (int32_t server = 0; server < servers; ++server) {
    if (up(server)) return server;
  }
  return -1;
}

}  // namespace txl::fleet
