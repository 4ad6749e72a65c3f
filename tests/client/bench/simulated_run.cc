#include "tests/client/bench/simulated_run.h"

namespace txl::bench {

RunOptions ConstantRate(double rate, double seconds) {
  RunOptions options;
  options.mode = Mode::kOpen;
  options.arrivals = ArrivalKind::kConstant;
  options.rate.rate = rate;
  options.seconds = seconds;
  options.workload.prompt_tokens = Distribution::Fixed(1);
  options.workload.max_tokens = Distribution::Fixed(1);
  return options;
}

SimulatedResult Simulate(const RunOptions& options,
                         const SimulatedServer& server) {
  SharedRun shared{.options = options,
                   .vocabulary = 256,
                   .session_prefix = "s-",
                   .start = 0};
  SimulatedTarget target(server);
  return {.result = Driver(&shared, &target, 0, 1).Run(),
          .requests = target.requests(),
          .most_running = target.most_running(),
          .sessions_made = target.sessions_made(),
          .sessions_left = static_cast<int64_t>(target.sessions().size())};
}

Report SimulatedReport(const RunOptions& options, const SimulatedServer& server,
                       const Limits& limits) {
  LoadResult load;
  load.options.run = options;
  load.model = "simulated";
  load.result = Simulate(options, server).result;
  return MakeReport(load, limits);
}

}  // namespace txl::bench
