// The other subcommands of `txl` as a program.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "absl/strings/str_split.h"
#include "absl/synchronization/notification.h"
#include "tests/client/fake_service.h"
#include "tests/client/process.h"

namespace txl::testing {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Le;
using ::testing::Not;
using ::testing::StartsWith;

class Commands : public ::testing::Test {
 protected:
  // `command` is split at spaces.
  Completed Run(const std::string& command, const std::string& input = "") {
    std::vector<std::string> argv = absl::StrSplit(command, ' ');
    argv.insert(argv.begin(), TXL_PROGRAM);
    argv.push_back("--server");
    argv.push_back(server_.address());
    return RunProgram(argv, input);
  }

  FakeServer server_;
};

// The fake's model by its definition: nats of all bytes but the first.
double ExpectedNats(const std::string& text) {
  double nats = 0;
  for (size_t i = 1; i < text.size(); ++i) {
    nats += static_cast<unsigned char>(text[i]) % 8 / 8.0;
  }
  return nats;
}

TEST_F(Commands, ScoreFeedsALongTextInPiecesThatTheServerTakes) {
  server_->max_prompt_tokens = 7;
  server_->max_prompt_bytes = 11;
  const std::string text = "First line\nand caf\xc3\xa9, a second one\nx";
  const Completed run = Run("score - --json", text);
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const auto json = nlohmann::json::parse(run.out);
  const double nats = ExpectedNats(text);
  const auto tokens = static_cast<double>(text.size());
  EXPECT_EQ(json["tokens"], text.size());
  EXPECT_EQ(json["characters"], text.size() - 1);
  EXPECT_NEAR(json["nats_per_token"], nats / (tokens - 1), 1e-9);
  EXPECT_NEAR(json["perplexity"], std::exp(nats / (tokens - 1)), 1e-9);
  EXPECT_NEAR(json["bits_per_character"], nats / std::log(2) / (tokens - 1),
              1e-9);
  EXPECT_THAT(server_->append_sizes(), Each(Le(7)));
  EXPECT_THAT(server_->sessions(), IsEmpty());
}

TEST_F(Commands, ScoreOfOneTokenDefinesNoPerplexity) {
  const Completed run = Run("score -", "a");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("perplexity not defined\n"));
}

TEST_F(Commands, ScoreThatIsInterruptedExitsAsShellsDo) {
  absl::Notification called;
  server_->on_append = [&](grpc::ServerContext* context) {
    called.Notify();
    return WaitUntilCancelled(context);
  };
  const std::string path = ::testing::TempDir() + "/score-text.txt";
  std::ofstream(path) << "abc";
  Process program({TXL_PROGRAM, "score", path, "--chunk-tokens", "2",
                   "--server", server_.address()});
  called.WaitForNotification();
  program.Signal(SIGINT);
  EXPECT_EQ(program.Wait(), 130);
  EXPECT_THAT(program.Err(), HasSubstr("txl: interrupted\n"));
  EXPECT_THAT(server_->sessions(), IsEmpty());
}

TEST_F(Commands, ScoreIsTheSameHoweverTheTextIsCut) {
  const std::string text(100, 'c');
  const Completed whole = Run("score -", text);
  const Completed cut = Run("score - --chunk-tokens 3", text);
  EXPECT_EQ(whole.exit_code, 0) << whole.err;
  EXPECT_EQ(whole.out, cut.out);
  EXPECT_THAT(whole.out, HasSubstr("nats per token 0.375000\n"));
}

TEST_F(Commands, ScoreNeedsASessionOnlyForSeveralCalls) {
  server_->denied = {"CreateSession"};
  EXPECT_THAT(Run("score -", "cc").out, HasSubstr("nats per token 0.375000\n"));
  const Completed several = Run("score - --chunk-tokens 2", "ccc");
  EXPECT_EQ(several.exit_code, 1);
  EXPECT_THAT(several.err, HasSubstr("more than 2 tokens need a session: "));
}

TEST_F(Commands, ScoreFailsOnAnEmptyTextAMissingFileAndAServersError) {
  EXPECT_EQ(Run("score -", "").exit_code, 1);
  const Completed missing = Run("score /no/such/file");
  EXPECT_EQ(missing.exit_code, 1);
  EXPECT_THAT(missing.err, HasSubstr("/no/such/file"));
  server_->unary_status =
      FakeError(grpc::RESOURCE_EXHAUSTED, "full", "NO_SESSION_MEMORY");
  EXPECT_THAT(Run("score -", "abc").err, HasSubstr("NO_SESSION_MEMORY"));
}

TEST_F(Commands, TokenizeShowsIdsAndTheTextOfIds) {
  EXPECT_EQ(Run("tokenize AB").out, "65,66\n");
  EXPECT_EQ(Run("tokenize -", "a\n").out, "97,10\n");
  EXPECT_EQ(Run("tokenize --decode 72,105").out, "Hi");
  EXPECT_EQ(nlohmann::json::parse(Run("tokenize A --json").out)["tokenIds"][0],
            65);
  EXPECT_EQ(Run("tokenize").exit_code, 2);
}

TEST_F(Commands, SessionsAreMadeListedShownAndDeleted) {
  EXPECT_EQ(Run("sessions create verona").out, "verona\n");
  EXPECT_EQ(Run("sessions create padua --ttl 1.5").out, "padua\n");
  const Completed unnamed = Run("sessions create");
  EXPECT_EQ(unnamed.exit_code, 0);
  EXPECT_EQ(server_->sessions().size(), 3u);

  // The fake has one session on a page.
  const Completed list = Run("sessions list --json");
  const std::vector<std::string> lines =
      absl::StrSplit(list.out, '\n', absl::SkipEmpty());
  ASSERT_EQ(lines.size(), 3u) << list.out;
  EXPECT_EQ(nlohmann::json::parse(lines[2])["sessionId"], "verona");
  EXPECT_THAT(Run("sessions list").out, HasSubstr("\nverona "));
  server_->denied = {"ListSessions"};
  EXPECT_EQ(Run("sessions list").out, "");
  server_->denied.clear();

  EXPECT_THAT(Run("sessions show verona").out, HasSubstr("verona"));
  EXPECT_EQ(Run("sessions delete verona padua").exit_code, 0);
  EXPECT_EQ(server_->sessions().size(), 1u);
}

TEST_F(Commands, SessionsThatDoNotExistFailWithTheirReason) {
  const Completed show = Run("sessions show nobody");
  EXPECT_EQ(show.exit_code, 1);
  EXPECT_THAT(show.err, HasSubstr("NOT_FOUND (SESSION_UNKNOWN): nobody: "));
  const Completed deleted = Run("sessions delete one two");
  EXPECT_EQ(deleted.exit_code, 1);
  EXPECT_THAT(deleted.err, HasSubstr("(SESSION_UNKNOWN): one: "));
  EXPECT_THAT(deleted.err, HasSubstr("(SESSION_UNKNOWN): two: "));
  Run("sessions create a");
  const std::string exists = "(SESSION_EXISTS): a: in use";
  EXPECT_THAT(Run("sessions create a").err, HasSubstr(exists));
  Run("sessions create b");
  EXPECT_THAT(Run("sessions fork b --as a").err, HasSubstr(exists));
  EXPECT_THAT(Run("sessions import - --as a", "FAKEabc").err,
              HasSubstr(exists));
  EXPECT_EQ(Run("sessions").exit_code, 2);
}

TEST_F(Commands, SessionsAreForkedAndRewound) {
  Run("sessions import - --as verona", "FAKEabc");
  EXPECT_EQ(Run("sessions fork verona --at 2 --as padua").out, "padua\n");
  EXPECT_EQ(server_->sessions().at("padua"), (std::vector<uint32_t>{'a', 'b'}));
  EXPECT_THAT(Run("sessions fork verona").out, StartsWith("made-"));
  const Completed back = Run("sessions rewind verona --to 1");
  EXPECT_EQ(back.exit_code, 0) << back.err;
  EXPECT_EQ(back.out, "");
  EXPECT_EQ(server_->sessions().at("verona"), (std::vector<uint32_t>{'a'}));
  EXPECT_EQ(nlohmann::json::parse(
                Run("sessions rewind verona --to 0 --json").out)["position"],
            "0");
  EXPECT_THAT(Run("sessions rewind verona --to 1").err, HasSubstr("position"));
  EXPECT_EQ(Run("sessions rewind verona").exit_code, 2);
  EXPECT_EQ(Run("sessions rewind verona --to -1").exit_code, 2);
}

TEST_F(Commands, SessionsGoToFilesAndComeBack) {
  const std::string file = ::testing::TempDir() + "/verona.txls";
  std::remove(file.c_str());
  EXPECT_EQ(Run("sessions import - --as verona", "FAKEabcd").out, "verona\n");
  EXPECT_EQ(Run("sessions export verona -").out, "FAKEabcd");
  const Completed saved = Run("sessions export verona --state " + file);
  EXPECT_EQ(saved.exit_code, 0) << saved.err;
  EXPECT_EQ(Run("sessions import " + file + " --as padua").out, "padua\n");
  EXPECT_EQ(server_->sessions().at("padua"), server_->sessions().at("verona"));
  EXPECT_THAT(Run("sessions import " + file + " --as padua").err,
              HasSubstr("SESSION_EXISTS"));
  server_->unary_status =
      FakeError(grpc::INVALID_ARGUMENT, "no export", "FIELD_INVALID", "chunk");
  EXPECT_THAT(Run("sessions import " + file).err,
              HasSubstr("chunk: " + file + ": no export"));
  EXPECT_THAT(Run("sessions import /none/x").err, HasSubstr("/none/x"));
}

// An export that breaks off is no file, and does not harm an earlier one.
TEST_F(Commands, AFileIsThereWholeOrNotAtAll) {
  const std::string file = ::testing::TempDir() + "/broken.txls";
  std::ofstream(file) << "earlier";
  Run("sessions create verona");
  server_->unary_status =
      FakeError(grpc::RESOURCE_EXHAUSTED, "too much", "OVERLOADED");
  const Completed run = Run("sessions export verona " + file);
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.err, HasSubstr("OVERLOADED"));
  std::ifstream kept(file);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(kept), {}), "earlier");
  EXPECT_FALSE(std::ifstream(file + ".tmp").good());
}

TEST_F(Commands, AnExportGoesThroughALinkAndIntoAPipe) {
  const std::string folder = ::testing::TempDir() + "/export_places";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  const std::string link = folder + "/link", pipe = folder + "/pipe";
  Run("sessions import - --as verona", "FAKEabcd");
  std::filesystem::create_symlink("file", link);
  EXPECT_EQ(Run("sessions export verona " + link).exit_code, 0);
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_EQ(std::filesystem::file_size(folder + "/file"), 8u);
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  std::string got;
  std::thread reader([&] { std::getline(std::ifstream(pipe), got); });
  EXPECT_EQ(Run("sessions export verona " + pipe).exit_code, 0);
  reader.join();
  EXPECT_EQ(got, "FAKEabcd");
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
}

TEST_F(Commands, SessionsShowTokensAndTheTimeToLiveReachesTheServer) {
  const auto created =
      nlohmann::json::parse(Run("sessions create b --ttl 1.5 --json").out);
  EXPECT_EQ(created["ttl"], "1.500s");
  const auto shown =
      nlohmann::json::parse(Run("sessions show b --tokens --json").out);
  EXPECT_EQ(shown["session"]["position"], "0");
  EXPECT_TRUE(shown["tokenIds"].is_array());
}

TEST_F(Commands, StatusShowsModelAndCounters) {
  const Completed run = Run("status");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("fake (0123456789ab)"));
  EXPECT_THAT(run.out, HasSubstr("state        ready"));
  EXPECT_THAT(run.out, HasSubstr("mean 1.5 decode rows"));
  EXPECT_THAT(run.out, HasSubstr("OK 3"));
  const auto json = nlohmann::json::parse(Run("status --json").out);
  EXPECT_EQ(json["model"]["vocabularySize"], "256");
  EXPECT_EQ(json["status"]["state"], "SERVER_STATE_READY");
}

TEST_F(Commands, StatusShowsWhatTheKeyMaySee) {
  server_->denied = {"GetModel"};
  const Completed run = Run("status");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, StartsWith("model        not for this key\nstate  "));
  EXPECT_THAT(Run("status --json").out, StartsWith("{\"model\":null,"));
  server_->denied = {"GetServerStatus"};
  EXPECT_THAT(Run("status").out,
              HasSubstr("\nstate        not for this key\n"));
  EXPECT_THAT(Run("status --json").out, HasSubstr(",\"status\":null}"));
  server_->denied = {"GetModel", "GetServerStatus"};
  EXPECT_EQ(Run("status").exit_code, 1);
}

TEST_F(Commands, AnAddressOfTheOtherListenerIsSaidToBe) {
  const Completed run = RunProgram(
      {TXL_PROGRAM, "admin", "sessions", "list", "--admin", server_.address()});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_EQ(run.out, "");
  EXPECT_THAT(run.err, HasSubstr("UNIMPLEMENTED: not served at this address"));
}

TEST_F(Commands, StatusCheckIsSilentAndExitsWithZeroOnlyWhenReady) {
  const Completed ready = Run("status --check");
  EXPECT_EQ(ready.exit_code, 0);
  EXPECT_EQ(ready.out + ready.err, "");
  server_.SetServing(false);
  const Completed draining = Run("status --check");
  EXPECT_EQ(draining.exit_code, 1);
  EXPECT_THAT(draining.err, HasSubstr("not serving"));
  EXPECT_EQ(RunProgram({TXL_PROGRAM, "status", "--check", "--server",
                        "unix:no-such-socket"})
                .exit_code,
            1);
}

TEST_F(Commands, BenchReportsWhatItMeasured) {
  const Completed run = Run(
      "bench --streams 2 --requests 6 --prompt-tokens 3 --max-tokens 5 --json");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const auto json = nlohmann::json::parse(run.out);
  EXPECT_EQ(json["requests"], 6);
  EXPECT_EQ(json["tokens"], 30);
  EXPECT_EQ(json["statuses"], nlohmann::json({{"OK", 6}}));
  EXPECT_EQ(json["malformed_streams"], nlohmann::json::object());
  EXPECT_EQ(json["time_to_first_token_seconds"]["count"], 6);
  EXPECT_THAT(Run("bench --streams 1 --requests 1").out,
              HasSubstr("time to first token"));
}

TEST_F(Commands, BenchFailsOnMalformedStreamsAndWhenNothingEndedWell) {
  server_->on_generate = [](grpc::ServerContext*, const v1::GenerateRequest&,
                            FakeService::Writer* writer) {
    writer->Write(StartedEvent(0, 1));
    writer->Write(TokenEvent(1, 'a'));
    writer->Write(FinishedEvent(2, 1, 1));
    return grpc::Status::OK;
  };
  const Completed malformed = Run("bench --streams 1 --requests 1");
  EXPECT_EQ(malformed.exit_code, 1);
  EXPECT_THAT(malformed.out, HasSubstr("index 1 where 0 was due"));
  server_->on_generate = [](grpc::ServerContext*, const v1::GenerateRequest&,
                            FakeService::Writer*) {
    return FakeError(grpc::UNAVAILABLE, "going", "DRAINING");
  };
  const Completed refused = Run("bench --streams 1 --requests 2");
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.out, HasSubstr("UNAVAILABLE (DRAINING)"));
}

TEST(Help, OfEveryCommandExitsWithZeroAndStatesDefaults) {
  for (const char* command :
       {"generate", "chat", "score", "tokenize", "status", "bench"}) {
    const Completed run = RunProgram({TXL_PROGRAM, command, "--help"});
    EXPECT_EQ(run.exit_code, 0) << command;
    EXPECT_THAT(run.out, HasSubstr("127.0.0.1:50051")) << command;
    EXPECT_THAT(run.out, HasSubstr("--ca")) << command;
    EXPECT_THAT(run.out, HasSubstr("--tls-cert")) << command;
    EXPECT_THAT(run.out, HasSubstr("--tls-key")) << command;
    EXPECT_THAT(run.out, HasSubstr("[default: off]")) << command;
  }
  for (const char* verb : {"list", "show", "create", "delete", "fork", "rewind",
                           "export", "import"}) {
    const Completed run = RunProgram({TXL_PROGRAM, "sessions", verb, "--help"});
    EXPECT_EQ(run.exit_code, 0) << verb;
    EXPECT_THAT(run.out, HasSubstr("127.0.0.1:50051")) << verb;
  }
}

// Numbers of hundreds of digits, or lists in C++'s notation.
TEST(Help, IsReadable) {
  const Completed run = RunProgram({TXL_PROGRAM, "--help-all"});
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_THAT(run.out, HasSubstr("--arrivals poisson|constant"));
  EXPECT_THAT(run.out, HasSubstr("--cancel 0..1"));
  EXPECT_THAT(run.out, HasSubstr("--timeout >= 0"));
  for (const char* jargon : {"NONNEGATIVE", "POSITIVE", "ENUM", "{", " in ["}) {
    EXPECT_THAT(run.out, Not(HasSubstr(jargon)));
  }
}

TEST(Usage, MisspeltCommandsAreNamedWithTheNearest) {
  const Completed run = RunProgram({TXL_PROGRAM, "generat"});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.err, HasSubstr("generat: no such command; did you mean "
                                 "generate?"));
  EXPECT_THAT(RunProgram({TXL_PROGRAM, "--version"}).out, StartsWith("txl 0."));
  EXPECT_THAT(RunProgram({TXL_PROGRAM, "tokenize", "a", "b", "c"}).err,
              HasSubstr("not understood: b c"));
}

TEST(Usage, WithoutACommandOrWithAnUnknownOneExitsWithTwo) {
  EXPECT_EQ(RunProgram({TXL_PROGRAM}).exit_code, 2);
  EXPECT_EQ(RunProgram({TXL_PROGRAM, "dance"}).exit_code, 2);
  EXPECT_EQ(RunProgram({TXL_PROGRAM, "--help"}).exit_code, 0);
}

}  // namespace
}  // namespace txl::testing
