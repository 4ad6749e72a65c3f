#include "client/cli/bench_flags.h"

#include <CLI/CLI.hpp>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "client/bench/plan/prompts.h"
#include "program/flag_checks.h"

namespace txl::cli {
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
          .add_option("--streams", run.streams,
                      "closed loop: so many streams, each with its next turn "
                      "when its last one ended")
          ->check(Between(1, 100'000))
          ->capture_default_str();
  command
      .add_option("--rate", flags->rate,
                  "open loop: requests a second, whatever becomes of them; "
                  "0: closed loop")
      ->check(Between(0, kMostRate))
      ->capture_default_str()
      ->excludes(streams);
  command.add_option("--arrivals", flags->arrivals, "of an open loop")
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
                      "requests (conversations, with --turns) in all, 0: as "
                      "--seconds says")
          ->check(AtLeast(0))
          ->capture_default_str();
  command
      .add_option("--seconds", run.seconds,
                  "time in which turns start, 0: 10, or as --requests says")
      ->check(Seconds())
      ->capture_default_str()
      ->excludes(requests);
  command
      .add_option("--warmup", run.warmup_seconds,
                  "seconds at the start that are not counted")
      ->check(Seconds())
      ->capture_default_str();
  command
      .add_option("--drain", run.drain_seconds,
                  "seconds after --seconds until running turns are cancelled")
      ->check(Seconds())
      ->capture_default_str();
  command
      .add_option("--max-running", run.max_running,
                  "open loop: turns that are due while so many run are not "
                  "sent")
      ->check(AtLeast(1))
      ->capture_default_str();
  command
      .add_option("--connections", flags->load.connections,
                  "connections, 0: one for each 50 streams")
      ->check(Between(0, 10'000))
      ->capture_default_str();
  command
      .add_option("--threads", flags->load.threads,
                  "threads, 0: one for each 8 connections, at most one for "
                  "each core")
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
                  "file of prompts instead, one a line; *.jsonl: objects with "
                  "\"text\" or \"tokens\" [default: none]")
      ->check(CLI::ExistingFile)
      ->group(kTurnGroup)
      ->excludes(prompt_tokens);
  add("--max-tokens", flags->max_tokens,
      "tokens of each turn, as --prompt-tokens");
  add("--turns", flags->turns,
      "turns of a conversation; above 1 it is a session");
  add("--think", flags->think_seconds,
      "seconds between the turns of a conversation");
  add("--cancel", workload.cancel_share,
      "share of turns that their client cancels midway")
      ->check(Between(0.0, 1.0));
  add("--slow", workload.slow_share, "share of turns whose client reads slowly")
      ->check(Between(0.0, 1.0));
  add("--slow-read", flags->load.run.slow_read_seconds,
      "seconds that a slow reader waits at each event")
      ->check(Seconds());
  add("--temperature", workload.temperature, "of the sampling, 0: greedy")
      ->check(AtLeast(0));
  add("--tokens-per-message", workload.tokens_per_message,
      "tokens that the server may send together")
      ->check(AtLeast(1));
  add("--seed", workload.seed, "of arrivals, prompts and draws: repeats a run");
}

void AddSeveralFlags(CLI::App& command, BenchFlags* flags) {
  CLI::Option* rates =
      command
          .add_option("--rates", flags->rates,
                      "one run at each of these rates, as 5,10,20 "
                      "[default: none]")
          ->delimiter(',')
          ->check(Above(0))
          ->group(kSeveralGroup);
  command
      .add_flag("--find-capacity", flags->find_capacity,
                "search the highest rate that meets every --limit, from --rate "
                "(or 1) on [default: off]")
      ->excludes(rates)
      ->group(kSeveralGroup);
  command
      .add_option("--good-share", flags->good_share,
                  "share of the requests that must meet them")
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
                  "what is fast enough, as ttft=200ms; also itl (longest gap), "
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
      .add_option("--html", flags->html_file,
                  "write the result as a page to this file [default: none]")
      ->type_name("FILE")
      ->group(kResultGroup);
  command
      .add_flag("--progress", flags->progress,
                "tell once a second how it goes, on standard error "
                "[default: only on a terminal]")
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
