#include "client/cli/n_best.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/call_error.h"
#include "client/cli/output.h"

namespace txl::cli {
namespace {

using Json = nlohmann::ordered_json;

absl::Status Wrong(absl::string_view what) {
  return absl::InvalidArgumentError(what);
}

absl::Status ReadAlternatives(const Json& values,
                              v1::ScoreAlternativesRequest* request) {
  if (!values.is_array()) return Wrong("\"alternatives\" must be an array");
  for (const Json& value : values) {
    if (!value.is_string()) {
      return Wrong("\"alternatives\" must hold strings only");
    }
    request->add_alternatives()->set_text(value.get<std::string>());
  }
  return absl::OkStatus();
}

absl::Status ReadEntry(const std::string& key, const Json& value,
                       v1::ScoreAlternativesRequest* request) {
  if (key == "alternatives") return ReadAlternatives(value, request);
  if (key != "context" && key != "session") {
    return Wrong(absl::StrCat("unknown key \"", key, "\""));
  }
  if (!value.is_string()) {
    return Wrong(absl::StrCat("\"", key, "\" must be a string"));
  }
  const auto text = value.get<std::string>();
  if (key == "session") {
    request->set_session_id(text);
  } else if (!text.empty()) {
    request->set_text(text);
  }
  return absl::OkStatus();
}

// What the line calls the field that the server refuses.
std::string PlaceOf(const absl::Status& status) {
  const CallError error = GetCallError(status);
  if (absl::StartsWith(error.reason, "SESSION_")) {
    return absl::StrCat("session ", error.session_id, ": ");
  }
  if (error.fields.empty()) return "";
  const std::string& field = error.fields.front();
  if (field == "text") return "context: ";
  if (field == "session_id") return "session: ";
  return absl::StrCat(field.substr(0, field.find('.')), ": ");
}

absl::Status OfLine(int64_t line, const absl::Status& status) {
  return absl::Status(
      status.code(),
      absl::StrCat("line ", line, ": ", PlaceOf(status), status.message()));
}

}  // namespace

absl::StatusOr<v1::ScoreAlternativesRequest> ParseNBest(
    absl::string_view line) {
  const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return Wrong("not a JSON object");
  v1::ScoreAlternativesRequest request;
  for (const auto& [key, value] : json.items()) {
    const absl::Status status = ReadEntry(key, value, &request);
    if (!status.ok()) return status;
  }
  if (request.alternatives().empty()) {
    return Wrong("\"alternatives\" must hold at least one text");
  }
  return request;
}

std::string FormatNBest(const v1::ScoreAlternativesResponse& response) {
  std::vector<double> sums;
  std::vector<int64_t> counts;
  int best = 0;
  for (int i = 0; i < response.scores_size(); ++i) {
    const v1::AlternativeScore& score = response.scores(i);
    sums.push_back(score.sum_logprob());
    counts.push_back(score.token_count());
    if (score.sum_logprob() > response.scores(best).sum_logprob()) best = i;
  }
  const Json json = {
      {"sum_logprob", sums}, {"token_count", counts}, {"best", best}};
  return json.dump() + "\n";
}

absl::Status ScoreNBest(Client& client, absl::string_view text,
                        v1::UnknownText unknown, const CallOptions& options) {
  int64_t number = 0;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    if (absl::StripAsciiWhitespace(line).empty()) continue;
    auto request = ParseNBest(line);
    if (!request.ok()) return OfLine(number, request.status());
    request->set_unknown(unknown);
    const auto response = client.ScoreAlternatives(*request, options);
    if (!response.ok()) return OfLine(number, response.status());
    if (!WriteOut(FormatNBest(*response))) return OutputStatus();
  }
  return absl::OkStatus();
}

}  // namespace txl::cli
