#pragma once

// Two results beside each other: what differs by more than chance.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/bench/result/summary.h"

namespace txl::bench {

struct ComparedFigure {
  std::string name;  // "time to first token p99", ...
  std::string unit;  // "ms", "tokens/s", ...
  double a = 0;
  double b = 0;
  double ratio = 0;  // b / a
  // 95 % of the ratio, by bootstrap.
  Range interval;
  // 1 is outside of the interval.
  bool differs() const { return interval.low > 1 || interval.high < 1; }
};

struct Comparison {
  std::vector<ComparedFigure> figures;
  // What the runs were not asked for alike ("rate 10, 20"): ratios then tell of
  // that, too.
  std::vector<std::string> unlike;
};

// `a` and `b`: results that --out wrote; of several runs their main one is
// taken. Errors, by the names of the results: MainRunOf's.
absl::StatusOr<Comparison> Compare(const nlohmann::ordered_json& a,
                                   const nlohmann::ordered_json& b,
                                   const std::string& name_a = "A",
                                   const std::string& name_b = "B");

std::string ToText(const Comparison& comparison);
nlohmann::ordered_json ToJson(const Comparison& comparison);

}  // namespace txl::bench
