// txl bench as a program, against canned answers.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "tests/client/fake_service.h"
#include "tests/client/process.h"

namespace txl::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

class Bench : public ::testing::Test {
 protected:
  Completed Run(const std::string& flags) {
    std::vector<std::string> argv = {TXL_PROGRAM, "bench"};
    for (const auto flag : absl::StrSplit(flags, ' ', absl::SkipEmpty())) {
      argv.emplace_back(flag);
    }
    argv.push_back("--server");
    argv.push_back(server_.address());
    return RunProgram(argv);
  }
  // Of a file of this test.
  std::string Path(const std::string& name) const {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    return absl::StrCat(::testing::TempDir(), "/bench-", test->name(), "-",
                        name);
  }

  FakeServer server_;
};

TEST_F(Bench, AnOpenLoopSendsAtItsRateAndReportsIt) {
  const Completed run =
      Run("--rate 400 --arrivals constant --requests 20 --prompt-tokens "
          "uniform:2:6 --max-tokens 5 --seed 7 --limit ttft=1h --json");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const auto json = nlohmann::json::parse(run.out);
  EXPECT_EQ(json["mode"], "open loop");
  EXPECT_EQ(json["rate"], 400.0);
  EXPECT_EQ(json["arrivals"], "constant");
  EXPECT_EQ(json["prompt_tokens"], "uniform:2:6");
  EXPECT_EQ(json["requests"], 20);
  EXPECT_EQ(json["tokens"], 100);
  EXPECT_EQ(json["goodput"]["share"], 1.0);
  EXPECT_TRUE(json["tester"].contains("dispatch_lag_seconds"));
  for (const auto& request : server_->generate_requests()) {
    EXPECT_GE(request.tokens().ids_size(), 2);
    EXPECT_LE(request.tokens().ids_size(), 6);
  }
}

TEST_F(Bench, SendsThePromptsOfAFile) {
  std::ofstream(Path("p.jsonl"))
      << "{\"text\": \"ROMEO:\"}\n{\"tokens\": [1, 2]}\n";
  const Completed run = Run(absl::StrCat("--streams 1 --requests 3 --prompts ",
                                         Path("p.jsonl"), " --json"));
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const auto requests = server_->generate_requests();
  ASSERT_EQ(requests.size(), 3u);
  EXPECT_EQ(requests[0].text(), "ROMEO:");
  EXPECT_EQ(requests[1].tokens().ids_size(), 2);
  EXPECT_EQ(requests[2].text(), "ROMEO:");
}

TEST_F(Bench, WritesJsonThatCompareReadsAgain) {
  const Completed run = Run(absl::StrCat(
      "--streams 2 --requests 30 --max-tokens 5 --out ", Path("a.json")));
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("time to first token"));
  const auto json = nlohmann::json::parse(ReadFile(Path("a.json")));
  EXPECT_TRUE(json.contains("histograms"));

  const Completed compared = RunProgram(
      {TXL_PROGRAM, "bench", "compare", Path("a.json"), Path("a.json")});
  EXPECT_EQ(compared.exit_code, 0) << compared.err;
  EXPECT_THAT(compared.out, HasSubstr("time to first token p99"));
  EXPECT_THAT(compared.out, Not(HasSubstr("differs")));
}

TEST_F(Bench, FindsBeforeTheRunThatAFileCannotBeWritten) {
  const Completed run = Run("--requests 1 --out /no/such/folder/x");
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.err, HasSubstr("--out: /no/such/folder/x"));
  EXPECT_TRUE(server_->generate_requests().empty());
}

TEST_F(Bench, FailsWhereHalfOfTheRequestsDo) {
  std::atomic<int> turn = 0;
  int every = 2;
  server_->on_generate = [&](grpc::ServerContext*, const v1::GenerateRequest&,
                             FakeService::Writer* writer) {
    if (++turn % every == 0) {
      return FakeError(grpc::RESOURCE_EXHAUSTED, "full", "QUEUE_FULL");
    }
    for (const auto& event : TurnEvents(1, "ok")) writer->Write(event);
    return grpc::Status::OK;
  };
  const Completed half = Run("--streams 1 --requests 12");
  EXPECT_EQ(half.exit_code, 1);
  EXPECT_THAT(half.err, HasSubstr("half of the requests or more"));
  EXPECT_THAT(half.err, Not(HasSubstr("UNAVAILABLE")));
  EXPECT_THAT(half.out, HasSubstr("    first: full\n"));
  every = 3;
  EXPECT_EQ(Run("--streams 1 --requests 12").exit_code, 0);
}

TEST_F(Bench, SaysWhenWhereAndWithWhatItRan) {
  const auto json =
      nlohmann::json::parse(Run("--streams 1 --requests 1 --json").out);
  absl::Time date;
  ASSERT_TRUE(absl::ParseTime(absl::RFC3339_full,
                              json["date"].get<std::string>(), &date, nullptr));
  EXPECT_LT(absl::Now() - date, absl::Hours(1));
  EXPECT_EQ(absl::StrCat("txl ", json["version"].get<std::string>(), "\n"),
            RunProgram({TXL_PROGRAM, "--version"}).out);
  EXPECT_NE(json["host"], "");
}

TEST_F(Bench, RunsAtSeveralRates) {
  const Completed run =
      Run("--rates 200,400 --requests 10 --max-tokens 5 --json");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const auto json = nlohmann::json::parse(run.out);
  EXPECT_EQ(json["kind"], "sweep");
  ASSERT_EQ(json["runs"].size(), 2u);
  EXPECT_EQ(json["runs"][1]["rate"], 400.0);
  EXPECT_THAT(run.err, HasSubstr("400 requests/s"));
}

TEST_F(Bench, SearchesTheCapacity) {
  // No limit can be missed, so that the search ends with its trials.
  const Completed run =
      Run("--find-capacity --rate 200 --max-trials 2 --seconds 0.2 "
          "--max-tokens 5 --limit e2e=1h --json");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const auto json = nlohmann::json::parse(run.out);
  EXPECT_EQ(json["capacity"]["within_tolerance"], false);
  EXPECT_EQ(json["runs"].size(), 2u);
}

TEST_F(Bench, FailsWhenTheServerCountsOtherTokens) {
  server_->turns_ok_step = 4;
  server_->tokens_step = 21;  // 4 turns of 5 tokens were sent
  const Completed run = Run("--streams 1 --requests 4 --max-tokens 5");
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.out, HasSubstr("DIFFER: 21 tokens delivered, 20 received"));
  server_->tokens_step = 20;
  const Completed equal = Run("--streams 1 --requests 4 --max-tokens 5");
  EXPECT_EQ(equal.exit_code, 0) << equal.err;
  EXPECT_THAT(equal.out, HasSubstr("the same 20 tokens"));
}

TEST_F(Bench, TellsHowItGoesWhenAskedUntilItIsInterrupted) {
  server_->on_generate = [](grpc::ServerContext* context,
                            const v1::GenerateRequest&,
                            FakeService::Writer* writer) {
    writer->Write(StartedEvent(0, 1));
    return WaitUntilCancelled(context);
  };
  Process program({TXL_PROGRAM, "bench", "--streams", "1", "--requests", "9",
                   "--progress", "--server", server_.address()});
  while (program.Err().find(" 1 running") == std::string::npos) {
    absl::SleepFor(absl::Milliseconds(10));
  }
  program.Signal(SIGINT);
  EXPECT_THAT(program.ReadRest(), HasSubstr("CANCELLED"));
  EXPECT_EQ(program.Wait(), 130);
  EXPECT_THAT(program.Err(), HasSubstr("txl: interrupted"));
}

TEST_F(Bench, RefusesFlagsThatMakeNoSense) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"--prompt-tokens many", "--prompt-tokens"},
      {"--max-tokens 0", "--max-tokens"},
      {"--max-tokens uniform:0:5", "--max-tokens"},
      {"--limit fast", "--limit"},
      {"--find-capacity", "--limit"},
      {"--rate -1", "--rate"},
      {"--rate 5 --streams 3", "--streams"},
      {"--seconds 5 --requests 3", "--requests"},
      {"--seconds 5 --warmup 5", "--warmup"},
      {"--cancel 1.5", "--cancel"},
      {"--arrivals sometimes", "--arrivals"},
      {"--prompts no-such-file", "--prompts"},
      {"--rates 1,x", "--rates"},
      {"dance", "dance"}};
  for (const auto& [flags, named] : cases) {
    const Completed run = Run(flags);
    EXPECT_EQ(run.exit_code, 2) << flags;
    EXPECT_THAT(run.err, HasSubstr(named)) << flags;
  }
  EXPECT_TRUE(server_->generate_requests().empty());
}

TEST_F(Bench, CompareRefusesOtherFiles) {
  std::ofstream(Path("other.json")) << "{}";
  const std::string none = Path("none.json");
  EXPECT_EQ(RunProgram({TXL_PROGRAM, "bench", "compare", none, none}).exit_code,
            2);
  EXPECT_EQ(RunProgram({TXL_PROGRAM, "bench", "compare", Path("other.json"),
                        Path("other.json")})
                .exit_code,
            1);
  EXPECT_EQ(RunProgram({TXL_PROGRAM, "bench", "compare"}).exit_code, 2);
}

}  // namespace
}  // namespace txl::testing
