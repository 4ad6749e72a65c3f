#pragma once

// What txl-fleet-sim prints.

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "client/fleet/fleet.h"

namespace txl::fleet {

// The JSON's schema; goes up when a field changes its meaning or goes away.
inline constexpr int kSchema = 1;

// Counts are of the sample, rates of the whole fleet, times in seconds.
nlohmann::ordered_json ToJson(const FleetResult& result);
// The same for people, of ToJson's figures.
std::string ToText(const FleetResult& result);

}  // namespace txl::fleet
