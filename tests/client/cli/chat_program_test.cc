// `txl chat` as a program, from a file and at a terminal.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/ascii.h"
#include "tests/client/fake_service.h"
#include "tests/client/process.h"

namespace txl::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ChatProgram : public ::testing::Test {
 protected:
  std::vector<std::string> Argv(std::vector<std::string> flags = {}) const {
    std::vector<std::string> argv = {TXL_PROGRAM, "chat",
                                     "--server",  server_.address(),
                                     "--history", "/dev/null"};
    argv.insert(argv.end(), flags.begin(), flags.end());
    return argv;
  }

  FakeServer server_;
};

TEST_F(ChatProgram, EveryLineIsATurnOfTheSameSession) {
  const Completed run = RunProgram(Argv(), "one\ntwo\n");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.out, "Hello\nHello\n");
  const auto requests = server_->generate_requests();
  ASSERT_EQ(requests.size(), 2u);
  EXPECT_EQ(requests[0].text(), "one\n");
  EXPECT_EQ(requests[1].text(), "two\n");
  EXPECT_NE(requests[0].session_id(), "");
  EXPECT_EQ(requests[0].session_id(), requests[1].session_id());
}

TEST_F(ChatProgram, AnEmptyLineGoesOnWithoutAPrompt) {
  RunProgram(Argv(), "one\n\n");
  EXPECT_EQ(server_->generate_requests().at(1).prompt_case(),
            v1::GenerateRequest::PROMPT_NOT_SET);
}

TEST_F(ChatProgram, LeavesNoSessionBehindUnlessItIsNamedOrKept) {
  RunProgram(Argv(), "one\n");
  EXPECT_THAT(server_->sessions(), IsEmpty());
  RunProgram(Argv({"--keep"}), "one\n");
  EXPECT_EQ(server_->sessions().size(), 1u);
  RunProgram(Argv({"--session", "mine"}), "one\n");
  EXPECT_EQ(server_->sessions().count("mine"), 1u);
  const Completed again = RunProgram(Argv({"--session", "mine"}), "two\n");
  EXPECT_EQ(again.exit_code, 0) << again.err;
}

TEST_F(ChatProgram, CommandsChangeFlagsAndSessions) {
  const Completed run = RunProgram(
      Argv({"--max-tokens", "9"}),
      "one\n/set --temperature 0 --stop 'a b'\ntwo\n/new\nthree\n/show\n/quit\n"
      "never\n");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  // "three", the end of its line, and five tokens.
  EXPECT_THAT(run.out, HasSubstr("position 11\n"));
  const auto requests = server_->generate_requests();
  ASSERT_EQ(requests.size(), 3u);
  EXPECT_FALSE(requests[0].sampling().has_temperature());
  EXPECT_TRUE(requests[1].sampling().has_temperature());
  EXPECT_EQ(requests[1].stop().stop_texts(0), "a b");
  EXPECT_EQ(requests[1].stop().max_tokens(), 9);
  EXPECT_EQ(requests[0].session_id(), requests[1].session_id());
  EXPECT_NE(requests[2].session_id(), requests[1].session_id());
}

TEST_F(ChatProgram, ABlockIsOneTurn) {
  const Completed run = RunProgram(
      Argv(), "\"\"\"\none\n/new\n\n\"\"\"\ntwo\n\"\"\"\nnever ended\n");
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.err,
              HasSubstr("the block that begins with \"\"\" is not closed"));
  const auto requests = server_->generate_requests();
  ASSERT_EQ(requests.size(), 2u);
  EXPECT_EQ(requests[0].text(), "one\n/new\n\n");
  EXPECT_EQ(requests[1].text(), "two\n");
}

TEST_F(ChatProgram, AFileOfWindowsIsReadAsAnother) {
  const Completed run = RunProgram(
      Argv(),
      "one\r\n\"\"\"\r\ntwo\r\nthree\r\n\"\"\"\r\n/show\r\n/quit\r\nno");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("position "));
  const auto requests = server_->generate_requests();
  ASSERT_EQ(requests.size(), 2u);
  EXPECT_EQ(requests[0].text(), "one\n");
  EXPECT_EQ(requests[1].text(), "two\nthree\n");
}

TEST_F(ChatProgram, SaysWhatACommandTakes) {
  const Completed run =
      RunProgram(Argv(), "/save\n/load \n/new extra\n/quit now\n/sho\n/exit ");
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.err, HasSubstr("/save: takes a file: /save FILE\n"));
  EXPECT_THAT(run.err, HasSubstr("/load: takes a file: /load FILE\n"));
  EXPECT_THAT(run.err, HasSubstr("/new: takes nothing, not \"extra\"\n"));
  EXPECT_THAT(run.err, HasSubstr("/quit: takes nothing, not \"now\"\n"));
  EXPECT_THAT(run.err, HasSubstr("/sho: unknown command; did you mean /show?"));
  EXPECT_THAT(server_->generate_requests(), IsEmpty());
}

TEST_F(ChatProgram, ABareSetShowsTheSettings) {
  const Completed run =
      RunProgram(Argv({"--top-k", "7"}), "/set --temperature 0.5\n/set\n");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("temperature: 0.5\n"));
  EXPECT_THAT(run.out, HasSubstr("top_k: 7\n"));
  // What the model gives where nothing else is said.
  EXPECT_THAT(run.out, HasSubstr("top_p: 0.9\n"));
  EXPECT_THAT(run.out, HasSubstr("max_tokens: 128\n"));
}

TEST_F(ChatProgram, SuggestsANewSessionWhereTheServerHasForgottenIt) {
  server_->on_generate = [](grpc::ServerContext*, const v1::GenerateRequest&,
                            FakeService::Writer*) {
    return FakeError(grpc::NOT_FOUND, "no such session", "SESSION_UNKNOWN");
  };
  const Completed run = RunProgram(Argv(), "one\n");
  EXPECT_THAT(run.err, HasSubstr("SESSION_UNKNOWN"));
  EXPECT_THAT(run.err, HasSubstr("/new starts a new session"));
}

TEST_F(ChatProgram, TakesTurnsBackOneByOne) {
  const Completed run =
      RunProgram(Argv(), "one\nfour\n/undo\n/undo\n/undo\ntwo\n/show\n");
  EXPECT_EQ(run.exit_code, 1);                      // there is no third one
  EXPECT_THAT(run.out, HasSubstr("position 9\n"));  // "one\n" and "Hello"
  EXPECT_THAT(run.out, HasSubstr("position 0\n"));
  EXPECT_THAT(run.err, HasSubstr("/undo: no turn to undo"));
  EXPECT_THAT(run.out, HasSubstr(", position 9\n"));
}

TEST_F(ChatProgram, GoesOnInAForkWhichStaysWhenItIsNamed) {
  const Completed run =
      RunProgram(Argv(), "one\n/fork branch\n/undo\n/fork\ntwo\n");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("session branch\n"));
  EXPECT_THAT(run.out, HasSubstr("session made-"));
  const auto requests = server_->generate_requests();
  ASSERT_EQ(requests.size(), 2u);
  EXPECT_NE(requests[0].session_id(), requests[1].session_id());
  // Those without a name have ended with the chat.
  ASSERT_EQ(server_->sessions().size(), 1u);
  EXPECT_EQ(server_->sessions().begin()->first, "branch");
  EXPECT_TRUE(server_->sessions().begin()->second.empty());
}

TEST_F(ChatProgram, SavesAndLoadsASession) {
  const std::string file = ::testing::TempDir() + "/chat session.txls";
  const Completed run =
      RunProgram(Argv(), "one\n/save " + file + "\n/new\n/load " + file + "\n");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr(", position 9\n"));
  EXPECT_TRUE(server_->sessions().empty());
}

TEST_F(ChatProgram, FilesThatFailAreReportedAndTheChatGoesOn) {
  const Completed run = RunProgram(
      Argv(), "/load /none/x\n/save /none/x\n/load /dev/null\none\n");
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_EQ(run.out, "Hello\n");
  EXPECT_THAT(run.err, HasSubstr("/none/x"));
  EXPECT_THAT(run.err, HasSubstr("FIELD_INVALID"));
}

TEST_F(ChatProgram, MistakesAreReportedAndTheChatGoesOn) {
  const Completed run =
      RunProgram(Argv(), "/nonsense\n/shwo\n/set --temperature hot\none\n");
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_EQ(run.out, "Hello\n");
  EXPECT_THAT(run.err, HasSubstr("/nonsense: unknown command; /help"));
  EXPECT_THAT(run.err,
              HasSubstr("/shwo: unknown command; did you mean /show?"));
  EXPECT_THAT(run.err, HasSubstr("/set"));
}

TEST_F(ChatProgram, AFailedTurnIsReportedAndTheChatGoesOn) {
  int turn = 0;
  server_->on_generate = [&](grpc::ServerContext*, const v1::GenerateRequest&,
                             FakeService::Writer* writer) {
    if (++turn == 1) {
      return FakeError(grpc::RESOURCE_EXHAUSTED, "full", "QUEUE_FULL");
    }
    for (const auto& event : TurnEvents(1, "ok")) writer->Write(event);
    return grpc::Status::OK;
  };
  const Completed run = RunProgram(Argv(), "one\ntwo\n");
  EXPECT_EQ(run.out, "ok\n");
  EXPECT_THAT(run.err, HasSubstr("QUEUE_FULL"));
  EXPECT_EQ(run.exit_code, 1);
}

TEST_F(ChatProgram, AtATerminalCtrlCEndsTheTurnAndTheLineButNotTheChat) {
  int turn = 0;
  server_->on_generate = [&](grpc::ServerContext* context,
                             const v1::GenerateRequest&,
                             FakeService::Writer* writer) {
    writer->Write(StartedEvent(0, 1));
    writer->Write(TokenEvent(0, ++turn == 1 ? '!' : '?'));
    if (turn == 1) return WaitUntilCancelled(context);
    writer->Write(FinishedEvent(2, 1, 1));
    return grpc::Status::OK;
  };
  Process program(Argv(), Process::Terminal::kPseudo);
  program.ReadUntil("> ");
  program.Type("first\n");
  program.ReadUntil("!");
  program.Type("\x03");  // ends the turn
  program.ReadUntil("> ");
  program.Type("dropped");
  program.ReadUntil("dropped");
  program.Type("\x03");  // drops the line
  program.ReadUntil("> ");
  program.Type("second\n");
  program.ReadUntil("?");
  program.ReadUntil("> ");
  program.Type("/quit\n");
  program.ReadRest();
  EXPECT_EQ(program.Wait(), 0);
  const auto requests = server_->generate_requests();
  ASSERT_EQ(requests.size(), 2u);
  EXPECT_EQ(requests[0].text(), "first\n");
  EXPECT_EQ(requests[1].text(), "second\n");
  EXPECT_THAT(server_->sessions(), IsEmpty());
}

TEST_F(ChatProgram, AtATerminalLinesAreEditedAndRecalled) {
  Process program(Argv(), Process::Terminal::kPseudo);
  program.ReadUntil("> ");
  program.AwaitLineEditor();
  program.Type("caf\xc3\xa9z\x7f\n");  // the last key is backspace
  program.ReadUntil("Hello");
  program.ReadUntil("> ");
  program.AwaitLineEditor();
  program.Type("\x10\n");  // Ctrl-P: the line before
  program.ReadUntil("Hello");
  program.ReadUntil("> ");
  program.AwaitLineEditor();
  program.Type("\x04");  // Ctrl-D
  program.ReadRest();
  EXPECT_EQ(program.Wait(), 0);
  const auto requests = server_->generate_requests();
  ASSERT_EQ(requests.size(), 2u);
  EXPECT_EQ(requests[0].text(), "caf\xc3\xa9\n");
  EXPECT_EQ(requests[1].text(), "caf\xc3\xa9\n");
}

TEST_F(ChatProgram, AtATerminalItSaysHowToGetHelp) {
  Process program(Argv(), Process::Terminal::kPseudo);
  EXPECT_THAT(program.ReadUntil("> "), HasSubstr("Model fake. "));
  program.Type("/help\n");
  EXPECT_THAT(program.ReadUntil("> "), HasSubstr("/set FLAGS"));
  program.Type("/quit\n");
  program.ReadRest();
  EXPECT_EQ(program.Wait(), 0);
}

TEST_F(ChatProgram, AtATerminalWhatIsPastedIsOneTurn) {
  Process program(Argv(), Process::Terminal::kPseudo);
  // The terminal is asked to mark what is pasted.
  program.ReadUntil("\x1b[?2004h");
  program.ReadUntil("> ");
  program.AwaitLineEditor();
  program.Type("so: \x1b[200~one\rtwo\rcaf\xc3\xa9\x1b[201~!\n");
  program.ReadUntil("Hello");
  program.ReadUntil("> ");
  program.Type("/quit\n");
  program.ReadRest();
  EXPECT_EQ(program.Wait(), 0);
  const auto requests = server_->generate_requests();
  ASSERT_EQ(requests.size(), 1u);
  EXPECT_EQ(requests[0].text(), "so: one\ntwo\ncaf\xc3\xa9!\n");
}

}  // namespace
}  // namespace txl::testing
