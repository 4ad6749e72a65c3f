#include "client/bench/result/result_file.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/bench/result/report_json.h"
#include "client/text_check.h"
#include "program/output_file.h"

namespace txl::bench {
namespace {

using Json = nlohmann::ordered_json;

bool IsRun(const Json& json) {
  return json.is_object() && json.contains("kind") && json["kind"] == "run" &&
         json.contains("histograms") && json["histograms"].is_object() &&
         json.contains("series") && json["series"].is_array();
}

// The place of the first of these numbers that `object` at `place` lacks;
// empty: it has all.
std::string Lack(const std::string& place, const Json& object,
                 const std::vector<const char*>& numbers) {
  for (const char* name : numbers) {
    const auto found = object.find(name);
    if (found == object.end() || !found->is_number()) {
      return absl::StrCat(place, "/", name);
    }
  }
  return "";
}

bool IsBucket(const Json& json) {
  return json.is_array() && json.size() == 2 && json[0].is_number() &&
         json[1].is_number();
}

// Lack of all that comparing wants of a run.
std::string LackOf(const Json& run) {
  std::string lack =
      Lack("", run, {"warmup_seconds", "seconds", "tokens_per_second"});
  const Json& series = run["series"];
  for (size_t i = 0; i < series.size() && lack.empty(); ++i) {
    lack = Lack(absl::StrCat("/series/", i), series[i],
                {"start", "seconds", "tokens"});
  }
  if (lack.empty() && run.contains("goodput")) {
    lack = Lack("/goodput", run["goodput"], {"met", "requests", "share"});
  }
  for (const std::string name :
       {"time_to_first_token", "per_token", "end_to_end"}) {
    if (!lack.empty()) return lack;
    const auto buckets = run["histograms"].find(name);
    if (buckets == run["histograms"].end() || !buckets->is_array() ||
        !std::all_of(buckets->begin(), buckets->end(), IsBucket)) {
      return absl::StrCat("/histograms/", name);
    }
    const std::string figures = name + "_seconds";
    if (buckets->empty()) continue;
    lack = Lack("/" + figures, run.value(figures, Json()),
                {"mean", "p50", "p90", "p99"});
  }
  return lack;
}

}  // namespace

absl::StatusOr<Json> ReadResult(const std::string& path) {
  const absl::StatusOr<std::string> text = ReadUserFile(path);
  if (!text.ok()) return text.status();
  Json json = Json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": is not JSON"));
  }
  return json;
}

absl::Status CheckWritable(const std::string& path) {
  // What reads a pipe would take the trial for the result.
  std::error_code ignored;
  if (std::filesystem::is_other(path, ignored)) return absl::OkStatus();
  return OutputFile::Open(path).status();
}

absl::Status WriteFile(const std::string& path, const std::string& content) {
  const auto file = OutputFile::Open(path);
  if (!file.ok()) return file.status();
  const absl::Status written = (*file)->Write(content);
  return written.ok() ? (*file)->Finish() : written;
}

absl::StatusOr<Json> MainRunOf(const Json& result, const std::string& name) {
  const auto bad = [&](absl::string_view why) {
    return absl::InvalidArgumentError(absl::StrCat(name, ": ", why));
  };
  if (!result.is_object() || !result.contains("schema")) {
    return bad("is not a result of txl bench");
  }
  if (result["schema"] != kSchema) return bad("has another schema");
  const Json runs = result.value("runs", Json::array());
  const Json main = result.value("main_run", Json());
  const Json* run = &result;
  if (runs.is_array() && main.is_number_unsigned() &&
      main.get<size_t>() < runs.size()) {
    run = &runs[main.get<size_t>()];
  }
  if (!IsRun(*run)) {
    return bad("has no run with histograms (write it with --out)");
  }
  const std::string lack = LackOf(*run);
  if (lack.empty()) return *run;
  return bad(absl::StrCat("has nothing usable at ", lack));
}

}  // namespace txl::bench
