// The program `txl` against the real server, with text.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/end_to_end/golden_case.h"
#include "tests/end_to_end/server_process.h"
#include "tests/end_to_end/turns.h"

namespace txl::testing {
namespace {

using ::testing::HasSubstr;

// Symbols of the golden model's ids: letters, then digits.
char Symbol(uint32_t id) {
  constexpr char kSymbols[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
  return kSymbols[id];
}

// The golden character model with a vocabulary added.
class Programs : public ::testing::Test {
 protected:
  static std::string MakeModel(const GoldenCase& golden) {
    const std::filesystem::path folder =
        std::filesystem::path(::testing::TempDir()) /
        ("txl-programs-" + std::to_string(getpid()));
    std::filesystem::create_directories(folder);
    for (const char* file : {"config.json", "model.safetensors"}) {
      std::filesystem::copy_file(
          golden.directory + "/" + file, folder / file,
          std::filesystem::copy_options::overwrite_existing);
    }
    std::ofstream(folder / "tokenizer.json")
        << R"({"kind": "characters", "file": "vocab.txt"})";
    std::ofstream vocabulary(folder / "vocab.txt");
    for (uint32_t id = 0; id < golden.vocabulary; ++id) {
      vocabulary << Symbol(id) << '\n';
    }
    return folder;
  }

  Completed Run(std::vector<std::string> arguments,
                const std::string& input = "") {
    arguments.insert(arguments.begin(), TXL_PROGRAM);
    arguments.push_back("--server");
    arguments.push_back(server_.address());
    return RunProgram(arguments, input);
  }

  ~Programs() override { std::filesystem::remove_all(model_); }

  const GoldenCase golden_ = LoadGoldenCase("kimi-char");
  const std::string model_ = MakeModel(golden_);
  ServerProcess server_{model_, {"--slots", "8"}};
};

TEST_F(Programs, ScoreIsWhatTheOriginalCodeGivesHoweverTheTextIsCut) {
  std::string text;
  double nats = 0;
  for (size_t t = 0; t < golden_.tokens.size(); ++t) {
    text.push_back(Symbol(golden_.tokens[t]));
    if (t > 0) {
      nats -= golden_.Logprob(static_cast<int64_t>(t) - 1, golden_.tokens[t]);
    }
  }
  const auto predicted = static_cast<double>(text.size() - 1);
  for (const char* chunk : {"0", "7"}) {
    const Completed run =
        Run({"score", "-", "--json", "--chunk-tokens", chunk}, text);
    ASSERT_EQ(run.exit_code, 0) << run.err;
    const auto json = nlohmann::json::parse(run.out);
    EXPECT_EQ(json["tokens"], text.size());
    EXPECT_NEAR(json["nats_per_token"], nats / predicted, golden_.tolerance);
    EXPECT_NEAR(json["perplexity"], std::exp(nats / predicted),
                golden_.tolerance * std::exp(nats / predicted));
  }
  EXPECT_EQ(server_.Status().sessions_idle(), 0);
}

TEST_F(Programs, GenerateStreamsTheTextOfTheTokensThatItReports) {
  const std::vector<std::string> turn = {
      "generate", "--prompt",      "ROMEO", "--max-tokens",
      "12",       "--temperature", "0"};
  const Completed text = Run(turn);
  EXPECT_EQ(text.exit_code, 0) << text.err;
  std::vector<std::string> with_tokens = turn;
  with_tokens.insert(with_tokens.end(), {"--print", "tokens"});
  const Completed tokens = Run(with_tokens);
  std::istringstream ids(tokens.out);
  std::string expected;
  for (uint32_t id = 0; ids >> id;) expected.push_back(Symbol(id));
  EXPECT_EQ(expected.size(), 12u);
  EXPECT_EQ(text.out, expected + "\n");
}

TEST_F(Programs, ChatContinuesOneSession) {
  const Completed run = Run({"chat", "--raw", "--keep", "--session", "verona",
                             "--max-tokens", "5", "--history", "/dev/null"},
                            "ROMEO\n\n");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(IdleSession(server_.client(), "verona").session().position(),
            5 + 5 + 5);
  EXPECT_THAT(Run({"sessions", "show", "verona", "--tokens"}).out,
              HasSubstr("text\nROMEO"));
  EXPECT_EQ(Run({"sessions", "delete", "verona"}).exit_code, 0);
}

TEST_F(Programs, TokenizeAndStatusTalkToTheServer) {
  EXPECT_EQ(Run({"tokenize", "AZa"}).out, "0,25,26\n");
  EXPECT_EQ(Run({"tokenize", "--decode", "0,25,26"}).out, "AZa");
  EXPECT_THAT(Run({"tokenize", "?"}).err, HasSubstr("FIELD_INVALID"));
  EXPECT_EQ(Run({"status", "--check"}).exit_code, 0);
  EXPECT_THAT(Run({"status"}).out, HasSubstr("state        ready"));
}

// The model has letters and digits, and no unknown symbol.
TEST_F(Programs, UnknownTextIsRefusedOrSkipped) {
  const std::vector<std::string> skip = {"--unknown", "skip"};
  const auto with_skip = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), skip.begin(), skip.end());
    return arguments;
  };
  EXPECT_EQ(Run(with_skip({"tokenize", "A?Z-\u00E9a"})).out, "0,25,26\n");
  const Completed symbol = Run({"tokenize", "A", "--unknown", "unk"});
  EXPECT_EQ(symbol.exit_code, 1);
  EXPECT_THAT(symbol.err, HasSubstr("FIELD_INVALID"));
  EXPECT_THAT(symbol.err, HasSubstr("unknown"));

  const std::vector<std::string> turn = {
      "generate", "--max-tokens", "12", "--temperature", "0", "--prompt"};
  const auto generate = [&](const std::string& prompt) {
    std::vector<std::string> arguments = turn;
    arguments.push_back(prompt);
    return arguments;
  };
  const Completed plain = Run(generate("ROMEO"));
  EXPECT_EQ(plain.exit_code, 0) << plain.err;
  EXPECT_EQ(Run(generate("RO,MEO!")).exit_code, 1);
  EXPECT_EQ(Run(with_skip(generate("RO,MEO!"))).out, plain.out);
  EXPECT_THAT(Run(with_skip(generate("?!"))).err, HasSubstr("holds no token"));

  const std::vector<std::string> score = {"score", "-", "--json"};
  const auto tokens = nlohmann::json::parse(Run(score, "ROMEO").out);
  const auto skipped =
      nlohmann::json::parse(Run(with_skip(score), "RO,MEO!").out);
  EXPECT_EQ(skipped["nats_per_token"], tokens["nats_per_token"]);
  EXPECT_EQ(skipped["tokens"], 5);
  EXPECT_THAT(Run(with_skip(score), "?").err, HasSubstr("holds no token"));
  const auto n_best = [&](const std::string& line) {
    return Run(with_skip({"score", "--n-best", "-"}), line).out;
  };
  EXPECT_EQ(n_best(R"({"context": "?A-", "alternatives": ["B!", "?CD"]})"),
            n_best(R"({"context": "A", "alternatives": ["B", "CD"]})"));

  const Completed chat =
      Run({"chat", "--raw", "--keep", "--session", "verona", "--max-tokens",
           "5", "--history", "/dev/null", "--unknown", "skip"},
          "RO,MEO!\n");
  EXPECT_EQ(chat.exit_code, 0) << chat.err;
  EXPECT_EQ(IdleSession(server_.client(), "verona").session().position(),
            5 + 5);
}

TEST_F(Programs, UnknownTextIsTheUnknownSymbolWhereThereIsOne) {
  std::ofstream(std::filesystem::path(model_) / "tokenizer.json")
      << R"({"kind": "symbols", "file": "vocab.txt", "delimiter": "",
             "unknown": "Z"})";
  const ServerProcess server(model_, {"--slots", "2"});
  const auto tokenize = [&](const std::vector<std::string>& flags) {
    std::vector<std::string> argv = {TXL_PROGRAM, "tokenize", "A?B", "--server",
                                     server.address()};
    argv.insert(argv.end(), flags.begin(), flags.end());
    return RunProgram(argv).out;
  };
  EXPECT_EQ(tokenize({}), "0,25,1\n");
  EXPECT_EQ(tokenize({"--unknown", "unk"}), "0,25,1\n");
  EXPECT_EQ(tokenize({"--unknown", "skip"}), "0,1\n");
}

TEST_F(Programs, TheLogSaysHowManySessionsTheDeviceHolds) {
  const std::string log = server_.Log();
  const size_t at = log.find(R"("event":"ready")");
  ASSERT_NE(at, std::string::npos) << log;
  const size_t begin = log.rfind('\n', at) + 1;
  const auto line =
      nlohmann::json::parse(log.substr(begin, log.find('\n', at) - begin));
  EXPECT_EQ(line["fields"]["address"], server_.address());
  EXPECT_EQ(line["fields"]["device"], "cpu");
  EXPECT_EQ(line["fields"]["slots"], 8);
  const auto model = server_.client().GetModel();
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(line["fields"]["bytes_per_slot"], model->bytes_per_session());
}

TEST_F(Programs, BenchFindsEveryStreamWellFormed) {
  const int64_t before = server_.Status().tokens_delivered();
  const Completed run =
      Run({"bench", "--streams", "60", "--requests", "120", "--prompt-tokens",
           "5", "--max-tokens", "10", "--json"});
  ASSERT_EQ(run.exit_code, 0) << run.err << run.out;
  const auto json = nlohmann::json::parse(run.out);
  EXPECT_EQ(json["connections"], 2);
  EXPECT_EQ(json["tokens"], 1200);
  EXPECT_EQ(json["statuses"], nlohmann::json({{"OK", 120}}));
  EXPECT_EQ(json["malformed_streams"], nlohmann::json::object());
  EXPECT_EQ(json["server_counters"]["verdict"], "equal");
  EXPECT_EQ(server_.Status().tokens_delivered() - before, 1200);
}

TEST_F(Programs, BenchHoldsConversationsAndCancelsWithoutLeavingAnything) {
  const Completed run = Run({"bench",
                             "--rate",
                             "200",
                             "--requests",
                             "30",
                             "--turns",
                             "uniform:1:3",
                             "--think",
                             "exponential:0.01",
                             "--cancel",
                             "0.3",
                             "--slow",
                             "0.2",
                             "--slow-read",
                             "0.001",
                             "--prompt-tokens",
                             "uniform:1:9",
                             "--max-tokens",
                             "20",
                             "--json"});
  ASSERT_EQ(run.exit_code, 0) << run.err << run.out;
  const auto json = nlohmann::json::parse(run.out);
  EXPECT_GT(json["requests"], 30);
  EXPECT_EQ(json["malformed_streams"], nlohmann::json::object());
  for (const auto& [outcome, count] : json["outcomes"].items()) {
    EXPECT_TRUE(outcome == "ok" || outcome == "cancelled") << outcome;
  }
  EXPECT_GT(json["outcomes"]["cancelled"], 0);
  EXPECT_NE(json["server_counters"]["verdict"], "unequal");
  EXPECT_NE(json["server_counters"]["verdict"], "not comparable");
  EXPECT_EQ(server_.Status().sessions_idle(), 0);
  EXPECT_EQ(server_.Status().sessions_busy(), 0);
}

}  // namespace
}  // namespace txl::testing
