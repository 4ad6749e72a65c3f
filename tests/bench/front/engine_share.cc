#include "tests/bench/front/engine_share.h"

#include <numeric>

#include "model/base/status_macros.h"
#include "tests/bench/series.h"

namespace txl {
namespace {

using json = nlohmann::ordered_json;

constexpr int kShareWarmUpSteps = 5;

absl::StatusOr<StepTimes> EngineAlone(const StreamLoad& load,
                                      DriverOptions driving,
                                      StepRunner* runner) {
  driving.sessions = load.sessions;
  driving.temperature = load.temperature;
  TXL_ASSIGN_OR_RETURN(SessionDriver driver,
                       SessionDriver::Create(runner, driving));
  TXL_RETURN_IF_ERROR(driver.Decode(load.sessions, kShareWarmUpSteps).status());
  // One more: the first step is not counted.
  return driver.Decode(load.sessions, static_cast<int>(load.steps) + 1);
}

double TokensPerSecond(int32_t sessions, const StepTimes& times) {
  const double seconds =
      std::accumulate(times.seconds.begin() + 1, times.seconds.end(), 0.0);
  return sessions * static_cast<double>(times.seconds.size() - 1) / seconds;
}

json Milliseconds(const std::vector<double>& seconds) {
  if (seconds.empty()) return nullptr;
  return {{"p50", Rounded(1e3 * Quantile(seconds, 0.5))},
          {"p99", Rounded(1e3 * Quantile(seconds, 0.99))},
          {"most", Rounded(1e3 * Quantile(seconds, 1))},
          {"count", seconds.size()}};
}

}  // namespace

absl::StatusOr<EngineShare> MeasureEngineShare(const StreamLoad& load,
                                               const DriverOptions& driving,
                                               StepRunner* runner) {
  EngineShare share;
  TXL_ASSIGN_OR_RETURN(share.before, EngineAlone(load, driving, runner));
  TXL_ASSIGN_OR_RETURN(share.streams, RunStreams(load, runner, nullptr));
  TXL_ASSIGN_OR_RETURN(share.after, EngineAlone(load, driving, runner));
  return share;
}

json EngineShareLine(const StreamLoad& load, const EngineShare& share) {
  const double before = TokensPerSecond(load.sessions, share.before);
  const double after = TokensPerSecond(load.sessions, share.after);
  const double engine = (before + after) / 2;
  const StreamTimes& streams = share.streams;
  const double tokens = static_cast<double>(streams.tokens);
  const double rate = tokens / absl::ToDoubleSeconds(streams.time);
  json line = {{"kind", "scheduler"},
               {"sessions", load.sessions},
               {"steps", load.steps},
               {"prompt_tokens", load.prompt_tokens},
               {"prompt_rows_per_step", load.prompt_rows_per_step},
               {"engine_tokens_per_second_before", Rounded(before)},
               {"engine_tokens_per_second_after", Rounded(after)},
               {"engine_tokens_per_second", Rounded(engine)},
               {"scheduler_tokens_per_second", Rounded(rate)},
               {"share_of_engine", Rounded(rate / engine)},
               {"processor_microseconds_per_token",
                Rounded(1e6 * streams.processor_seconds / tokens)},
               {"engine_step_milliseconds", Milliseconds(share.before.seconds)},
               {"step_milliseconds", Milliseconds(streams.step_seconds)}};
  if (load.beside_tokens > 0) {
    line["beside_tokens"] = load.beside_tokens;
    line["step_milliseconds_beside"] = Milliseconds(streams.beside_seconds);
  }
  return line;
}

}  // namespace txl
