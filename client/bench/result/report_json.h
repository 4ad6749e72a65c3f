#pragma once

// Results as JSON: what docs/load-testing.md describes.

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "client/bench/result/report.h"
#include "client/bench/result/sweep.h"

namespace txl::bench {

// The JSON's schema; goes up when a field changes its meaning or goes away.
inline constexpr int kSchema = 2;

// One run with everything: figures, histograms, series.
nlohmann::ordered_json ToJson(const Report& report);
// Several runs, and the capacity that a search found.
nlohmann::ordered_json ToJson(const Sweep& sweep);
// A result without what only pictures and comparisons need.
nlohmann::ordered_json WithoutDetails(nlohmann::ordered_json result);
// Text of one line. Bytes that are not UTF-8 (servers may send any) become
// U+FFFD.
std::string ToLine(const nlohmann::ordered_json& json);

}  // namespace txl::bench
