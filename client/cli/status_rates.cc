#include "client/cli/status_rates.h"

namespace txl::cli {
namespace {

double Uptime(const v1::GetServerStatusResponse& status) {
  return static_cast<double>(status.uptime().seconds()) +
         1e-9 * static_cast<double>(status.uptime().nanos());
}

int64_t Rows(const v1::GetServerStatusResponse& status) {
  return status.rows_decode() + status.rows_prefill() + status.rows_score() +
         status.rows_rebuild();
}

double Ratio(int64_t count, double of) {
  return of > 0 ? static_cast<double>(count) / of : 0;
}

}  // namespace

StatusRates RatesBetween(const v1::GetServerStatusResponse& before,
                         const v1::GetServerStatusResponse& after) {
  if (Uptime(after) < Uptime(before)) {
    return RatesBetween(v1::GetServerStatusResponse(), after);
  }
  const int64_t steps = after.steps() - before.steps();
  StatusRates rates;
  rates.seconds = Uptime(after) - Uptime(before);
  rates.tokens_per_second = Ratio(
      after.tokens_delivered() - before.tokens_delivered(), rates.seconds);
  rates.steps_per_second = Ratio(steps, rates.seconds);
  rates.rows_per_step =
      Ratio(Rows(after) - Rows(before), static_cast<double>(steps));
  for (const auto& [status, count] : after.turns_finished()) {
    const auto it = before.turns_finished().find(status);
    const int64_t ended =
        count - (it == before.turns_finished().end() ? 0 : it->second);
    if (ended > 0) rates.turns_ended[status] = ended;
  }
  return rates;
}

}  // namespace txl::cli
