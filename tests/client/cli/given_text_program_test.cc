// Texts and numbers that `txl` is given: what is wrong with them is said before
// anything is sent.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "tests/client/fake_service.h"
#include "tests/client/process.h"

namespace txl::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kLatin1[] = "one\ncaf\xE9\n";

class GivenText : public ::testing::Test {
 protected:
  Completed Run(std::vector<std::string> words, const std::string& input = "") {
    words.insert(words.begin(), TXL_PROGRAM);
    words.push_back("--server");
    words.push_back(server_.address());
    return RunProgram(words, input);
  }

  // Refuses it with `said`, and nothing has reached the server.
  void ExpectRefusal(const std::vector<std::string>& words,
                     const std::string& said, const std::string& input = "") {
    const Completed run = Run(words, input);
    EXPECT_EQ(run.exit_code, 2) << words[0] << " " << said;
    EXPECT_THAT(run.err, HasSubstr(said));
    EXPECT_EQ(run.out, "");
    EXPECT_THAT(server_->calls(), IsEmpty()) << said;
  }

  static std::string File(const std::string& name, const std::string& text) {
    const std::string path = ::testing::TempDir() + "/given-" + name;
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }

  FakeServer server_;
};

TEST_F(GivenText, AFileThatIsNotUtf8IsNamedWithThePlace) {
  const std::string file = File("latin1.txt", kLatin1);
  const std::string said = file + " is not UTF-8: line 2, byte 4 (0xE9)";
  ExpectRefusal({"score", file}, said);
  ExpectRefusal({"score", "--n-best", file}, said);
  ExpectRefusal({"generate", "--prompt-file", file}, said);
  ExpectRefusal({"bench", "--requests", "1", "--prompts", file}, said);
}

TEST_F(GivenText, StandardInputIsCheckedToo) {
  const std::string said = "standard input is not UTF-8: line 2, byte 4";
  ExpectRefusal({"score", "-"}, said, kLatin1);
  ExpectRefusal({"score", "--n-best", "-"}, said, kLatin1);
  ExpectRefusal({"generate", "--prompt", "-"}, said, kLatin1);
  ExpectRefusal({"tokenize", "-"}, said, kLatin1);
}

TEST_F(GivenText, Utf16IsNoText) {
  ExpectRefusal({"score", "-"}, "it begins as UTF-16 does",
                std::string("\xFF\xFEh\0i\0", 6));
  ExpectRefusal({"score", "-"}, "line 1, byte 2 is a NUL",
                std::string("h\0i\0", 4));
}

TEST_F(GivenText, AByteOrderMarkIsLeftOut) {
  EXPECT_EQ(Run({"tokenize", "-"}, "\xEF\xBB\xBFHi").out, "72,105\n");
  const std::string file = File("mark.txt", "\xEF\xBB\xBFHi");
  EXPECT_EQ(Run({"generate", "--prompt-file", file}).exit_code, 0);
  EXPECT_EQ(server_->generate_requests().at(0).text(), "Hi");
}

TEST_F(GivenText, TextsOfFlagsAreNamedByTheFlag) {
  ExpectRefusal({"generate", "--prompt", "\xE9"}, "--prompt: it is not UTF-8");
  ExpectRefusal({"generate", "--stop", "a\xE9"}, "--stop: it is not UTF-8");
  ExpectRefusal({"generate", "--session", "\xE9"},
                "--session: it is not UTF-8");
  ExpectRefusal({"generate", "--request-id", "\xE9"},
                "--request-id: it is not UTF-8");
  ExpectRefusal({"tokenize", "\xE9"}, "TEXT: it is not UTF-8");
  ExpectRefusal({"sessions", "show", "\xE9"}, "SESSION: it is not UTF-8");
  ExpectRefusal({"sessions", "fork", "a", "--as", "\xE9"},
                "--as: it is not UTF-8");
}

TEST_F(GivenText, ANameIsNotEmpty) {
  ExpectRefusal({"generate", "--session", ""}, "--session: is empty");
  ExpectRefusal({"generate", "--request-id", ""}, "--request-id: is empty");
  ExpectRefusal({"sessions", "delete", ""}, "SESSION: is empty");
  ExpectRefusal({"sessions", "create", ""}, "SESSION: is empty");
  ExpectRefusal({"chat", "--session", ""}, "--session: is empty");
  // A server drains where no tenant is named.
  const Completed drain = RunProgram({TXL_PROGRAM, "admin", "drain", "--admin",
                                      server_.address(), "--tenant", ""});
  EXPECT_EQ(drain.exit_code, 2);
  EXPECT_THAT(drain.err, HasSubstr("--tenant: is empty"));
}

TEST_F(GivenText, AChatSaysItOfTheLineAndGoesOn) {
  const Completed run =
      Run({"chat", "--history", "/dev/null"}, "\xEF\xBB\xBFone\n\xE9\ntwo\n");
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.err, HasSubstr("the line is not UTF-8: line 1, byte 1"));
  const auto requests = server_->generate_requests();
  ASSERT_EQ(requests.size(), 2u);
  EXPECT_EQ(requests[0].text(), "one\n");
  EXPECT_EQ(requests[1].text(), "two\n");
}

TEST_F(GivenText, NumbersAreDecimalAndInRange) {
  ExpectRefusal({"generate", "--seed", "-1"}, "--seed: -1 is negative");
  ExpectRefusal({"generate", "--top-k", "0x10"},
                "--top-k: '0x10' is not a whole number");
  ExpectRefusal({"generate", "--top-k", " 5"},
                "--top-k: ' 5' is not a whole number");
  ExpectRefusal({"generate", "--temperature", "nan"},
                "--temperature: 'nan' is not a number");
  ExpectRefusal({"generate", "--tokens", "1,x"},
                "--tokens: 'x' is not a whole number");
  ExpectRefusal({"generate", "--stop-token", "-1"},
                "--stop-token: -1 is negative");
  ExpectRefusal({"generate", "--timeout", "1e300"}, "--timeout: ");
  ExpectRefusal({"sessions", "create", "--ttl", "1e300"}, "--ttl: ");
  ExpectRefusal({"bench", "--seconds", "1e300"}, "--seconds: ");
  ExpectRefusal({"bench", "--max-tokens", "1e300"}, "--max-tokens: ");
  EXPECT_EQ(
      Run({"generate", "--top-k", "010", "--seed", "1e3", "--tokens", "08,+9"})
          .exit_code,
      0);
  const auto request = server_->generate_requests().at(0);
  EXPECT_EQ(request.sampling().top_k(), 10);
  EXPECT_EQ(request.sampling().seed(), 1000u);
  EXPECT_EQ(request.tokens().ids(0), 8u);
  EXPECT_EQ(request.tokens().ids(1), 9u);
}

TEST_F(GivenText, NumbersOfAChatAreReadLikewise) {
  EXPECT_EQ(Run({"chat", "--history", "/dev/null"}, "/set --top-k 010\none\n")
                .exit_code,
            0);
  EXPECT_EQ(server_->generate_requests().at(0).sampling().top_k(), 10);
}

TEST_F(GivenText, NamesOfAListAreTakenInAnyCase) {
  EXPECT_EQ(Run({"generate", "--tokens", "1", "--print", "TOKENS"}).out,
            Run({"generate", "--tokens", "1", "--print", "tokens"}).out);
  EXPECT_EQ(Run({"generate", "--tokens", "1", "--unknown", "Skip"}).exit_code,
            0);
  EXPECT_EQ(server_->generate_requests().back().unknown(),
            v1::UNKNOWN_TEXT_SKIP);
}

TEST_F(GivenText, AWrongAddressIsNamedByItsFlag) {
  for (const char* address : {"http://127.0.0.1:1", "::1:50051", "127.0.0.1",
                              "host: 80", "host:+80", ""}) {
    const Completed run =
        RunProgram({TXL_PROGRAM, "status", "--server", address});
    EXPECT_EQ(run.exit_code, 2) << address;
    EXPECT_THAT(run.err,
                AllOf(HasSubstr("--server: "), HasSubstr("HOST:PORT")));
  }
}

}  // namespace
}  // namespace txl::testing
