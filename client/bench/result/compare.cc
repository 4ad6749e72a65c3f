#include "client/bench/result/compare.h"

#include <functional>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/bench/result/result_file.h"

namespace txl::bench {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kDraws = 4000;
constexpr uint64_t kSeed = 1;
// Blocks that the window is cut into: long enough to forget each other.
constexpr size_t kBlocks = 20;
constexpr double kMs = 1e3;

// A figure of a run: its value, and a draw of it.
struct Measured {
  double value = 0;
  std::function<double(Resampling&)> draw;
};

ComparedFigure CompareFigure(const std::string& name, const std::string& unit,
                             const Measured& a, const Measured& b) {
  ComparedFigure figure{name, unit, a.value, b.value, b.value / a.value, {}};
  Resampling resampling(kSeed);
  std::vector<double> ratios;
  for (int i = 0; i < kDraws; ++i) {
    const double below = a.draw(resampling);
    ratios.push_back(b.draw(resampling) / below);
  }
  figure.interval = MiddleOf(std::move(ratios));
  return figure;
}

Counted CountedOf(const Json& run, const char* name) {
  Counted values;
  for (const Json& bucket : run.at("histograms").at(name)) {
    values.emplace_back(bucket.at(0).get<double>(),
                        bucket.at(1).get<int64_t>());
  }
  return values;
}

// Tokens/s in blocks of the window.
std::vector<double> Blocks(const Json& run) {
  const double from = run.at("warmup_seconds").get<double>();
  const double to = from + run.at("seconds").get<double>();
  std::vector<std::pair<double, double>> parts;  // tokens, seconds
  for (const Json& part : run.at("series")) {
    const double start = part.at("start").get<double>();
    const double seconds = part.at("seconds").get<double>();
    // Whole parts only, or all when the run is one part.
    if (start < from || start + seconds > to * (1 + 1e-9)) continue;
    parts.emplace_back(part.at("tokens").get<double>(), seconds);
  }
  const size_t count = std::min(kBlocks, parts.size());
  std::vector<double> blocks;
  for (size_t i = 0; i < count; ++i) {
    double tokens = 0;
    double seconds = 0;
    for (size_t p = i * parts.size() / count;
         p < (i + 1) * parts.size() / count; ++p) {
      tokens += parts[p].first;
      seconds += parts[p].second;
    }
    if (seconds > 0) blocks.push_back(tokens / seconds);
  }
  return blocks;
}

void CompareLatency(const std::string& name, const char* histogram,
                    const Json& a, const Json& b,
                    std::vector<ComparedFigure>* figures) {
  const Counted va = CountedOf(a, histogram);
  const Counted vb = CountedOf(b, histogram);
  if (va.empty() || vb.empty()) return;
  const std::string field = absl::StrCat(histogram, "_seconds");
  const auto add =
      [&](const char* figure,
          const std::function<double(Resampling&, const Counted&)>& draw) {
        const auto measured = [&](const Json& run, const Counted& values) {
          return Measured{kMs * run.at(field).at(figure).get<double>(),
                          [&draw, &values](Resampling& resampling) {
                            return kMs * draw(resampling, values);
                          }};
        };
        figures->push_back(CompareFigure(absl::StrCat(name, " ", figure), "ms",
                                         measured(a, va), measured(b, vb)));
      };
  add("mean", [](Resampling& resampling, const Counted& values) {
    return resampling.Mean(values);
  });
  for (const auto& [figure, q] :
       {std::pair{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}}) {
    add(figure, [q = q](Resampling& resampling, const Counted& values) {
      return resampling.Percentile(values, q);
    });
  }
}

void CompareRates(const Json& a, const Json& b,
                  std::vector<ComparedFigure>* figures) {
  const std::vector<double> blocks_a = Blocks(a);
  const std::vector<double> blocks_b = Blocks(b);
  if (blocks_a.empty() || blocks_b.empty()) return;
  const auto measured = [](const Json& run, const std::vector<double>& blocks) {
    return Measured{run.at("tokens_per_second").get<double>(),
                    [&blocks](Resampling& resampling) {
                      return resampling.BlockMean(blocks);
                    }};
  };
  figures->push_back(CompareFigure(
      "throughput", "tokens/s", measured(a, blocks_a), measured(b, blocks_b)));
}

void CompareGoodput(const Json& a, const Json& b,
                    std::vector<ComparedFigure>* figures) {
  if (!a.contains("goodput") || !b.contains("goodput")) return;
  const auto measured = [](const Json& run) {
    const auto met = run.at("goodput").at("met").get<int64_t>();
    const auto count = run.at("goodput").at("requests").get<int64_t>();
    return Measured{100 * run.at("goodput").at("share").get<double>(),
                    [met, count](Resampling& resampling) {
                      return 100 * resampling.Share(met, count);
                    }};
  };
  figures->push_back(
      CompareFigure("share within limits", "%", measured(a), measured(b)));
}

std::vector<std::string> Unlike(const Json& a, const Json& b) {
  std::vector<std::string> unlike;
  for (const char* field :
       {"mode", "model", "fingerprint", "streams", "rate", "arrivals",
        "prompts", "prompt_tokens", "max_tokens", "turns", "think_seconds",
        "cancel_share", "slow_share", "temperature", "tokens_per_message"}) {
    const Json va = a.value(field, Json());
    const Json vb = b.value(field, Json());
    if (va != vb) {
      unlike.push_back(absl::StrCat(field, ": ", va.dump(), ", ", vb.dump()));
    }
  }
  if (a.contains("goodput") && b.contains("goodput") &&
      a.at("goodput").value("limits_seconds", Json()) !=
          b.at("goodput").value("limits_seconds", Json())) {
    unlike.push_back("limits");
  }
  return unlike;
}

}  // namespace

absl::StatusOr<Comparison> Compare(const Json& a, const Json& b,
                                   const std::string& name_a,
                                   const std::string& name_b) {
  const absl::StatusOr<Json> run_a = MainRunOf(a, name_a);
  if (!run_a.ok()) return run_a.status();
  const absl::StatusOr<Json> run_b = MainRunOf(b, name_b);
  if (!run_b.ok()) return run_b.status();
  Comparison comparison;
  comparison.unlike = Unlike(*run_a, *run_b);
  CompareRates(*run_a, *run_b, &comparison.figures);
  CompareGoodput(*run_a, *run_b, &comparison.figures);
  for (const auto& [name, histogram] :
       {std::pair{"time to first token", "time_to_first_token"},
        {"mean gap of a turn", "per_token"},
        {"end to end", "end_to_end"}}) {
    CompareLatency(name, histogram, *run_a, *run_b, &comparison.figures);
  }
  return comparison;
}

std::string ToText(const Comparison& comparison) {
  std::string text;
  for (const std::string& field : comparison.unlike) {
    absl::StrAppend(&text, "NOT ALIKE: ", field, "\n");
  }
  absl::StrAppendFormat(&text, "%-26s %-9s %12s %12s %8s  %s\n", "", "unit",
                        "A", "B", "B/A", "95 % of B/A");
  for (const ComparedFigure& figure : comparison.figures) {
    absl::StrAppendFormat(
        &text, "%-26s %-9s %12.2f %12.2f %8.3f  %.3f to %.3f%s\n", figure.name,
        figure.unit, figure.a, figure.b, figure.ratio, figure.interval.low,
        figure.interval.high, figure.differs() ? "  differs" : "");
  }
  return text;
}

Json ToJson(const Comparison& comparison) {
  Json figures = Json::array();
  for (const ComparedFigure& figure : comparison.figures) {
    figures.push_back({{"name", figure.name},
                       {"unit", figure.unit},
                       {"a", figure.a},
                       {"b", figure.b},
                       {"ratio", figure.ratio},
                       {"low", figure.interval.low},
                       {"high", figure.interval.high},
                       {"differs", figure.differs()}});
  }
  return {{"unlike", comparison.unlike}, {"figures", figures}};
}

}  // namespace txl::bench
