// What surrounds the process: its log's reader, signals, file descriptors.

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/end_to_end/server_process.h"
#include "tests/end_to_end/turns.h"

namespace txl::testing {
namespace {

using ::testing::HasSubstr;

// A pipe in the file system, for a log that nobody reads.
class UnreadPipe {
 public:
  UnreadPipe()
      : path_(absl::StrCat(::testing::TempDir(), "/unread-", getpid())) {
    EXPECT_EQ(mkfifo(path_.c_str(), 0600), 0);
  }
  ~UnreadPipe() { std::filesystem::remove(path_); }

  // Runs a server with its log going there. It holds the end to read from
  // itself.
  std::vector<std::string> Wrapper() const {
    return {"/bin/sh", "-c", "exec 3<>\"$0\"; exec \"$@\" 2>&3", path_};
  }

 private:
  const std::string path_;
};

TEST(ServerProcessTest, ServesAndDrainsWhileNobodyReadsItsLog) {
  const UnreadPipe pipe;
  ServerProcess server(GoldenModel("kimi-char"), {"--slots", "2"},
                       pipe.Wrapper());
  // A line a call: many times what a pipe holds.
  for (int i = 0; i < 2000; ++i) {
    ASSERT_TRUE(server.client().GetModel().ok()) << i;
  }
  EXPECT_TRUE(
      RunTurn(server.client(), Greedy("", std::vector<uint32_t>{1, 2}, 5))
          .status.ok());
  server.Terminate();
  EXPECT_EQ(server.Wait(), 0);
}

TEST(ServerProcessTest, SignalsThatAskForNoEndEndNothingAndHaveALineEach) {
  ServerProcess server(GoldenModel("kimi-char"), {"--slots", "2"});
  for (const auto& [signal, name] :
       {std::pair(SIGHUP, "SIGHUP"), std::pair(SIGUSR1, "SIGUSR1"),
        std::pair(SIGUSR2, "SIGUSR2")}) {
    server.Signal(signal);
    EXPECT_TRUE(WaitUntil(
        [&] { return server.Log().find(name) != std::string::npos; }));
  }
  EXPECT_TRUE(server.client().GetModel().ok());
  server.Terminate();
  EXPECT_EQ(server.Wait(), 0);
}

// Connections to an address "127.0.0.1:PORT" that say nothing.
class IdleConnections {
 public:
  IdleConnections(const std::string& address, int count) {
    sockaddr_in name = {};
    name.sin_family = AF_INET;
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    name.sin_port = htons(static_cast<uint16_t>(
        std::stoi(address.substr(address.rfind(':') + 1))));
    for (int i = 0; i < count; ++i) {
      fds_.push_back(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
      ::connect(fds_.back(), reinterpret_cast<const sockaddr*>(&name),
                sizeof(name));
    }
  }
  ~IdleConnections() {
    for (const int fd : fds_) ::close(fd);
  }

 private:
  std::vector<int> fds_;
};

TEST(ServerProcessTest, WithoutFileDescriptorsServesOrEndsToBeStartedAgain) {
  ServerProcess server(GoldenModel("kimi-char"), {"--slots", "2"},
                       {"/bin/sh", "-c", "ulimit -n 128; exec \"$0\" \"$@\""});
  { const IdleConnections connections(server.address(), 200); }
  ChannelOptions options;
  options.address = server.address();
  options.own_connection = true;
  const auto client = Client::Create(options);
  ASSERT_TRUE(client.ok()) << client.status();
  CallOptions call;
  call.timeout = absl::Seconds(2);
  bool served = false;
  EXPECT_TRUE(WaitUntil([&] {
    served = (*client)->GetModel(call).ok();
    return served || server.HasEnded();
  }));
  if (served) server.Terminate();
  EXPECT_EQ(server.Wait(), served ? 0 : 4) << server.Log();
}

// A copy of a golden model, to be damaged.
class CheckConfig : public ::testing::Test {
 protected:
  CheckConfig()
      : folder_(std::filesystem::path(::testing::TempDir()) /
                absl::StrCat("txl-check-", getpid())) {
    std::filesystem::create_directories(folder_);
    for (const char* file : {"config.json", "model.safetensors"}) {
      std::filesystem::copy_file(
          std::filesystem::path(GoldenModel("kimi-char")) / file,
          folder_ / file, std::filesystem::copy_options::overwrite_existing);
    }
  }
  ~CheckConfig() override { std::filesystem::remove_all(folder_); }

  Completed Run(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments = {TXL_SERVER_PROGRAM, "--model",
                                          folder_.string(), "--check-config"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunProgram(arguments);
  }

  const std::filesystem::path folder_;
};

TEST_F(CheckConfig, TakesAWholeModel) {
  const Completed run = Run();
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("valid"));
}

TEST_F(CheckConfig, FindsFilesThatTheStartWouldNotTake) {
  const std::string file = (folder_ / "config.json").string();
  const std::vector<std::vector<std::string>> all = {
      {"--data-dir", file},
      {"--data-dir", "/nowhere/a/b"},
      {"--audit-log", folder_.string()},
      {"--trace-file", "/nowhere/spans"},
      {"--listen", "unix:/nowhere/socket"},
      {"--admin-listen", "unix:/nowhere/socket"},
      {"--export-key-file", "/nowhere/key"}};
  for (const std::vector<std::string>& flags : all) {
    const Completed run = Run(flags);
    EXPECT_EQ(run.exit_code, 1) << flags[0];
    EXPECT_THAT(run.err, HasSubstr(flags[0]));
    EXPECT_THAT(run.err, HasSubstr(flags[1]));
  }
  EXPECT_EQ(Run({"--data-dir", (folder_ / "new/").string()}).exit_code, 0);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "new"));
}

TEST_F(CheckConfig, TakesASocketWhoseFolderTheServiceMakesWhenItStarts) {
  const Completed run =
      Run({"--admin-listen", "unix:/run/txl-check-config/admin.sock"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
}

TEST_F(CheckConfig, FindsWeightsThatAreTruncated) {
  const auto weights = folder_ / "model.safetensors";
  std::filesystem::resize_file(weights,
                               std::filesystem::file_size(weights) - 100);
  const Completed run = Run();
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.err, HasSubstr("model.safetensors"));
}

TEST_F(CheckConfig, FindsAVocabularyThatIsNotThere) {
  std::ofstream(folder_ / "tokenizer.json")
      << R"({"kind": "characters", "file": "vocab.txt"})";
  const Completed run = Run();
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.err, HasSubstr("vocab.txt"));
}

TEST_F(CheckConfig, FindsADeviceThatIsNotThere) {
  for (const char* device : {"tpu", "cuda:99"}) {
    const Completed run = Run({"--device", device});
    EXPECT_EQ(run.exit_code, 1) << device;
    EXPECT_THAT(run.err, HasSubstr(absl::StrCat("\"", device, "\"")));
  }
}

TEST_F(CheckConfig, FindsFormatsThatTheStepDoesNotHave) {
  const Completed formats = Run({"--step", "torch", "--weights", "int4"});
  EXPECT_EQ(formats.exit_code, 1);
  EXPECT_THAT(formats.err, HasSubstr("the torch step keeps f32"));
  const Completed form = Run({"--step", "torch", "--form", "projected"});
  EXPECT_EQ(form.exit_code, 1);
  EXPECT_THAT(form.err, HasSubstr("the torch step is absorbed"));
}

TEST_F(CheckConfig, FindsADamagedTableOfNgrams) {
  std::ofstream(folder_ / "ngrams.bin") << "something else";
  EXPECT_EQ(Run().exit_code, 0);
  const Completed run = Run({"--speculate", "auto"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.err, HasSubstr("ngrams.bin"));
}

TEST_F(CheckConfig, FindsSlotsForWhichThereIsNoMemory) {
  const Completed run = Run({"--slots", "1000000", "--memory-limit", "2gb"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.err, HasSubstr("slots"));
}

TEST_F(CheckConfig, DoesNotHangOnAPipe) {
  for (const char* file : {"model.safetensors", "config.json"}) {
    std::filesystem::remove(folder_ / file);
    ASSERT_EQ(mkfifo((folder_ / file).c_str(), 0600), 0);
    const Completed run = Run();
    EXPECT_EQ(run.exit_code, 1);
    EXPECT_THAT(run.err, HasSubstr(file));
  }
}

TEST(ServerProgram, AModelThatIsNeitherHereNorInstalledIsAnError) {
  const Completed run = RunProgram({TXL_SERVER_PROGRAM, "--model", "nowhere"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.err, HasSubstr("\"nowhere\""));
  EXPECT_THAT(run.err, HasSubstr("/share/txl/models"));
}

TEST(ServerProgram, AMisspeltVariableIsWrongUsage) {
  setenv("TXL_DRAIN_TIMOUT", "5s", 1);
  const Completed run =
      RunProgram({TXL_SERVER_PROGRAM, "--model", "m", "--check-config"});
  unsetenv("TXL_DRAIN_TIMOUT");
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.err, HasSubstr("did you mean TXL_DRAIN_TIMEOUT?"));
}

TEST(ServerProgram, AMemoryLimitThatIsTooSmallIsAnError) {
  const Completed run =
      RunProgram({TXL_SERVER_PROGRAM, "--model", ShippedModel(), "--listen",
                  "127.0.0.1:0", "--memory-limit", "64mb"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.err, HasSubstr("--memory-limit"));
}

TEST(ServerProgram, ServesTheShippedModelIn256MiB) {
  ServerProcess server(ShippedModel(), {"--memory-limit", "256mb"});
  // More sessions than slots.
  for (int i = 0; i < 40; ++i) {
    EXPECT_TRUE(
        RunTurn(server.client(), Greedy("", std::vector<uint32_t>{1, 2, 3}, 20))
            .status.ok());
  }
  EXPECT_LT(server.ResidentBytes(), int64_t{256} << 20);
}

}  // namespace
}  // namespace txl::testing
