#include "client/bench/report.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_format.h"

namespace txl::bench {
namespace {

constexpr char kMode[] = "closed loop";

std::string FormatRow(const char* name, const LatencySummary& summary) {
  constexpr double kMs = 1e3;
  return absl::StrFormat("%-22s %10.2f %10.2f %10.2f %10.2f %10.2f %9d\n", name,
                         summary.mean * kMs, summary.p50 * kMs,
                         summary.p90 * kMs, summary.p99 * kMs,
                         summary.max * kMs, summary.count);
}

nlohmann::ordered_json ToJson(const LatencySummary& summary) {
  return {{"count", summary.count}, {"mean", summary.mean},
          {"p50", summary.p50},     {"p90", summary.p90},
          {"p99", summary.p99},     {"max", summary.max}};
}

}  // namespace

Report MakeReport(const LoadResult& result) {
  Report report;
  report.options = result.options;
  report.model = result.model;
  report.fingerprint = result.fingerprint;
  report.seconds = result.seconds;
  report.requests = static_cast<int64_t>(result.turns.size());
  std::vector<double> first;
  std::vector<double> gaps;
  std::vector<double> total;
  for (const TurnResult& turn : result.turns) {
    ++report.statuses[turn.status];
    if (!turn.problem.empty()) ++report.problems[turn.problem];
    report.tokens += turn.tokens;
    if (turn.tokens > 0) first.push_back(turn.first_token);
    gaps.insert(gaps.end(), turn.gaps.begin(), turn.gaps.end());
    if (turn.status == "OK") total.push_back(turn.total);
  }
  if (result.seconds > 0) {
    report.tokens_per_second =
        static_cast<double>(report.tokens) / result.seconds;
    report.requests_per_second =
        static_cast<double>(total.size()) / result.seconds;
  }
  report.time_to_first_token = Summarize(std::move(first));
  report.inter_token = Summarize(std::move(gaps));
  report.end_to_end = Summarize(std::move(total));
  return report;
}

std::string ToText(const Report& report) {
  const LoadOptions& options = report.options;
  std::string text = absl::StrFormat(
      "%s: %d streams on %d connections, prompts of %d tokens, %d tokens each\n"
      "model %s\n"
      "%d requests in %.2f s: %.1f tokens/s, %.2f requests/s\n",
      kMode, options.streams, options.connections, options.prompt_tokens,
      options.max_tokens, report.model, report.requests, report.seconds,
      report.tokens_per_second, report.requests_per_second);
  for (const auto& [status, count] : report.statuses) {
    absl::StrAppendFormat(&text, "  %-40s %d\n", status, count);
  }
  for (const auto& [problem, count] : report.problems) {
    absl::StrAppendFormat(&text, "  MALFORMED STREAM: %-22s %d\n", problem,
                          count);
  }
  absl::StrAppendFormat(&text, "%-22s %10s %10s %10s %10s %10s %9s\n",
                        "milliseconds", "mean", "p50", "p90", "p99", "max",
                        "samples");
  text += FormatRow("time to first token", report.time_to_first_token);
  text += FormatRow("inter-token latency", report.inter_token);
  text += FormatRow("end to end", report.end_to_end);
  return text;
}

std::string ToJsonLine(const Report& report) {
  const LoadOptions& options = report.options;
  const nlohmann::ordered_json json = {
      {"schema", 1},
      {"mode", kMode},
      {"model", report.model},
      {"fingerprint", report.fingerprint},
      {"streams", options.streams},
      {"connections", options.connections},
      {"prompt_tokens", options.prompt_tokens},
      {"max_tokens", options.max_tokens},
      {"temperature", options.temperature},
      {"seed", options.seed},
      {"seconds", report.seconds},
      {"requests", report.requests},
      {"tokens", report.tokens},
      {"tokens_per_second", report.tokens_per_second},
      {"requests_per_second", report.requests_per_second},
      {"statuses", report.statuses},
      {"malformed_streams", report.problems},
      {"time_to_first_token_seconds", ToJson(report.time_to_first_token)},
      {"inter_token_seconds", ToJson(report.inter_token)},
      {"end_to_end_seconds", ToJson(report.end_to_end)}};
  // Server-sent names may hold anything.
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) +
         "\n";
}

}  // namespace txl::bench
