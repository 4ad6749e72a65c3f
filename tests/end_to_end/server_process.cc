#include "tests/end_to_end/server_process.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "tests/client/process_memory.h"

namespace txl::testing {
namespace {

std::vector<std::string> Argv(const std::string& model_directory,
                              const std::vector<std::string>& flags,
                              std::vector<std::string> argv) {
  argv.insert(argv.end(), {TXL_SERVER_PROGRAM, "--model", model_directory,
                           "--listen", "127.0.0.1:0"});
  argv.insert(argv.end(), flags.begin(), flags.end());
  return argv;
}

}  // namespace

std::string TestData() {
  const char* folder = std::getenv("TXL_TEST_DATA");
  return folder == nullptr ? "tests" : folder;
}

std::string ShippedModel() {
  return absl::StrCat(TestData(), "/../models/shakespeare");
}

std::string NeverParked() {
  return absl::StrCat(TestData(), "/end_to_end/never_parked.toml");
}

std::string GoldenModel(const std::string& name) {
  return absl::StrCat(TestData(), "/golden/", name);
}

ServerProcess::ServerProcess(const std::string& model_directory,
                             const std::vector<std::string>& flags,
                             const std::vector<std::string>& wrapper)
    : process_(Argv(model_directory, flags, wrapper)) {
  const std::string line = process_.ReadLine();
  absl::string_view address = line;
  if (!absl::ConsumePrefix(&address, "listening on ")) {
    ADD_FAILURE() << "the server said '" << line << "'\n" << process_.Err();
  }
  address_ = std::string(absl::StripAsciiWhitespace(address));
  client_ = NewClient();
}

ServerProcess::~ServerProcess() {
  if (ended_) return;
  Terminate();
  EXPECT_EQ(Wait(), 0) << process_.Err();
}

std::string ServerProcess::ReadMetricsAddress() {
  const std::string line = process_.ReadLine();
  absl::string_view address = line;
  if (!absl::ConsumePrefix(&address, "metrics on http://") ||
      !absl::ConsumeSuffix(&address, "/metrics\n")) {
    ADD_FAILURE() << "the server said '" << line << "'";
    return "";
  }
  return std::string(address);
}

std::unique_ptr<Client> ServerProcess::NewClient() const {
  ChannelOptions options;
  options.address = address_;
  options.own_connection = true;
  auto client = Client::Create(options);
  if (client.ok()) {
    // gRPC 1.51 takes a connection in progress for a failed one where a
    // library call changes errno (its pull request 35064).
    const absl::Status connected = (*client)->Connect(absl::Seconds(20));
    EXPECT_TRUE(connected.ok()) << connected;
    return *std::move(client);
  }
  ADD_FAILURE() << client.status();
  options.address = "unix:none";  // every call is UNAVAILABLE
  return *Client::Create(options);
}

v1::GetServerStatusResponse ServerProcess::Status() {
  const auto status = client_->GetServerStatus();
  EXPECT_TRUE(status.ok()) << status.status();
  if (!status.ok()) return {};
  ExpectConserved(*status);
  return *status;
}

int64_t ServerProcess::ResidentBytes() const {
  std::ifstream statm(absl::StrCat("/proc/", process_.pid(), "/statm"));
  int64_t pages = 0, resident = 0;
  EXPECT_TRUE(statm >> pages >> resident);
  return resident * sysconf(_SC_PAGESIZE);
}

int64_t ServerProcess::OwnBytes() const {
  return testing::OwnBytes(process_.pid());
}

std::vector<std::string> ServerProcess::OpenFiles() const {
  std::vector<std::string> names;
  for (const auto& file : std::filesystem::directory_iterator(
           absl::StrCat("/proc/", process_.pid(), "/fd"))) {
    std::error_code closed;  // since it was listed
    names.push_back(std::filesystem::read_symlink(file.path(), closed));
  }
  return names;
}

void ServerProcess::Terminate() { process_.Signal(SIGTERM); }

bool ServerProcess::HasEnded() const {
  siginfo_t info = {};
  return waitid(P_PID, process_.pid(), &info, WEXITED | WNOHANG | WNOWAIT) ==
             0 &&
         info.si_pid != 0;
}

int ServerProcess::Wait() {
  ended_ = true;
  return process_.Wait();
}

void ExpectConserved(const v1::GetServerStatusResponse& status) {
  int64_t finished = 0;
  for (const auto& [name, count] : status.turns_finished()) finished += count;
  EXPECT_EQ(status.turns_started(), finished + status.turns_active());
  EXPECT_EQ(status.tokens_sampled(),
            status.tokens_delivered() + status.tokens_discarded());
  EXPECT_EQ(status.sessions_created() + status.sessions_loaded(),
            status.sessions_ended() + status.sessions_stored_away() +
                status.sessions_busy() + status.sessions_idle());
  EXPECT_LE(status.slots_used(), status.slots_total());
  EXPECT_LE(status.steps_with_prompt_and_decode(), status.steps_with_decode());
  EXPECT_LE(status.steps_with_decode(), status.steps());
  // A step is counted before its rows.
  if (status.turns_active() == 0) {
    EXPECT_LE(status.steps_with_decode(), status.rows_decode());
  }
}

}  // namespace txl::testing
