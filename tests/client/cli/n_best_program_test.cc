// `txl score --n-best` and `txl generate --n` as programs.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "absl/strings/str_split.h"
#include "tests/client/fake_service.h"
#include "tests/client/process.h"

namespace txl::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class NBestProgram : public ::testing::Test {
 protected:
  Completed Run(const std::string& arguments, const std::string& input = "") {
    std::vector<std::string> argv = {TXL_PROGRAM};
    for (const auto part : absl::StrSplit(arguments, ' ')) {
      argv.emplace_back(part);
    }
    argv.insert(argv.end(), {"--server", server_.address()});
    return RunProgram(argv, input);
  }

  FakeServer server_;
};

TEST_F(NBestProgram, ScoresEveryLineInOrder) {
  const Completed run = Run("score --n-best -",
                            "{\"alternatives\": [\"a\", \"h\"]}\n\n"
                            "{\"alternatives\": [\"bb\"]}\n");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  const std::vector<std::string> lines = absl::StrSplit(run.out, '\n');
  ASSERT_EQ(lines.size(), 3u);
  const auto first = nlohmann::json::parse(lines[0]);
  EXPECT_EQ(first["best"], 1);  // "h" is 0, "a" -1/8
  EXPECT_EQ(first["sum_logprob"][0], -0.125);
  EXPECT_EQ(nlohmann::json::parse(lines[1])["token_count"][0], 2);
}

TEST_F(NBestProgram, NamesTheLineThatIsWrong) {
  const Completed run =
      Run("score --n-best -", "{\"alternatives\": [\"a\"]}\n\n{}\n");
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.err, HasSubstr("line 3: \"alternatives\" must hold"));
  EXPECT_THAT(run.out, HasSubstr("\"best\":0"));
  server_->unary_status =
      FakeError(grpc::RESOURCE_EXHAUSTED, "full", "QUEUE_FULL");
  EXPECT_THAT(Run("score --n-best -", "{\"alternatives\": [\"a\"]}").err,
              HasSubstr("line 1: full"));
}

TEST_F(NBestProgram, NamesThePartOfTheLineThatTheServerRefuses) {
  for (const auto& [field, place] :
       {std::pair("alternatives[1].text", "alternatives[1]"),
        std::pair("alternatives[0]", "alternatives[0]"),
        std::pair("text", "context"), std::pair("session_id", "session")}) {
    server_->unary_status = FakeError(grpc::INVALID_ARGUMENT, "holds no token",
                                      "FIELD_INVALID", field);
    EXPECT_THAT(
        Run("score --n-best -", "{\"alternatives\": [\"a\", \"\"]}").err,
        HasSubstr(std::string("line 1: ") + place + ": holds no token"));
  }
}

TEST_F(NBestProgram, NamesTheSessionThatIsNotThere) {
  server_->unary_status =
      FakeError(grpc::NOT_FOUND, "no such session", "SESSION_UNKNOWN");
  EXPECT_THAT(
      Run("score --n-best -", R"({"alternatives": ["a"], "session": "verona"})")
          .err,
      HasSubstr("line 1: session verona: no such session"));
}

TEST_F(NBestProgram, ScoreWantsOneOfAFileAndAList) {
  EXPECT_EQ(Run("score").exit_code, 2);
  EXPECT_EQ(Run("score - --n-best -").exit_code, 2);
}

TEST_F(NBestProgram, SamplesComeBehindAPromptThatIsFedOnce) {
  const Completed run = Run("generate --tokens 1,2,3 --n 3 --seed 7");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.out, "[0]\nHello\n[1]\nHello\n[2]\nHello\n");
  EXPECT_THAT(server_->append_sizes(), ::testing::ElementsAre(3));
  const auto requests = server_->generate_requests();
  ASSERT_EQ(requests.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(requests[i].sampling().seed(), 7 + i);
    EXPECT_FALSE(requests[i].has_tokens());
    EXPECT_THAT(requests[i].session_id(), HasSubstr("made-"));
  }
  EXPECT_THAT(server_->sessions(), IsEmpty());
}

TEST_F(NBestProgram, EventsOfSamplesSayWhose) {
  const Completed run = Run("generate --tokens 1 --n 2 --json");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  std::vector<int> samples;
  for (const auto line : absl::StrSplit(run.out, '\n', absl::SkipEmpty())) {
    samples.push_back(nlohmann::json::parse(line)["sample"].get<int>());
  }
  ASSERT_EQ(samples.size(), 14u);  // Started, five tokens, Finished
  EXPECT_EQ(samples.front(), 0);
  EXPECT_EQ(samples.back(), 1);
}

TEST_F(NBestProgram, AFailedSampleLeavesNoSessionBehind) {
  server_->on_generate = [](grpc::ServerContext*, const v1::GenerateRequest&,
                            FakeService::Writer*) {
    return FakeError(grpc::INVALID_ARGUMENT, "no", "FIELD_INVALID");
  };
  EXPECT_EQ(Run("generate --tokens 1 --n 2").exit_code, 1);
  EXPECT_THAT(server_->sessions(), IsEmpty());
  EXPECT_EQ(Run("generate --tokens 1 --n 2 --request-id a").exit_code, 2);
}

}  // namespace
}  // namespace txl::testing
