#include "client/bench/result/page.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/bench/result/report_json.h"
#include "client/bench/result/result_file.h"

namespace txl::bench {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kMs = 1e3;
constexpr char kStyle[] =
    "body{font:15px/1.5 sans-serif;max-width:760px;margin:2em auto;"
    "padding:0 1em;color:#222}table{border-collapse:collapse;margin:1em 0}"
    "td,th{padding:.2em .7em;border-bottom:1px solid #ddd;text-align:right}"
    "td:first-child,th:first-child{text-align:left}svg{max-width:100%;"
    "height:auto}.warning{color:#a33;font-weight:bold}";

std::string Cell(const char* tag, absl::string_view text) {
  return absl::StrCat("<", tag, ">", EscapeMarkup(text), "</", tag, ">");
}

std::string Row(const std::vector<std::string>& cells, const char* tag = "td") {
  std::string row = "<tr>";
  for (const std::string& cell : cells) row += Cell(tag, cell);
  return row + "</tr>\n";
}

// A value of the JSON for people.
std::string Plain(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_float()) {
    return absl::StrFormat("%.6g", value.get<double>());
  }
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string Ms(const Json& seconds) {
  return absl::StrFormat("%.2f", kMs * seconds.get<double>());
}

std::string Warning(absl::string_view text) {
  return absl::StrCat("<p class=\"warning\">", EscapeMarkup(text), "</p>\n");
}

std::string Warnings(const Json& run) {
  std::string html;
  if (run.contains("backlog") &&
      run.at("backlog").at("beyond_capacity").get<bool>()) {
    html +=
        Warning("Beyond capacity: " + Plain(run.at("backlog").at("reason")));
  }
  for (const Json& stall : run.at("stalls")) {
    html += Warning(absl::StrFormat(
        "Stall: no token for %.2f s, %.2f s after the start; it hit %d "
        "requests (%.1f %%)",
        stall.at("seconds").get<double>(), stall.at("start").get<double>(),
        stall.at("requests_hit").get<int64_t>(),
        100 * stall.at("share_hit").get<double>()));
  }
  if (!run.at("malformed_streams").empty())
    html += Warning("Malformed streams");
  if (run.at("server_counters").at("verdict") == "unequal") {
    html += Warning("The server's counters differ from what was received");
  }
  if (run.at("tester").at("client_bound").get<bool>()) {
    html += Warning(
        "The tester itself was late: these are not the server's figures "
        "alone");
  }
  return html;
}

std::string Latencies(const Json& run) {
  std::string html = "<table>\n" + Row({"milliseconds", "mean", "p50", "p90",
                                        "p99", "p99.9", "max", "samples"},
                                       "th");
  for (const auto& [name, field] :
       {std::pair{"time to first token", "time_to_first_token_seconds"},
        {"from send", "time_to_first_token_from_send_seconds"},
        {"inter-token latency", "inter_token_seconds"},
        {"mean gap of a turn", "per_token_seconds"},
        {"end to end", "end_to_end_seconds"}}) {
    const Json& s = run.at(field);
    html += Row({name, Ms(s.at("mean")), Ms(s.at("p50")), Ms(s.at("p90")),
                 Ms(s.at("p99")), Ms(s.at("p999")), Ms(s.at("max")),
                 Plain(s.at("count"))});
  }
  const Json& lag = run.at("tester").at("dispatch_lag_seconds");
  html += Row({"dispatch lag (tester)", Ms(lag.at("mean")), Ms(lag.at("p50")),
               Ms(lag.at("p90")), Ms(lag.at("p99")), Ms(lag.at("p999")),
               Ms(lag.at("max")), Plain(lag.at("count"))});
  return html + "</table>\n";
}

std::string Figures(const Json& run) {
  std::string html = "<table>\n";
  const auto add = [&](const char* name, const std::string& value) {
    html += Row({name, value});
  };
  add("tokens/s", Plain(run.at("tokens_per_second")));
  add("requests/s that ended well", Plain(run.at("requests_per_second")));
  add("requests/s that were due", Plain(run.at("offered_per_second")));
  if (run.contains("goodput")) {
    const Json& goodput = run.at("goodput");
    add("goodput", absl::StrFormat("%.4g requests/s, %.2f %% of the requests",
                                   goodput.at("per_second").get<double>(),
                                   100 * goodput.at("share").get<double>()));
    for (const auto& [name, limit] : goodput.at("limits_seconds").items()) {
      add(("limit of " + name).c_str(), Ms(limit) + " ms");
    }
  }
  for (const auto& [status, count] : run.at("statuses").items()) {
    add(("status " + status).c_str(), Plain(count));
  }
  for (const auto& [outcome, count] : run.at("outcomes").items()) {
    add(("outcome " + outcome).c_str(), Plain(count));
  }
  add("server's token count", Plain(run.at("server_counters").at("verdict")));
  add("tester, µs of processor per token",
      Plain(run.at("tester").at("cpu_microseconds_per_token")));
  return html + "</table>\n";
}

// What was asked for: the fields before the first figure.
std::string Settings(const Json& run) {
  std::string html = "<details><summary>Settings</summary><table>\n";
  for (const auto& [name, value] : run.items()) {
    if (name == "seconds") break;
    html += Row({name, Plain(value)});
  }
  return html + "</table></details>\n";
}

std::string RunBody(const Json& run) {
  return Warnings(run) + Figures(run) + Latencies(run) +
         ToSvg(LatencyChart(run)) + ToSvg(ThroughputChart(run)) +
         ToSvg(TurnsChart(run)) + Settings(run);
}

std::string SweepBody(const Json& sweep, const Json& main) {
  std::string html;
  if (sweep.contains("capacity")) {
    const Json& capacity = sweep.at("capacity");
    absl::StrAppendFormat(
        &html,
        "<p><b>Capacity: %.4g requests/s</b>; %s is too much. A rate is good "
        "when %.4g %% of its requests meet the limits and the server keeps "
        "up.</p>\n",
        capacity.at("rate").get<double>(),
        capacity.at("bad_rate").is_null() ? "no rate that was tried"
                                          : Plain(capacity.at("bad_rate")),
        100 * capacity.at("good_share").get<double>());
  }
  html += ToSvg(RateChart(sweep)) + "<table>\n" +
          Row({"rate", "tokens/s", "first token p50", "p99", "inter-token p99",
               "end to end p99", "within limits", "keeps up", "tester"},
              "th");
  for (const Json& run : sweep.at("runs")) {
    html += Row(
        {Plain(run.at("rate")), Plain(run.at("tokens_per_second")),
         Ms(run.at("time_to_first_token_seconds").at("p50")),
         Ms(run.at("time_to_first_token_seconds").at("p99")),
         Ms(run.at("inter_token_seconds").at("p99")),
         Ms(run.at("end_to_end_seconds").at("p99")),
         run.contains("goodput")
             ? absl::StrFormat(
                   "%.1f %%", 100 * run.at("goodput").at("share").get<double>())
             : "",
         run.at("backlog").at("beyond_capacity").get<bool>() ? "no" : "yes",
         run.at("tester").at("client_bound").get<bool>() ? "late" : ""});
  }
  return html + "</table>\n<h2>At " + EscapeMarkup(Plain(main.at("rate"))) +
         " requests/s</h2>\n" + RunBody(main);
}

}  // namespace

absl::StatusOr<std::string> MakePage(const Json& result) {
  try {
    const absl::StatusOr<Json> main = MainRunOf(result, "result");
    if (!main.ok()) return main.status();
    const std::string title =
        absl::StrCat("Load test of ", Plain((*main).at("model")), ", ",
                     Plain((*main).at("mode")));
    const bool sweep = result.at("kind") == "sweep";
    return absl::StrCat(
        "<!doctype html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\">\n"
        "<meta name=\"viewport\" content=\"width=device-width\">\n",
        Cell("title", title), "<style>", kStyle, "</style></head>\n<body>\n",
        Cell("h1", title), "\n",
        sweep ? SweepBody(result, *main) : RunBody(*main), "</body></html>\n");
  } catch (const Json::exception& error) {  // a field is missing or another
    return absl::InvalidArgumentError(
        absl::StrCat("no result of txl bench: ", error.what()));
  }
}

}  // namespace txl::bench
