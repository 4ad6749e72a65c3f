#include "client/bench/result/result_file.h"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "client/bench/result/report_json.h"

namespace txl::bench {
namespace {

using Json = nlohmann::ordered_json;

bool IsRun(const Json& json) {
  return json.is_object() && json.contains("kind") && json["kind"] == "run" &&
         json.contains("histograms") && json["histograms"].is_object() &&
         json.contains("series") && json["series"].is_array();
}

absl::Status Write(const std::string& path, const std::string& content,
                   std::ios::openmode mode) {
  std::ofstream file(path, std::ios::binary | mode);
  file << content;
  file.close();
  if (!file) {
    return absl::UnavailableError(absl::StrCat(path, ": cannot be written"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Json> ReadResult(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)),
                         std::istreambuf_iterator<char>());
  if (!file) {
    return absl::NotFoundError(absl::StrCat(path, ": cannot be read"));
  }
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": is not JSON"));
  }
  return json;
}

absl::Status CheckWritable(const std::string& path) {
  const bool was_there = std::filesystem::exists(path);
  // What reads a pipe would take the trial for the result.
  if (std::filesystem::is_other(path)) {
    return absl::OkStatus();
  }
  const absl::Status status = Write(path, "", std::ios::app);
  // A link that led to nothing stays one.
  std::error_code ignored;
  if (!was_there) {
    std::filesystem::remove(std::filesystem::canonical(path, ignored), ignored);
  }
  return status;
}

absl::Status WriteFile(const std::string& path, const std::string& content) {
  return Write(path, content, std::ios::trunc);
}

absl::StatusOr<Json> MainRunOf(const Json& result, const std::string& name) {
  const auto bad = [&](const char* why) {
    return absl::InvalidArgumentError(absl::StrCat(name, ": ", why));
  };
  if (!result.is_object() || !result.contains("schema")) {
    return bad("is not a result of txl bench");
  }
  if (result["schema"] != kSchema) return bad("has another schema");
  if (IsRun(result)) return result;
  const Json runs = result.value("runs", Json::array());
  const Json main = result.value("main_run", Json());
  if (runs.is_array() && main.is_number_unsigned() &&
      main.get<size_t>() < runs.size() && IsRun(runs[main.get<size_t>()])) {
    return runs[main.get<size_t>()];
  }
  return bad("has no run with histograms (write it with --out)");
}

}  // namespace txl::bench
