// --midi of `txl generate` and `txl tokenize`, against a service whose tokens
// of a file are its bytes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "absl/strings/str_cat.h"
#include "tests/client/fake_service.h"
#include "tests/client/process.h"

namespace txl::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Bytes that no text has.
const std::string kFile("\0\xff\x90", 3);

class MidiProgram : public ::testing::Test {
 protected:
  Completed Run(std::vector<std::string> words, const std::string& input = "") {
    words.insert(words.begin(), TXL_PROGRAM);
    words.insert(words.end(), {"--server", server_.address()});
    return RunProgram(words, input);
  }

  static std::string File(const std::string& bytes) {
    // Tests run beside each other.
    const std::string path = absl::StrCat(
        ::testing::TempDir(), "/",
        ::testing::UnitTest::GetInstance()->current_test_info()->name(),
        ".mid");
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }

  // Both commands say `said` and send no prompt.
  void ExpectRefusal(const std::string& path, const std::string& said) {
    for (const char* command : {"generate", "tokenize"}) {
      const Completed run = Run({command, "--midi", path});
      EXPECT_EQ(run.exit_code, 1) << command;
      EXPECT_THAT(run.err, HasSubstr(said)) << command;
      EXPECT_EQ(run.out, "") << command;
    }
    EXPECT_THAT(server_->generate_requests(), IsEmpty());
  }

  FakeServer server_;
};

TEST_F(MidiProgram, GenerateContinuesTheTokensOfTheFile) {
  const Completed run = Run({"generate", "--midi", File(kFile)});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.out, "Hello\n");
  EXPECT_EQ(run.err, "");
  EXPECT_THAT(server_->generate_requests().at(0).tokens().ids(),
              ElementsAre(0, 255, 144));
}

TEST_F(MidiProgram, TokenizePrintsTheTokensOfTheFile) {
  EXPECT_EQ(Run({"tokenize", "--midi", File(kFile)}).out, "0,255,144\n");
}

TEST_F(MidiProgram, ADashTakesTheFileFromStandardInput) {
  EXPECT_EQ(Run({"tokenize", "--midi", "-"}, kFile).out, "0,255,144\n");
  EXPECT_EQ(Run({"generate", "--midi", "-"}, kFile).exit_code, 0);
  EXPECT_THAT(server_->generate_requests().at(0).tokens().ids(),
              ElementsAre(0, 255, 144));
}

TEST_F(MidiProgram, WhatWasLeftOutIsToldOnStandardError) {
  server_->left_out = {{"note without an end", 12}, {"Note On_109", 3}};
  const std::string file = File(kFile);
  const std::string told = "txl: " + file + ": left out: Note On_109 (3), " +
                           "note without an end (12)\n";
  EXPECT_EQ(Run({"generate", "--midi", file}).err, told);
  const Completed ids = Run({"tokenize", "--midi", file, "--json"});
  EXPECT_EQ(ids.err, told);
  EXPECT_THAT(ids.out,
              HasSubstr(R"("leftOut":[{"what":"Note On_109","count":"3"},)"));
}

TEST_F(MidiProgram, AFileOfManyTokensIsFedInParts) {
  server_->max_prompt_tokens = 10;
  const Completed run = Run({"generate", "--midi", File(std::string(25, 'x'))});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.out, "Hello\n");
  EXPECT_THAT(server_->append_sizes(), ElementsAre(10, 10));
}

TEST_F(MidiProgram, SamplesContinueTheSameFile) {
  const Completed run = Run({"generate", "--midi", File(kFile), "--n", "2"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.out, "[0]\nHello\n[1]\nHello\n");
  EXPECT_THAT(server_->append_sizes(), ElementsAre(3));
}

TEST_F(MidiProgram, AFileThatCannotBeReadIsNamed) {
  ExpectRefusal("/no/such.mid", "/no/such.mid: cannot be read");
  ExpectRefusal(::testing::TempDir(), ": is a directory");
  ExpectRefusal("", ": cannot be read");
}

TEST_F(MidiProgram, AFileThatIsTooLargeIsNotSent) {
  const std::string file = File(std::string(100 << 20, '\0'));
  ExpectRefusal(file, file + ": 104857600 bytes, at most 262144");
  std::ofstream(file).close();  // gives the room back
}

TEST_F(MidiProgram, AFileWithoutTokensIsNoPrompt) {
  const std::string file = File("");
  ExpectRefusal(file, file + ": holds no token");
}

TEST_F(MidiProgram, TheServersObjectionNamesTheField) {
  server_->unary_status =
      FakeError(grpc::StatusCode::INVALID_ARGUMENT, "midi: is cut off",
                "FIELD_INVALID", "midi");
  // GetModel answers as well.
  ExpectRefusal(File(kFile), "INVALID_ARGUMENT (FIELD_INVALID): midi: is cut");
}

TEST_F(MidiProgram, IsOnePromptAmongOthers) {
  const std::string file = File(kFile);
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{
           {"generate", "--midi", file, "--prompt", "a"},
           {"generate", "--midi", file, "--prompt-file", file},
           {"generate", "--midi", file, "--tokens", "1"},
           {"tokenize", "--midi", file, "--decode", "1"},
           {"tokenize", "--midi", file, "a"}}) {
    const Completed run = Run(words);
    EXPECT_EQ(run.exit_code, 2) << words[3];
    EXPECT_THAT(run.err, AllOf(HasSubstr("--midi"), HasSubstr("excludes")))
        << words[3];
  }
  EXPECT_THAT(server_->calls(), IsEmpty());
}

}  // namespace
}  // namespace txl::testing
