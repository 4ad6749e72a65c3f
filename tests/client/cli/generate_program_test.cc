// `txl generate` as a program.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "absl/strings/str_split.h"
#include "absl/synchronization/notification.h"
#include "tests/client/fake_service.h"
#include "tests/client/process.h"

namespace txl::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class GenerateProgram : public ::testing::Test {
 protected:
  std::vector<std::string> Argv(std::vector<std::string> flags) const {
    std::vector<std::string> argv = {TXL_PROGRAM, "generate", "--server",
                                     server_.address()};
    argv.insert(argv.end(), flags.begin(), flags.end());
    return argv;
  }

  FakeServer server_;
};

TEST_F(GenerateProgram, PrintsTheTextAndExitsWithZero) {
  const Completed run = RunProgram(Argv({"--prompt", "abc"}));
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.out, "Hello\n");
  EXPECT_EQ(run.err, "");
  EXPECT_EQ(server_->generate_requests().at(0).text(), "abc");
}

TEST_F(GenerateProgram, ADashTakesThePromptFromStandardInput) {
  const Completed run =
      RunProgram(Argv({"--prompt", "-"}), "line one\nline two\n");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(server_->generate_requests().at(0).text(), "line one\nline two\n");
}

TEST_F(GenerateProgram, TokensGoInAndOutAsIds) {
  const Completed run =
      RunProgram(Argv({"--tokens", "1,2,3", "--print", "tokens"}));
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.out, "72 101 108 108 111\n");
  EXPECT_EQ(server_->generate_requests().at(0).tokens().ids_size(), 3);
}

TEST_F(GenerateProgram, SendsTheSessionAsFieldAndHeader) {
  RunProgram(Argv({"--session", "verona", "--prompt", "x"}));
  EXPECT_EQ(server_->generate_requests().at(0).session_id(), "verona");
  EXPECT_EQ(server_->calls().at(0).session_header, "verona");
}

TEST_F(GenerateProgram, JsonIsEveryResponseOnALineOfItsOwn) {
  const Completed run = RunProgram(Argv({"--prompt", "abc", "--json"}));
  EXPECT_EQ(run.exit_code, 0) << run.err;
  const std::vector<std::string> lines =
      absl::StrSplit(run.out, '\n', absl::SkipEmpty());
  ASSERT_EQ(lines.size(), 7u);
  EXPECT_EQ(nlohmann::json::parse(lines[0])["started"]["promptTokenCount"],
            "3");
  const nlohmann::json token = nlohmann::json::parse(lines[1])["token"];
  EXPECT_EQ(token["index"], 0);
  EXPECT_EQ(token["text"], "H");
  EXPECT_EQ(token["logprob"], -0.5);
  const nlohmann::json finished = nlohmann::json::parse(lines[6])["finished"];
  EXPECT_EQ(finished["reason"], "FINISH_REASON_MAX_TOKENS");
  EXPECT_EQ(finished["usage"]["generatedTokens"], "5");
}

TEST_F(GenerateProgram, TakesThePromptFromAFile) {
  const std::string path = ::testing::TempDir() + "/generate-prompt.txt";
  std::ofstream(path) << "from a file\n";
  const Completed run = RunProgram(Argv({"--prompt-file", path}));
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(server_->generate_requests().at(0).text(), "from a file\n");
  const Completed missing = RunProgram(Argv({"--prompt-file", "/no/such"}));
  EXPECT_EQ(missing.exit_code, 1);
  EXPECT_THAT(missing.err, HasSubstr("/no/such: cannot be read"));
  const Completed folder = RunProgram(Argv({"--prompt-file", "/tmp"}));
  EXPECT_EQ(folder.exit_code, 2);
  EXPECT_THAT(folder.err, HasSubstr("txl: /tmp: is a directory\n"));
}

TEST_F(GenerateProgram, FeedsAPromptThatIsTooLongForOneCall) {
  server_->max_prompt_tokens = 10;
  const Completed run =
      RunProgram(Argv({"--prompt", "-"}), std::string(25, 'x'));
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.out, "Hello\n");
  EXPECT_EQ(server_->append_sizes(), (std::vector<int64_t>{10, 10}));
}

TEST_F(GenerateProgram, SaysThatItsOutputCannotBeWritten) {
  const Completed run =
      RunProgram({"/bin/sh", "-c",
                  "exec \"$0\" generate --prompt x --server \"$1\" >/dev/full",
                  TXL_PROGRAM, server_.address()});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.err, HasSubstr("standard output: No space left on device"));
  EXPECT_THAT(run.err, Not(HasSubstr("CANCELLED")));
}

TEST_F(GenerateProgram, RefusesWhatItWouldNotShow) {
  for (const std::vector<std::string>& flags :
       std::vector<std::vector<std::string>>{
           {"--logprobs", "2"},
           {"--token-bytes"},
           {"--token-bytes", "--print", "tokens"}}) {
    const Completed run = RunProgram(Argv(flags));
    EXPECT_EQ(run.exit_code, 2) << flags[0];
    EXPECT_THAT(run.err, HasSubstr(flags[0] + ": shown with --json"));
  }
  EXPECT_EQ(RunProgram(Argv({"--logprobs", "2", "--json"})).exit_code, 0);
  EXPECT_EQ(
      RunProgram(Argv({"--logprobs", "2", "--print", "tokens"})).exit_code, 0);
}

TEST_F(GenerateProgram, TextComesBeforeTheTurnEnds) {
  absl::Notification seen;
  server_->on_generate = [&](grpc::ServerContext*, const v1::GenerateRequest&,
                             FakeService::Writer* writer) {
    writer->Write(StartedEvent(0, 1));
    writer->Write(TokenEvent(0, '!'));
    seen.WaitForNotification();
    writer->Write(FinishedEvent(2, 1, 1));
    return grpc::Status::OK;
  };
  Process program(Argv({"--prompt", "x"}));
  EXPECT_EQ(program.ReadUntil("!"), "!");
  seen.Notify();
  EXPECT_EQ(program.ReadRest(), "\n");
  EXPECT_EQ(program.Wait(), 0);
}

TEST_F(GenerateProgram, CtrlCCancelsTheTurnAndExitsAsShellsDo) {
  absl::Notification cancelled;
  server_->on_generate = [&](grpc::ServerContext* context,
                             const v1::GenerateRequest&,
                             FakeService::Writer* writer) {
    writer->Write(StartedEvent(0, 1));
    writer->Write(TokenEvent(0, '!'));
    grpc::Status status = WaitUntilCancelled(context);
    cancelled.Notify();
    return status;
  };
  Process program(Argv({"--prompt", "x"}));
  EXPECT_EQ(program.ReadUntil("!"), "!");
  program.Signal(SIGINT);
  EXPECT_EQ(program.ReadRest(), "\n");
  EXPECT_EQ(program.Wait(), 130);
  EXPECT_EQ(program.Err(), "txl: interrupted\n");
  cancelled.WaitForNotification();
}

TEST_F(GenerateProgram, AServersErrorIsShownWithItsReasonAndExitsWithOne) {
  server_->on_generate = [](grpc::ServerContext*, const v1::GenerateRequest&,
                            FakeService::Writer*) {
    return FakeError(grpc::ABORTED, "another turn runs", "SESSION_BUSY", "",
                     200);
  };
  const Completed run = RunProgram(Argv({"--prompt", "x"}));
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_EQ(run.out, "");
  EXPECT_EQ(run.err,
            "txl: ABORTED (SESSION_BUSY): another turn runs; retry after "
            "200ms\n");
}

TEST_F(GenerateProgram, ATimeoutEndsTheTurn) {
  server_->on_generate = [](grpc::ServerContext* context,
                            const v1::GenerateRequest&, FakeService::Writer*) {
    return WaitUntilCancelled(context);
  };
  const Completed run = RunProgram(Argv({"--timeout", "0.05"}));
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.err, HasSubstr("DEADLINE_EXCEEDED"));
}

TEST_F(GenerateProgram, SaysThatAModelWithoutVocabularyHasNoText) {
  server_->on_generate = [](grpc::ServerContext*, const v1::GenerateRequest&,
                            FakeService::Writer* writer) {
    writer->Write(StartedEvent(0, 1));
    v1::GenerateResponse token = TokenEvent(0, 'a');
    token.mutable_token()->clear_text();
    writer->Write(token);
    writer->Write(FinishedEvent(2, 1, 1));
    return grpc::Status::OK;
  };
  const Completed run = RunProgram(Argv({"--tokens", "1"}));
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_EQ(run.out, "");
  EXPECT_THAT(run.err, HasSubstr("--print tokens"));
}

TEST_F(GenerateProgram, SaysHowToMakeASessionThatIsNotThere) {
  server_->on_generate = [](grpc::ServerContext*, const v1::GenerateRequest&,
                            FakeService::Writer*) {
    return FakeError(grpc::NOT_FOUND, "no such session", "SESSION_UNKNOWN");
  };
  const Completed run = RunProgram(Argv({"--session", "verona"}));
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.err, HasSubstr("(SESSION_UNKNOWN): verona: no such session"));
  EXPECT_THAT(run.err,
              HasSubstr("\ntxl: 'txl sessions create verona' creates"));
}

TEST_F(GenerateProgram, WrongUsageExitsWithTwo) {
  for (const std::vector<std::string>& flags :
       std::vector<std::vector<std::string>>{{"--no-such-flag"},
                                             {"--max-tokens", "many"},
                                             {"--prompt", "a", "--tokens", "1"},
                                             {"--print", "sideways"},
                                             {"--logit-bias", "5"},
                                             {"--ca", "/no/such/file"},
                                             {"--server", "nowhere"}}) {
    const Completed run = RunProgram(Argv(flags));
    EXPECT_EQ(run.exit_code, 2) << flags[0];
    EXPECT_NE(run.err, "") << flags[0];
    EXPECT_EQ(run.out, "") << flags[0];
  }
}

TEST(GenerateProgramWithoutServer, FailsWithOne) {
  const Completed run =
      RunProgram({TXL_PROGRAM, "generate", "--server", "unix:no-such-socket"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.err, HasSubstr("UNAVAILABLE"));
}

}  // namespace
}  // namespace txl::testing
