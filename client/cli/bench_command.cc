// txl bench: a load test.

#include "client/cli/bench_command.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/bench/plan/workload.h"
#include "client/bench/result/compare.h"
#include "client/bench/result/report_json.h"
#include "client/bench/result/report_text.h"
#include "client/bench/result/result_file.h"
#include "client/bench/result/sweep.h"
#include "client/cli/command.h"
#include "client/cli/line_reader.h"
#include "client/cli/output.h"
#include "program/flag_checks.h"
#include "program/help.h"

namespace txl::cli {
namespace {

absl::StatusOr<bench::Report> RunOnce(const BenchPlan& plan,
                                      const BenchFlags& flags,
                                      Canceller* canceller) {
  bench::OnProgress on_progress;
  if (flags.progress || isatty(STDERR_FILENO)) {
    on_progress = [last = bench::ProgressSoFar()](
                      double seconds, const bench::Progress& progress) mutable {
      const bench::ProgressSoFar now = bench::SoFar(seconds, progress);
      std::fputs(bench::ProgressLine(last, now).c_str(), stderr);
      last = now;
    };
  }
  const auto result = bench::RunLoad(plan.load, canceller, on_progress);
  if (!result.ok()) return result.status();
  return bench::MakeReport(*result, plan.limits);
}

absl::StatusOr<bench::Sweep> RunSeveral(const BenchPlan& plan,
                                        const BenchFlags& flags,
                                        Canceller* canceller) {
  const auto at_rate = [&](double rate) -> absl::StatusOr<bench::Report> {
    if (canceller->cancelled()) return absl::CancelledError("interrupted");
    BenchPlan one = plan;
    one.load.run.rate.rate = rate;
    std::fprintf(stderr, "txl: a run at %g requests/s\n", rate);
    return RunOnce(one, flags, canceller);
  };
  if (plan.search.has_value()) {
    return bench::SearchCapacity(*plan.search, flags.good_share, at_rate);
  }
  return bench::RunRates(plan.rates, at_rate);
}

// What makes a run's figures worthless.
absl::Status Judge(const bench::Report& report) {
  if (!report.problems.empty()) {
    return absl::InternalError("a stream broke the rules of the API");
  }
  if (report.server.verdict == bench::ServerCheck::Verdict::kUnequal) {
    return absl::InternalError(
        "the server counts other tokens than were received");
  }
  return absl::OkStatus();
}

// Whether most of its turns came to the end that was meant for them.
bool MostEnded(const bench::Report& report) {
  int64_t ended = 0;
  for (const bench::Outcome outcome :
       {bench::Outcome::kOk, bench::Outcome::kCancelled}) {
    const auto found = report.outcomes.find(bench::OutcomeName(outcome));
    if (found != report.outcomes.end()) ended += found->second;
  }
  return 2 * ended > report.measured;
}

// A rate that is too much is a result, too; that every one is, is none.
int JudgeAll(const std::vector<bench::Report>& reports) {
  for (const bench::Report& report : reports) {
    const absl::Status status = Judge(report);
    if (!status.ok()) return Fail(status);
  }
  if (absl::c_any_of(reports, MostEnded)) return kDone;
  Complain("half of the requests or more did not end well");
  return kFailed;
}

// Whether the result's file can be written: found before the run. Nothing that
// is there is lost if the run comes to nothing.
absl::Status CheckFile(const std::string& path) {
  if (path.empty()) return absl::OkStatus();
  const absl::Status status = bench::CheckWritable(path);
  return status.ok() ? status
                     : absl::InvalidArgumentError(
                           absl::StrCat("--out: ", status.message()));
}

// Lines that begin with a word in capitals stand out at a terminal.
std::string Highlight(const std::string& text) {
  if (!WantsColor(STDOUT_FILENO)) return text;
  std::vector<std::string> lines = absl::StrSplit(text, '\n');
  for (std::string& line : lines) {
    if (line.size() > 1 && absl::ascii_isupper(line[0]) &&
        absl::ascii_isupper(line[1])) {
      line = Emphasize(line, Emphasis::kWarning, true);
    }
  }
  return absl::StrJoin(lines, "\n");
}

int WriteResult(const BenchFlags& flags, const nlohmann::ordered_json& json,
                const std::string& text) {
  WriteOut(flags.json ? bench::ToLine(bench::WithoutDetails(json))
                      : Highlight(text));
  if (flags.out_file.empty()) return kDone;
  const absl::Status status =
      bench::WriteFile(flags.out_file, bench::ToLine(json));
  return status.ok() ? kDone : Fail(status);
}

int RunAndReport(const BenchPlan& plan, const BenchFlags& flags,
                 Canceller* canceller) {
  nlohmann::ordered_json json;
  std::string text;
  std::vector<bench::Report> reports;
  if (!plan.rates.empty() || plan.search.has_value()) {
    auto sweep = RunSeveral(plan, flags, canceller);
    if (!sweep.ok()) return Fail(sweep.status());
    json = bench::ToJson(*sweep);
    text = bench::ToText(*sweep);
    reports = std::move(sweep->runs);
  } else {
    auto report = RunOnce(plan, flags, canceller);
    if (!report.ok()) return Fail(report.status());
    json = bench::ToJson(*report);
    text = bench::ToText(*report);
    reports.push_back(*std::move(report));
  }
  const int written = WriteResult(flags, json, text);
  return std::max(written, JudgeAll(reports));
}

int Bench(const BenchFlags& flags) {
  const auto plan = MakeBenchPlan(flags);
  if (!plan.ok()) return FailUsage(std::string(plan.status().message()));
  const absl::Status address = ValidateAddress(plan->load.channel.address);
  if (!address.ok()) return FailUsage(std::string(address.message()));
  const absl::Status file = CheckFile(flags.out_file);
  if (!file.ok()) return FailUsage(std::string(file.message()));
  Canceller canceller;
  CancelOnInterrupt watch(&canceller);
  const int exit_code = RunAndReport(*plan, flags, &canceller);
  return watch.interrupted() ? FailInterrupted() : exit_code;
}

int ComparePair(const std::string& a, const std::string& b, bool json) {
  const auto first = bench::ReadResult(a);
  if (!first.ok()) return FailUsage(std::string(first.status().message()));
  const auto second = bench::ReadResult(b);
  if (!second.ok()) return FailUsage(std::string(second.status().message()));
  const auto comparison = bench::Compare(*first, *second, a, b);
  if (!comparison.ok()) return Fail(comparison.status());
  WriteOut(json ? bench::ToLine(bench::ToJson(*comparison))
                : bench::ToText(*comparison));
  return kDone;
}

struct CompareFlags {
  std::string first;
  std::string second;
  bool json = false;
};

void AddCompare(CLI::App& bench_command, Run* run) {
  CLI::App* command = bench_command.add_subcommand(
      "compare", "Compare two results (--out), with 95 % confidence intervals");
  auto flags = std::make_shared<CompareFlags>();
  command->add_option("a", flags->first, "result of the first run")->required();
  command->add_option("b", flags->second, "result of the second run")
      ->required();
  command->add_flag("--json", flags->json,
                    "print a line of JSON [default: off]");
  command->callback([run, flags] {
    *run = [flags] {
      return ComparePair(flags->first, flags->second, flags->json);
    };
  });
}

}  // namespace

void AddBenchCommand(CLI::App& program, Run* run) {
  CLI::App* command = program.add_subcommand(
      "bench", "Load test, closed or open loop, with a report");
  auto flags = std::make_shared<BenchFlags>();
  AddBenchFlags(*command, flags.get());
  AddCompare(*command, run);
  // CLI11 calls this after a subcommand's callback, too.
  command->callback([run, flags, command] {
    if (!command->get_subcommands().empty()) return;
    *run = [flags] { return Bench(*flags); };
  });
}

namespace {

constexpr double kMostRate = 1e6;  // a second
constexpr double kMostTokens = std::numeric_limits<int32_t>::max();

constexpr char kTurnGroup[] = "Turns";
constexpr char kSeveralGroup[] = "Several runs of an open loop";
constexpr char kResultGroup[] = "Result";

// How much is asked at what time.
void AddLoopFlags(CLI::App& command, BenchFlags* flags) {
  bench::RunOptions& run = flags->load.run;
  CLI::Option* streams =
      command
          .add_option(
              "--streams", run.streams,
              "closed loop: streams, each of which runs one turn after another")
          ->check(Between(1, 100'000))
          ->capture_default_str();
  command
      .add_option("--rate", flags->rate,
                  "open loop: requests per second, however slow the server is; "
                  "0: closed loop")
      ->check(Between(0, kMostRate))
      ->capture_default_str()
      ->excludes(streams);
  command.add_option("--arrivals", flags->arrivals, "when requests are due")
      ->transform(OneOf({"poisson", "constant"}))
      ->capture_default_str();
  command
      .add_option("--ramp", run.rate.ramp_seconds,
                  "seconds in which the rate rises, or the streams start")
      ->check(Seconds())
      ->capture_default_str();
  command
      .add_option("--ramp-from", run.rate.ramp_from,
                  "rate at the start of the ramp")
      ->check(Between(0, kMostRate))
      ->capture_default_str();
}

// How long, and over what.
void AddSpanFlags(CLI::App& command, BenchFlags* flags) {
  bench::RunOptions& run = flags->load.run;
  CLI::Option* requests =
      command
          .add_option("--requests", run.requests,
                      "total number of requests (with --turns: conversations), "
                      "0: limited by --seconds")
          ->check(AtLeast(0))
          ->capture_default_str();
  command
      .add_option(
          "--seconds", run.seconds,
          "seconds in which turns start, 0: 10, or limited by --requests")
      ->check(Seconds())
      ->capture_default_str()
      ->excludes(requests);
  command
      .add_option("--warmup", run.warmup_seconds,
                  "seconds at the start that are not measured")
      ->check(Seconds())
      ->capture_default_str();
  command
      .add_option("--drain", run.drain_seconds,
                  "seconds after --seconds until running turns are cancelled")
      ->check(Seconds())
      ->capture_default_str();
  command
      .add_option(
          "--max-running", run.max_running,
          "open loop: running turns at most; turns due beyond are not sent")
      ->check(AtLeast(1))
      ->capture_default_str();
  command
      .add_option("--connections", flags->load.connections,
                  "number of connections, 0: one for every 50 streams")
      ->check(Between(0, 10'000))
      ->capture_default_str();
  command
      .add_option("--threads", flags->load.threads,
                  "number of threads, 0: one for every 8 connections, at most "
                  "one per core")
      ->check(Between(0, 1'000))
      ->capture_default_str();
}

void AddTurnFlags(CLI::App& command, BenchFlags* flags) {
  bench::Workload& workload = flags->load.run.workload;
  const auto add = [&](const char* name, auto& value, const char* help) {
    return command.add_option(name, value, help)
        ->capture_default_str()
        ->group(kTurnGroup);
  };
  CLI::Option* prompt_tokens =
      add("--prompt-tokens", flags->prompt_tokens,
          "random token ids before each turn: N, uniform:LOW:HIGH, "
          "exponential:MEAN:MAX or lognormal:MEDIAN:SIGMA:MAX");
  command
      .add_option("--prompts", flags->prompts_file,
                  "file of prompts instead, one per line; *.jsonl: objects "
                  "with \"text\" or \"tokens\" [default: none]")
      ->check(CLI::ExistingFile)
      ->group(kTurnGroup)
      ->excludes(prompt_tokens);
  add("--max-tokens", flags->max_tokens,
      "tokens of each turn, in the forms of --prompt-tokens");
  add("--turns", flags->turns,
      "turns of a conversation; with more than one it is a session");
  add("--think", flags->think_seconds,
      "seconds between the turns of a conversation");
  add("--cancel", workload.cancel_share,
      "share of turns that the client cancels midway")
      ->check(Between(0.0, 1.0));
  add("--slow", workload.slow_share, "share of turns whose client reads slowly")
      ->check(Between(0.0, 1.0));
  add("--slow-read", flags->load.run.slow_read_seconds,
      "seconds that a slow reader waits at each event")
      ->check(Seconds());
  add("--temperature", workload.temperature, "sampling temperature, 0: greedy")
      ->check(AtLeast(0));
  add("--tokens-per-message", workload.tokens_per_message,
      "tokens that the server may send together")
      ->check(AtLeast(1));
  add("--seed", workload.seed, "seed of arrivals, prompts and draws");
}

void AddSeveralFlags(CLI::App& command, BenchFlags* flags) {
  CLI::Option* rates =
      AddNumbers(command, "--rates", &flags->rates,
                 "one run at each of these rates, like 5,10,20 [default: none]",
                 Above(0))
          ->group(kSeveralGroup);
  command
      .add_flag("--find-capacity", flags->find_capacity,
                "search for the highest rate that meets every --limit, from "
                "--rate (or 1) on [default: off]")
      ->excludes(rates)
      ->group(kSeveralGroup);
  command
      .add_option("--good-share", flags->good_share,
                  "share of the requests that must meet every --limit")
      ->check(Between(0.0, 1.0))
      ->capture_default_str()
      ->group(kSeveralGroup);
  command
      .add_option("--tolerance", flags->search.tolerance,
                  "how far the lowest bad rate may be above the highest good "
                  "one, as a share")
      ->check(Between(0.001, 1.0))
      ->capture_default_str()
      ->group(kSeveralGroup);
  command
      .add_option("--max-trials", flags->search.max_trials, "runs of a search")
      ->check(AtLeast(1))
      ->capture_default_str()
      ->group(kSeveralGroup);
}

void AddResultFlags(CLI::App& command, BenchFlags* flags) {
  command
      .add_option("--limit", flags->limits,
                  "latency to meet, like ttft=200ms; also itl (longest gap), "
                  "tpot (mean gap), e2e; repeatable [default: none]")
      ->group(kResultGroup);
  command
      .add_flag("--json", flags->json,
                "print the result as a line of JSON [default: off]")
      ->group(kResultGroup);
  command
      .add_option("--out", flags->out_file,
                  "write the result with histograms as JSON to this file "
                  "[default: none]")
      ->type_name("FILE")
      ->group(kResultGroup);
  command
      .add_flag("--progress", flags->progress,
                "report progress on standard error once a second [default: "
                "only on a terminal]")
      ->group(kResultGroup);
}

absl::Status SetDistribution(const char* flag, const std::string& text,
                             double lowest, double most,
                             bench::Distribution* value) {
  auto parsed = bench::Distribution::Parse(text);
  if (!parsed.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(flag, ": ", parsed.status().message()));
  }
  const double least =
      parsed->bounded_below() ? parsed->lowest() : parsed->highest();
  if (least < lowest) {
    return absl::InvalidArgumentError(
        absl::StrCat(flag, ": '", text, "' is less than ", lowest));
  }
  // Without a MAX it is none.
  if (parsed->highest() > most && std::isfinite(parsed->highest())) {
    return absl::InvalidArgumentError(
        absl::StrCat(flag, ": '", text, "' is more than ", most));
  }
  *value = *std::move(parsed);
  return absl::OkStatus();
}

// One run after the other, each at a rate of its own.
absl::Status SetSeveral(const BenchFlags& flags, BenchPlan* plan) {
  plan->rates = flags.rates;
  if (!flags.rates.empty() || flags.find_capacity) {
    plan->load.run.mode = bench::Mode::kOpen;
  }
  if (!flags.find_capacity) return absl::OkStatus();
  if (!plan->limits.any()) {
    return absl::InvalidArgumentError("--find-capacity needs a --limit");
  }
  plan->search = flags.search;
  if (flags.rate > 0) plan->search->first_rate = flags.rate;
  return absl::OkStatus();
}

}  // namespace

BenchFlags::BenchFlags() {
  const bench::Workload& workload = load.run.workload;
  arrivals = load.run.arrivals == bench::ArrivalKind::kPoisson ? "poisson"
                                                               : "constant";
  prompt_tokens = workload.prompt_tokens.text();
  max_tokens = workload.max_tokens.text();
  turns = workload.turns.text();
  think_seconds = workload.think_seconds.text();
}

void AddBenchFlags(CLI::App& command, BenchFlags* flags) {
  AddServerFlags(command, &flags->server);
  AddLoopFlags(command, flags);
  AddSpanFlags(command, flags);
  AddTurnFlags(command, flags);
  AddSeveralFlags(command, flags);
  AddResultFlags(command, flags);
}

absl::StatusOr<BenchPlan> MakeBenchPlan(const BenchFlags& flags) {
  BenchPlan plan;
  plan.load = flags.load;
  plan.load.channel = flags.server.channel;
  plan.load.timeout_seconds = flags.server.timeout_seconds;
  bench::RunOptions& run = plan.load.run;
  if (flags.rate > 0) {
    run.mode = bench::Mode::kOpen;
    run.rate.rate = flags.rate;
  }
  run.arrivals = flags.arrivals == "poisson" ? bench::ArrivalKind::kPoisson
                                             : bench::ArrivalKind::kConstant;
  bench::Workload& workload = run.workload;
  absl::Status status =
      SetDistribution("--prompt-tokens", flags.prompt_tokens, 1, kMostTokens,
                      &workload.prompt_tokens);
  status.Update(SetDistribution("--max-tokens", flags.max_tokens, 1,
                                kMostTokens, &workload.max_tokens));
  status.Update(
      SetDistribution("--turns", flags.turns, 1, kMostTokens, &workload.turns));
  status.Update(SetDistribution("--think", flags.think_seconds, 0, kMostSeconds,
                                &workload.think_seconds));
  if (!status.ok()) return status;
  if (!flags.prompts_file.empty()) {
    auto prompts = bench::ReadPrompts(flags.prompts_file);
    if (!prompts.ok()) {
      return absl::Status(
          prompts.status().code(),
          absl::StrCat("--prompts: ", prompts.status().message()));
    }
    workload.prompts = *std::move(prompts);
  }
  if (run.seconds > 0 && run.warmup_seconds >= run.seconds) {
    return absl::InvalidArgumentError(
        "--warmup leaves nothing of --seconds to measure");
  }
  auto limits = bench::ParseLimits(flags.limits);
  if (!limits.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--limit: ", limits.status().message()));
  }
  plan.limits = *limits;
  status = SetSeveral(flags, &plan);
  if (!status.ok()) return status;
  return plan;
}

}  // namespace txl::cli
