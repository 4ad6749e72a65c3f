// --unknown of every command of `txl` that makes tokens of text.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_split.h"
#include "tests/client/fake_service.h"
#include "tests/client/process.h"

namespace txl::testing {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class UnknownProgram : public ::testing::Test {
 protected:
  Completed Run(const std::string& command, const std::string& input = "") {
    std::vector<std::string> argv = absl::StrSplit(command, ' ');
    argv.insert(argv.begin(), TXL_PROGRAM);
    argv.insert(argv.end(), {"--server", server_.address()});
    return RunProgram(argv, input);
  }

  // What the service has seen of it in calls of this method.
  std::vector<v1::UnknownText> Seen(const std::string& method) {
    std::vector<v1::UnknownText> seen;
    for (const SeenCall& call : server_->calls()) {
      if (call.method == method) seen.push_back(call.unknown);
    }
    return seen;
  }

  void ExpectSkipped(const std::string& method) {
    EXPECT_THAT(Seen(method), Not(IsEmpty())) << method;
    EXPECT_THAT(Seen(method), Each(v1::UNKNOWN_TEXT_SKIP)) << method;
  }

  FakeServer server_;
};

TEST_F(UnknownProgram, GenerateSaysItWithThePrompt) {
  EXPECT_EQ(Run("generate --prompt abc").exit_code, 0);
  EXPECT_EQ(Run("generate --prompt abc --unknown skip").exit_code, 0);
  EXPECT_EQ(Run("generate --prompt abc --unknown unk").exit_code, 0);
  EXPECT_EQ(Seen("Generate"),
            (std::vector<v1::UnknownText>{v1::UNKNOWN_TEXT_UNSPECIFIED,
                                          v1::UNKNOWN_TEXT_SKIP,
                                          v1::UNKNOWN_TEXT_SYMBOL}));
}

TEST_F(UnknownProgram, GenerateSaysItWhereAPromptIsFedInParts) {
  server_->max_prompt_tokens = 10;
  EXPECT_EQ(
      Run("generate --prompt - --unknown skip", std::string(25, 'x')).exit_code,
      0);
  ExpectSkipped("Tokenize");
  EXPECT_EQ(server_->append_sizes(), (std::vector<int64_t>{10, 10}));
}

TEST_F(UnknownProgram, GenerateSaysItForAllSamples) {
  EXPECT_EQ(Run("generate --prompt abc --n 2 --unknown skip").exit_code, 0);
  ExpectSkipped("Tokenize");
}

TEST_F(UnknownProgram, SamplesNeedAPromptOfWhichSomethingIsLeft) {
  const Completed run = Run("generate --prompt - --n 2 --unknown skip", "");
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.err, HasSubstr("the prompt holds no token"));
  EXPECT_THAT(server_->sessions(), IsEmpty());
}

TEST_F(UnknownProgram, ChatSaysItOnceItIsSet) {
  const Completed run =
      Run("chat --history /dev/null", "one\n/set --unknown skip\ntwo\n/set\n");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("unknown: skip\n"));
  EXPECT_EQ(Seen("Generate"),
            (std::vector<v1::UnknownText>{v1::UNKNOWN_TEXT_UNSPECIFIED,
                                          v1::UNKNOWN_TEXT_SKIP}));
  const Completed wrong = Run("chat --history /dev/null --unknown unk",
                              "/set --unknown all\nthree\n");
  EXPECT_THAT(wrong.err, HasSubstr("/set: --unknown"));
  EXPECT_EQ(Seen("Generate").back(), v1::UNKNOWN_TEXT_SYMBOL);
}

TEST_F(UnknownProgram, ScoreSaysItOfFilesAndLists) {
  EXPECT_EQ(Run("score - --unknown skip", "abc").exit_code, 0);
  ExpectSkipped("Tokenize");
  EXPECT_EQ(Run("score --n-best - --unknown skip",
                "{\"alternatives\": [\"a\"]}\n{\"alternatives\": [\"b\"]}\n")
                .exit_code,
            0);
  ExpectSkipped("ScoreAlternatives");
}

TEST_F(UnknownProgram, TokenizeSaysIt) {
  EXPECT_EQ(Run("tokenize AB --unknown skip").out, "65,66\n");
  ExpectSkipped("Tokenize");
}

TEST_F(UnknownProgram, AnotherWordIsAUsageErrorThatNamesTheTwo) {
  for (const char* command : {"generate --prompt a", "chat", "score -",
                              "score --n-best -", "tokenize a"}) {
    const Completed run = Run(std::string(command) + " --unknown drop");
    EXPECT_EQ(run.exit_code, 2) << command;
    EXPECT_THAT(run.err, HasSubstr("--unknown")) << command;
    EXPECT_THAT(run.err, HasSubstr("skip, unk")) << command;
  }
  EXPECT_THAT(server_->calls(), IsEmpty());
}

TEST(UnknownHelp, IsInHelpCompletionAndTheManualPage) {
  for (const char* command : {"generate", "chat", "score", "tokenize"}) {
    EXPECT_THAT(RunProgram({TXL_PROGRAM, command, "--help"}).out,
                HasSubstr("--unknown skip|unk"))
        << command;
    EXPECT_THAT(RunProgram({TXL_PROGRAM, "--completion", "bash"}).out,
                HasSubstr(std::string("'txl ") + command +
                          "|--unknown') COMPREPLY=($(compgen -W \"skip unk\""))
        << command;
  }
  EXPECT_THAT(RunProgram({TXL_PROGRAM, "--man-page"}).out,
              HasSubstr("\\-\\-unknown\\fR \\&skip|unk"));
}

}  // namespace
}  // namespace txl::testing
