#include "client/fleet/report.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/fleet/bottlenecks.h"

namespace txl::fleet {
namespace {

using nlohmann::ordered_json;

constexpr const char* kMemoryNames[kMemories] = {"slot", "local_image",
                                                 "shared_image", "rebuilt"};

ordered_json Times(const bench::Histogram& histogram) {
  constexpr double kNanos = 1e9;
  const auto at = [&](double q) {
    return bench::ToSeconds(histogram.Percentile(q));
  };
  return {{"count", histogram.count()},
          {"mean", histogram.mean() / kNanos},
          {"p50", at(0.5)},
          {"p99", at(0.99)},
          {"max", bench::ToSeconds(histogram.max())}};
}

double Ratio(double part, double whole) {
  return whole == 0 ? 0 : part / whole;
}

ordered_json Residency(const Figures& figures) {
  int64_t all = 0;
  for (const int64_t count : figures.memories) all += count;
  ordered_json json;
  for (int i = 0; i < kMemories; ++i) {
    json[kMemoryNames[i]] = Ratio(static_cast<double>(figures.memories[i]),
                                  static_cast<double>(all));
  }
  return json;
}

ordered_json Store(const FleetResult& result) {
  const Figures& figures = result.figures;
  const auto commands = static_cast<double>(figures.commands);
  return {{"commands_per_turn",
           Ratio(commands, static_cast<double>(figures.turns_ended))},
          {"commands_per_second_of_a_shard",
           Ratio(commands, figures.shard_seconds)},
          {"bytes_per_second_of_a_shard",
           Ratio(figures.store_bytes, figures.shard_seconds)},
          {"busy", Ratio(figures.shard_busy_seconds, figures.shard_seconds)}};
}

ordered_json Bottlenecks(const FleetResult& result) {
  ordered_json json = ordered_json::array();
  const double turns =
      result.PerSecond(static_cast<double>(result.figures.turns_ended));
  for (const Bottleneck& part :
       FindBottlenecks(result.figures, result.options.cell, turns)) {
    json.push_back({{"part", part.part},
                    {"load", part.load},
                    {"full_at_turns_per_second", part.turns_per_second}});
  }
  return json;
}

std::string TimesRow(const char* name, const ordered_json& times) {
  constexpr double kMs = 1e3;
  return absl::StrFormat(
      "%-22s %11.2f %11.2f %11.2f %11.2f %11d\n", name,
      times["mean"].get<double>() * kMs, times["p50"].get<double>() * kMs,
      times["p99"].get<double>() * kMs, times["max"].get<double>() * kMs,
      times["count"].get<int64_t>());
}

std::string TimesTable(const ordered_json& json) {
  std::string text =
      absl::StrFormat("%-22s %11s %11s %11s %11s %11s\n", "milliseconds",
                      "mean", "p50", "p99", "max", "samples");
  text += TimesRow("time to first token", json["time_to_first_token_seconds"]);
  text += TimesRow("end to end", json["end_to_end_seconds"]);
  text += TimesRow("takeover", json["takeover_seconds"]);
  return text;
}

std::string BottleneckTable(const ordered_json& parts) {
  std::string text;
  for (const ordered_json& part : parts) {
    absl::StrAppendFormat(&text, "%-22s %10.1f %%   full at %.0f turns/s\n",
                          part["part"].get<std::string>(),
                          part["load"].get<double>() * 100,
                          part["full_at_turns_per_second"].get<double>());
  }
  return text;
}

}  // namespace

ordered_json ToJson(const FleetResult& result) {
  const Figures& figures = result.figures;
  const CellOptions& cell = result.options.cell;
  const auto rate = [&](int64_t count) {
    return result.PerSecond(static_cast<double>(count));
  };
  return {
      {"schema", kSchema},
      {"cells", result.options.cells},
      {"sample", result.options.sample},
      {"servers_of_a_cell", cell.servers},
      {"sessions_of_a_cell", cell.mix.sessions},
      {"sessions_touched", result.sessions_touched},
      {"seconds", figures.seconds},
      {"seed", cell.seed},
      {"turns_per_second", rate(figures.turns_ended)},
      {"tokens_per_second", rate(figures.tokens)},
      {"prompt_rows_per_second", rate(figures.prompt_rows)},
      {"rebuilt_rows_per_second", rate(figures.rebuilt_rows)},
      {"streams_of_a_server",
       Ratio(figures.slot_seconds, figures.server_seconds)},
      {"turns",
       {{"at_start", figures.turns_at_start},
        {"due", figures.turns_due},
        {"ended", figures.turns_ended},
        {"left", figures.turns_left},
        {"broken", figures.turns_broken},
        {"failed_attempts", figures.failed_attempts},
        {"conversations_refused", figures.conversations_refused}}},
      {"time_to_first_token_seconds", Times(figures.first_token)},
      {"end_to_end_seconds", Times(figures.end_to_end)},
      {"takeover_seconds", Times(figures.takeover)},
      {"residency", Residency(figures)},
      {"device_busy",
       Ratio(figures.device_busy_seconds, figures.server_seconds)},
      {"store", Store(result)},
      {"images",
       {{"reads_per_second", rate(figures.image_reads)},
        {"writes_per_second", rate(figures.image_writes)},
        {"bytes_per_second",
         cell.images.bytes * rate(figures.image_reads + figures.image_writes)},
        {"busy", Ratio(figures.link_busy_seconds, figures.link_seconds)}}},
      {"bottlenecks", Bottlenecks(result)},
  };
}

std::string ToText(const FleetResult& result) {
  constexpr double kMega = 1e6;
  const ordered_json json = ToJson(result);
  const auto number = [](const ordered_json& value) {
    return value.get<double>();
  };
  const ordered_json& store = json["store"];
  std::string text = absl::StrFormat(
      "%d cells of %d servers and %d sessions, %d simulated for %g s "
      "(%d sessions used)\n\n%.0f turns/s, %.0f tokens/s, %.0f rows/s of "
      "prompts, %.0f rows/s rebuilt\n\n",
      result.options.cells, result.options.cell.servers,
      result.options.cell.mix.sessions, result.options.sample,
      result.figures.seconds, result.sessions_touched,
      number(json["turns_per_second"]), number(json["tokens_per_second"]),
      number(json["prompt_rows_per_second"]),
      number(json["rebuilt_rows_per_second"]));
  text += TimesTable(json);
  absl::StrAppendFormat(&text, "\nturns of a server     %12.1f\n",
                        number(json["streams_of_a_server"]));
  for (const char* name : kMemoryNames) {
    absl::StrAppendFormat(&text, "began with %-12s %10.2f %%\n", name,
                          number(json["residency"][name]) * 100);
  }
  absl::StrAppendFormat(
      &text,
      "a shard of the store  %10.0f commands/s, %.2f MB/s, busy %.1f %%; "
      "%.1f commands a turn\nshared images         %10.1f reads/s, %.1f "
      "writes/s, %.0f MB/s\nturns broken          %10d, attempts on lost "
      "servers %d\n\n",
      number(store["commands_per_second_of_a_shard"]),
      number(store["bytes_per_second_of_a_shard"]) / kMega,
      number(store["busy"]) * 100, number(store["commands_per_turn"]),
      number(json["images"]["reads_per_second"]),
      number(json["images"]["writes_per_second"]),
      number(json["images"]["bytes_per_second"]) / kMega,
      result.figures.turns_broken, result.figures.failed_attempts);
  return text + BottleneckTable(json["bottlenecks"]);
}

}  // namespace txl::fleet
