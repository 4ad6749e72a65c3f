#include "client/bench/plan/limits.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"

namespace txl::bench {
namespace {

double* Field(Limits& limits, const std::string& name) {
  if (name == "ttft") return &limits.time_to_first_token;
  if (name == "itl") return &limits.inter_token;
  if (name == "tpot") return &limits.per_token;
  if (name == "e2e") return &limits.end_to_end;
  return nullptr;
}

}  // namespace

bool Limits::any() const {
  return time_to_first_token != kNone || inter_token != kNone ||
         per_token != kNone || end_to_end != kNone;
}

absl::StatusOr<Limits> ParseLimits(const std::vector<std::string>& texts) {
  Limits limits;
  for (const std::string& text : texts) {
    const std::pair<std::string, std::string> parts =
        absl::StrSplit(text, absl::MaxSplits('=', 1));
    double* field = Field(limits, parts.first);
    absl::Duration duration;
    if (field == nullptr || !absl::ParseDuration(parts.second, &duration) ||
        duration <= absl::ZeroDuration() ||
        duration == absl::InfiniteDuration()) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", text,
                       "' is not NAME=DURATION with ttft, itl, tpot or e2e, "
                       "as in ttft=200ms"));
    }
    if (*field != Limits::kNone) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", parts.first, "' is given twice"));
    }
    *field = absl::ToDoubleSeconds(duration);
  }
  return limits;
}

}  // namespace txl::bench
