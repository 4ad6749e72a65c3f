// txl bench: a load test.

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/bench/result/compare.h"
#include "client/bench/result/page.h"
#include "client/bench/result/report_json.h"
#include "client/bench/result/report_text.h"
#include "client/bench/result/result_file.h"
#include "client/bench/result/sweep.h"
#include "client/cli/bench_flags.h"
#include "client/cli/command.h"
#include "client/cli/interrupt.h"
#include "client/cli/output.h"
#include "program/color.h"

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
absl::Status Judge(const std::vector<bench::Report>& reports) {
  bool any_ok = false;
  for (const bench::Report& report : reports) {
    absl::Status status = Judge(report);
    if (!status.ok()) return status;
    any_ok = any_ok || MostEnded(report);
  }
  return any_ok ? absl::OkStatus()
                : absl::UnavailableError(
                      "half of the requests or more did not end well");
}

// Whether the result's files can be written: found before the run.
absl::Status CheckFiles(const BenchFlags& flags) {
  for (const auto& [flag, path] :
       {std::pair{"--out", flags.out_file}, {"--html", flags.html_file}}) {
    if (path.empty()) continue;
    // Nothing that is there is lost if the run comes to nothing.
    const absl::Status status = bench::CheckWritable(path);
    if (!status.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(flag, ": ", status.message()));
    }
  }
  return absl::OkStatus();
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

int WriteResults(const BenchFlags& flags, const nlohmann::ordered_json& json,
                 const std::string& text) {
  WriteOut(flags.json ? bench::ToLine(bench::WithoutDetails(json))
                      : Highlight(text));
  absl::Status status;
  if (!flags.out_file.empty()) {
    status.Update(bench::WriteFile(flags.out_file, bench::ToLine(json)));
  }
  if (!flags.html_file.empty()) {
    const auto page = bench::MakePage(json);
    status.Update(page.ok() ? bench::WriteFile(flags.html_file, *page)
                            : page.status());
  }
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
  const int written = WriteResults(flags, json, text);
  const absl::Status judgement = Judge(reports);
  return judgement.ok() ? written : Fail(judgement);
}

int Bench(const BenchFlags& flags) {
  const auto plan = MakeBenchPlan(flags);
  if (!plan.ok()) return FailUsage(std::string(plan.status().message()));
  const absl::Status address = ValidateAddress(plan->load.channel.address);
  if (!address.ok()) return FailUsage(std::string(address.message()));
  const absl::Status files = CheckFiles(flags);
  if (!files.ok()) return FailUsage(std::string(files.message()));
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
  const auto comparison = bench::Compare(*first, *second);
  if (!comparison.ok()) return Fail(comparison.status());
  WriteOut(json ? bench::ToLine(bench::ToJson(*comparison))
                : bench::ToText(*comparison));
  return kDone;
}

int WritePage(const std::string& result, const std::string& html) {
  const auto json = bench::ReadResult(result);
  if (!json.ok()) return FailUsage(std::string(json.status().message()));
  const auto page = bench::MakePage(*json);
  if (!page.ok()) return Fail(page.status());
  const absl::Status status = bench::WriteFile(html, *page);
  return status.ok() ? kDone : Fail(status);
}

struct FileFlags {
  std::string first;
  std::string second;
  bool json = false;
};

void AddCompare(CLI::App& bench_command, Run* run) {
  CLI::App* command = bench_command.add_subcommand(
      "compare", "Two results (--out) beside each other, with 95 % intervals");
  auto flags = std::make_shared<FileFlags>();
  command->add_option("a", flags->first, "JSON of the first")->required();
  command->add_option("b", flags->second, "JSON of the second")->required();
  command->add_flag("--json", flags->json,
                    "print a line of JSON [default: off]");
  command->callback([run, flags] {
    *run = [flags] {
      return ComparePair(flags->first, flags->second, flags->json);
    };
  });
}

void AddPage(CLI::App& bench_command, Run* run) {
  CLI::App* command = bench_command.add_subcommand(
      "page", "The page of a result that --out has written");
  auto flags = std::make_shared<FileFlags>();
  command->add_option("result", flags->first, "its JSON")->required();
  command->add_option("html", flags->second, "file to write")->required();
  command->callback([run, flags] {
    *run = [flags] { return WritePage(flags->first, flags->second); };
  });
}

}  // namespace

void AddBenchCommand(CLI::App& program, Run* run) {
  CLI::App* command = program.add_subcommand(
      "bench", "Load test: closed and open loop, with a report");
  auto flags = std::make_shared<BenchFlags>();
  AddBenchFlags(*command, flags.get());
  AddCompare(*command, run);
  AddPage(*command, run);
  // CLI11 calls this after a subcommand's callback, too.
  command->callback([run, flags, command] {
    if (!command->get_subcommands().empty()) return;
    *run = [flags] { return Bench(*flags); };
  });
}

}  // namespace txl::cli
