#include "client/fleet/bottlenecks.h"

#include <algorithm>

namespace txl::fleet {
namespace {

// Of a token, in the company in which it costs least.
double CheapestTokenSeconds(const ServerCosts& server) {
  double cheapest = server.device.steps.Seconds(1);
  for (int32_t streams = 2; streams <= server.slots; ++streams) {
    cheapest =
        std::min(cheapest, server.device.steps.Seconds(streams) / streams);
  }
  return cheapest;
}

double DeviceSeconds(const Figures& figures, const ServerCosts& server) {
  const auto rows =
      static_cast<double>(figures.prompt_rows + figures.rebuilt_rows);
  return static_cast<double>(figures.tokens) * CheapestTokenSeconds(server) +
         rows * server.device.prompt_row_seconds;
}

}  // namespace

std::vector<Bottleneck> FindBottlenecks(const Figures& figures,
                                        const CellOptions& options,
                                        double turns_per_second) {
  std::vector<Bottleneck> parts = {
      {"devices",
       DeviceSeconds(figures, options.server) / figures.server_seconds},
      {"slots",
       figures.slot_seconds / (figures.server_seconds * options.server.slots)},
      {"store", static_cast<double>(figures.commands) *
                    options.store.costs.command_seconds /
                    figures.shard_seconds},
  };
  if (options.images.on) {
    parts.push_back(
        {"images", figures.link_busy_seconds / figures.link_seconds});
  }
  for (Bottleneck& part : parts) {
    if (part.load > 0) part.turns_per_second = turns_per_second / part.load;
  }
  std::stable_sort(
      parts.begin(), parts.end(),
      [](const Bottleneck& a, const Bottleneck& b) { return a.load > b.load; });
  return parts;
}

}  // namespace txl::fleet
