#include "client/bench/result/report_text.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "client/bench/result/summary.h"
#include "program/version.h"

namespace txl::bench {
namespace {

constexpr size_t kStallsShown = 5;

std::string Load(const Report& report) {
  const RunOptions& run = report.options.run;
  const std::string connections =
      absl::StrCat(report.usage.connections, " connections");
  if (run.mode == Mode::kClosed) {
    return absl::StrFormat("closed loop: %d streams on %s", run.streams,
                           connections);
  }
  return absl::StrFormat(
      "open loop: %g requests/s, %s arrivals on %s", run.rate.rate,
      run.arrivals == ArrivalKind::kPoisson ? "Poisson" : "constant",
      connections);
}

std::string Prompts(const Workload& workload) {
  if (workload.prompts.empty()) {
    return absl::StrCat("prompts of ", workload.prompt_tokens.text(),
                        " tokens");
  }
  return absl::StrCat(workload.prompts.size(), " prompts");
}

std::string Row(const char* name, const Histogram& histogram) {
  constexpr double kMs = 1e3;
  const LatencySummary s = Summarize(histogram);
  return absl::StrFormat("%-22s %9.2f %9.2f %9.2f %9.2f %9.2f %9.2f %9d\n",
                         name, s.mean * kMs, s.p50 * kMs, s.p90 * kMs,
                         s.p95 * kMs, s.p99 * kMs, s.max * kMs, s.count);
}

std::string Table(const Report& report) {
  std::string text =
      absl::StrFormat("%-22s %9s %9s %9s %9s %9s %9s %9s\n", "milliseconds",
                      "mean", "p50", "p90", "p95", "p99", "max", "samples");
  text += Row("time to first token", report.first_token);
  if (report.options.run.mode == Mode::kOpen) {
    text += Row("  from send", report.first_token_from_send);
  }
  text += Row("inter-token latency", report.inter_token);
  text += Row("mean gap of a turn", report.per_token);
  text += Row("end to end", report.end_to_end);
  text += Row("dispatch lag (tester)", report.dispatch_lag);
  return text;
}

std::string Counts(const Report& report) {
  std::string text;
  for (const auto& [status, count] : report.statuses) {
    absl::StrAppendFormat(&text, "  %-40s %d\n", status, count);
    const auto error = report.errors.find(status);
    if (error == report.errors.end()) continue;
    absl::StrAppend(&text, "    first: ", error->second, "\n");
  }
  for (const auto& [problem, count] : report.problems) {
    absl::StrAppendFormat(&text, "  MALFORMED STREAM: %-22s %d\n", problem,
                          count);
  }
  return text;
}

std::string Judgements(const Report& report) {
  std::string text;
  if (report.goodput) {
    const Goodput& goodput = *report.goodput;
    absl::StrAppendFormat(
        &text, "goodput: %.2f requests/s, %.2f %% of %d met every limit\n",
        report.seconds > 0 ? static_cast<double>(goodput.met) / report.seconds
                           : 0,
        100 * goodput.share(), goodput.judged);
  }
  if (report.backlog && report.backlog->beyond_capacity) {
    absl::StrAppend(&text, "BEYOND CAPACITY: ", report.backlog->reason, "\n");
  }
  for (size_t i = 0; i < std::min(kStallsShown, report.stalls.size()); ++i) {
    const Stall& stall = report.stalls[i];
    absl::StrAppendFormat(
        &text,
        "STALL: no token for %.2f s, %.2f s after the start; it hit %d of %d "
        "requests (%.1f %%)\n",
        ToSeconds(stall.length), ToSeconds(stall.start), stall.hit,
        report.measured,
        report.measured == 0 ? 0.0
                             : 100.0 * static_cast<double>(stall.hit) /
                                   static_cast<double>(report.measured));
  }
  if (report.client_bound()) {
    absl::StrAppend(&text,
                    "CLIENT-BOUND: the tester started requests late; these "
                    "are not the server's figures alone\n");
  }
  return text;
}

std::string Counters(const ServerCheck& check) {
  switch (check.verdict) {
    case ServerCheck::Verdict::kEqual:
      return absl::StrFormat("server's counters: the same %d tokens\n",
                             check.own_tokens);
    case ServerCheck::Verdict::kConsistent:
      return absl::StrFormat(
          "server's counters: %d tokens, %d received (turns were cut short)\n",
          check.server_tokens, check.own_tokens);
    case ServerCheck::Verdict::kUnequal:
      return absl::StrFormat(
          "SERVER'S COUNTERS DIFFER: %d tokens delivered, %d received\n",
          check.server_tokens, check.own_tokens);
    case ServerCheck::Verdict::kNotComparable:
      break;
  }
  return absl::StrFormat(
      "server's counters: not comparable, %d turns ended there and %d here\n",
      check.server_turns, check.own_turns);
}

std::string Found(const Capacity& capacity) {
  if (capacity.good == 0) {
    return absl::StrFormat(
        "capacity: none found: %.3f requests/s is too much\n", capacity.bad);
  }
  if (std::isinf(capacity.bad)) {
    return absl::StrFormat(
        "capacity: %.3f requests/s or more: no rate was too much\n",
        capacity.good);
  }
  return absl::StrFormat("capacity: %.3f requests/s (%.3f is too much)%s\n",
                         capacity.good, capacity.bad,
                         capacity.exact ? "" : ", not narrowed down further");
}

}  // namespace

std::string ToText(const Report& report) {
  const double tokens = static_cast<double>(report.tokens);
  std::string text = absl::StrFormat(
      "%s, %s, %s tokens each\n"
      "model %s, server %s; %s, txl %s on %s\n"
      "%d requests, %d of them measured over %.2f s: %.1f tokens/s, "
      "%.2f requests/s\n",
      Load(report), Prompts(report.options.run.workload),
      report.options.run.workload.max_tokens.text(), report.model,
      report.server_version,
      absl::FormatTime("%Y-%m-%d %H:%M", report.start, absl::LocalTimeZone()),
      kVersion, report.host, report.requests, report.measured, report.seconds,
      report.tokens_per_second, report.requests_per_second);
  text += Counts(report);
  text += Table(report);
  text += Judgements(report);
  text += Counters(report.server);
  absl::StrAppendFormat(
      &text, "tester: %.2f s of processor, %.1f us per token, %d threads\n",
      report.usage.cpu_seconds,
      tokens > 0 ? 1e6 * report.usage.cpu_seconds / tokens : 0.0,
      report.usage.threads);
  return text;
}

std::string ToText(const Sweep& sweep) {
  std::string text = absl::StrFormat("%10s %10s %10s %10s %10s %10s %10s\n",
                                     "rate", "tokens/s", "ttft p50", "ttft p99",
                                     "itl p99", "e2e p99", "good %");
  for (const Report& run : sweep.runs) {
    const auto ms = [](const Histogram& histogram, double q) {
      return 1e3 * ToSeconds(histogram.Percentile(q));
    };
    absl::StrAppendFormat(
        &text, "%10.3f %10.1f %10.2f %10.2f %10.2f %10.2f %10.2f%s\n",
        run.options.run.rate.rate, run.tokens_per_second,
        ms(run.first_token, 0.5), ms(run.first_token, 0.99),
        ms(run.inter_token, 0.99), ms(run.end_to_end, 0.99),
        run.goodput ? 100 * run.goodput->share() : 0.0,
        absl::StrCat(run.backlog && run.backlog->beyond_capacity
                         ? "  beyond capacity"
                         : "",
                     run.client_bound() ? "  client-bound" : ""));
  }
  if (sweep.capacity) text += Found(*sweep.capacity);
  if (const Report* main = MainRun(sweep)) text += "\n" + ToText(*main);
  return text;
}

ProgressSoFar SoFar(double seconds, const Progress& progress) {
  return {.seconds = seconds,
          .sent = progress.sent,
          .ended = progress.ended,
          .failed = progress.failed,
          .tokens = progress.tokens};
}

std::string ProgressLine(const ProgressSoFar& last, const ProgressSoFar& now) {
  const double seconds = std::max(1e-9, now.seconds - last.seconds);
  const auto rate = [&](int64_t from, int64_t to) {
    return static_cast<double>(to - from) / seconds;
  };
  return absl::StrFormat(
      "%4.0f s: %.1f tokens/s, %.1f requests/s sent, %.1f ended, %d running, "
      "%d failed\n",
      now.seconds, rate(last.tokens, now.tokens), rate(last.sent, now.sent),
      rate(last.ended, now.ended), now.sent - now.ended, now.failed);
}

}  // namespace txl::bench
