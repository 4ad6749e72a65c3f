#include "client/bench/result/report_json.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "absl/time/time.h"
#include "client/bench/result/summary.h"
#include "program/version.h"

namespace txl::bench {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kHistograms[] = "histograms";
constexpr char kSeries[] = "series";

// "2026-11-24T02:40:00Z".
std::string FormatDate(absl::Time time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", time, absl::UTCTimeZone());
}

Json ToJson(const Histogram& histogram) {
  const LatencySummary summary = Summarize(histogram);
  return {
      {"count", summary.count}, {"mean", summary.mean}, {"min", summary.min},
      {"p50", summary.p50},     {"p90", summary.p90},   {"p95", summary.p95},
      {"p99", summary.p99},     {"p999", summary.p999}, {"max", summary.max}};
}

// [[upper end of the bucket in seconds, values in it], ...]
Json Buckets(const Histogram& histogram) {
  Json buckets = Json::array();
  for (size_t i = 0; i < histogram.buckets().size(); ++i) {
    if (histogram.buckets()[i] == 0) continue;
    const auto index = static_cast<int64_t>(i);
    const Nanos end = Histogram::LowerEnd(index) + Histogram::Width(index) - 1;
    buckets.push_back({ToSeconds(end), histogram.buckets()[i]});
  }
  return buckets;
}

// A number where it is one: what a script compares.
Json ToJson(const Distribution& distribution) {
  if (distribution.fixed()) return distribution.highest();
  return distribution.text();
}

Json CountToJson(const Distribution& distribution) {
  if (distribution.fixed()) return std::llround(distribution.highest());
  return distribution.text();
}

Json LimitsToJson(const Limits& limits) {
  Json json = Json::object();
  const auto add = [&](const char* name, double limit) {
    if (limit != Limits::kNone) json[name] = limit;
  };
  add("ttft", limits.time_to_first_token);
  add("itl", limits.inter_token);
  add("tpot", limits.per_token);
  add("e2e", limits.end_to_end);
  return json;
}

void AddOptions(const Report& report, Json* json) {
  const RunOptions& run = report.options.run;
  const Workload& workload = run.workload;
  if (run.mode == Mode::kClosed) {
    (*json)["streams"] = run.streams;
  } else {
    (*json)["rate"] = run.rate.rate;
    (*json)["arrivals"] =
        run.arrivals == ArrivalKind::kPoisson ? "poisson" : "constant";
    (*json)["ramp_from"] = run.rate.ramp_from;
  }
  json->update(Json{
      {"ramp_seconds", run.rate.ramp_seconds},
      {"warmup_seconds", run.warmup_seconds},
      {"connections", report.usage.connections},
      {"threads", report.usage.threads},
      {"prompts", workload.prompts.size()},
      {"prompt_tokens", CountToJson(workload.prompt_tokens)},
      {"max_tokens", CountToJson(workload.max_tokens)},
      {"turns", CountToJson(workload.turns)},
      {"think_seconds", ToJson(workload.think_seconds)},
      {"cancel_share", workload.cancel_share},
      {"slow_share", workload.slow_share},
      {"temperature", workload.temperature},
      {"tokens_per_message", workload.tokens_per_message},
      {"seed", workload.seed},
  });
}

void AddFigures(const Report& report, Json* json) {
  json->update(Json{
      {"seconds", report.seconds},
      {"requests", report.requests},
      {"measured_requests", report.measured},
      {"tokens", report.tokens},
      {"offered_per_second", report.offered_per_second},
      {"requests_per_second", report.requests_per_second},
      {"tokens_per_second", report.tokens_per_second},
      {"statuses", report.statuses},
      {"first_errors", report.errors},
      {"outcomes", report.outcomes},
      {"malformed_streams", report.problems},
      {"time_to_first_token_seconds", ToJson(report.first_token)},
      {"time_to_first_token_from_send_seconds",
       ToJson(report.first_token_from_send)},
      {"inter_token_seconds", ToJson(report.inter_token)},
      {"per_token_seconds", ToJson(report.per_token)},
      {"end_to_end_seconds", ToJson(report.end_to_end)},
  });
}

void AddJudgements(const Report& report, Json* json) {
  if (report.goodput) {
    const Goodput& goodput = *report.goodput;
    (*json)["goodput"] = {
        {"limits_seconds", LimitsToJson(report.limits)},
        {"requests", goodput.judged},
        {"met", goodput.met},
        {"share", goodput.share()},
        {"per_second", report.seconds > 0
                           ? static_cast<double>(goodput.met) / report.seconds
                           : 0},
        {"did_not_end_well", goodput.did_not_end},
        {"missed",
         {{"ttft", goodput.missed_first},
          {"itl", goodput.missed_inter_token},
          {"tpot", goodput.missed_per_token},
          {"e2e", goodput.missed_end_to_end}}}};
  }
  if (report.backlog) {
    const Backlog& backlog = *report.backlog;
    (*json)["backlog"] = {{"beyond_capacity", backlog.beyond_capacity},
                          {"reason", backlog.reason},
                          {"at_end", backlog.at_end},
                          {"growth_per_second", backlog.growth},
                          {"refused_share", backlog.refused_share}};
  }
  Json stalls = Json::array();
  for (const Stall& stall : report.stalls) {
    stalls.push_back(
        {{"start", ToSeconds(stall.start)},
         {"seconds", ToSeconds(stall.length)},
         {"requests_hit", stall.hit},
         {"share_hit", report.measured == 0
                           ? 0
                           : static_cast<double>(stall.hit) /
                                 static_cast<double>(report.measured)}});
  }
  (*json)["stalls"] = stalls;
}

Json TesterToJson(const Report& report) {
  const TesterUsage& usage = report.usage;
  const double tokens = static_cast<double>(report.tokens);
  return {{"cpu_seconds", usage.cpu_seconds},
          {"cpu_microseconds_per_token",
           tokens > 0 ? 1e6 * usage.cpu_seconds / tokens : 0},
          {"context_switches", usage.context_switches},
          {"dispatch_lag_seconds", ToJson(report.dispatch_lag)},
          {"client_bound", report.client_bound()}};
}

Json ServerToJson(const ServerCheck& check) {
  return {{"verdict", VerdictName(check.verdict)},
          {"turns_ok", check.server_turns},
          {"turns_ok_here", check.own_turns},
          {"tokens_delivered", check.server_tokens},
          {"tokens_here", check.own_tokens}};
}

}  // namespace

Json ToJson(const Report& report) {
  Json json = {{"schema", kSchema},
               {"kind", "run"},
               {"mode", ModeName(report.options.run.mode)},
               {"model", report.model},
               {"fingerprint", report.fingerprint},
               {"date", FormatDate(report.start)},
               {"version", kVersion},
               {"server_version", report.server_version},
               {"host", report.host}};
  AddOptions(report, &json);
  AddFigures(report, &json);
  AddJudgements(report, &json);
  json["server_counters"] = ServerToJson(report.server);
  json["tester"] = TesterToJson(report);
  json[kHistograms] = {{"time_to_first_token", Buckets(report.first_token)},
                       {"inter_token", Buckets(report.inter_token)},
                       {"per_token", Buckets(report.per_token)},
                       {"end_to_end", Buckets(report.end_to_end)}};
  Json series = Json::array();
  for (const Interval& part : report.series) {
    series.push_back({{"start", part.start},
                      {"seconds", part.seconds},
                      {"tokens", part.tokens},
                      {"due", part.due},
                      {"ended", part.ended},
                      {"failed", part.failed},
                      {"running", part.running}});
  }
  json[kSeries] = series;
  return json;
}

Json ToJson(const Sweep& sweep) {
  Json json = {{"schema", kSchema}, {"kind", "sweep"}};
  if (sweep.capacity) {
    // Absent bounds are null: JSON has no infinity.
    const double bad = sweep.capacity->bad;
    json["capacity"] = {{"rate", sweep.capacity->good},
                        {"bad_rate", std::isinf(bad) ? Json() : Json(bad)},
                        {"within_tolerance", sweep.capacity->exact},
                        {"good_share", sweep.good_share}};
  }
  if (const Report* main = MainRun(sweep)) {
    json["main_run"] = static_cast<uint64_t>(main - sweep.runs.data());
  }
  Json runs = Json::array();
  for (const Report& run : sweep.runs) runs.push_back(ToJson(run));
  json["runs"] = std::move(runs);
  return json;
}

Json WithoutDetails(Json result) {
  result.erase(kHistograms);
  result.erase(kSeries);
  if (result.contains("runs")) {
    for (Json& run : result["runs"]) run = WithoutDetails(std::move(run));
  }
  return result;
}

std::string ToLine(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace txl::bench
