// `txl admin` against the real server.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/end_to_end/server_process.h"
#include "tests/end_to_end/turns.h"

namespace txl::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

// `command` is split at spaces.
Completed Txl(const std::string& command) {
  std::vector<std::string> argv = absl::StrSplit(command, ' ');
  argv.insert(argv.begin(), TXL_PROGRAM);
  return RunProgram(argv);
}

// A folder with a short name: a socket's path has room for 107 characters.
class Folder {
 public:
  Folder() {
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string file(const std::string& name) const {
    return absl::StrCat(path_, "/", name);
  }
  std::string Write(const std::string& name, const std::string& text) const {
    std::ofstream(file(name)) << text;
    chmod(file(name).c_str(), 0600);
    return file(name);
  }

 private:
  const std::string path_ = absl::StrCat("/tmp/txl-admin-test-", getpid());
};

class AdminProgram : public ::testing::Test {
 protected:
  Completed Admin(const std::string& command) {
    return Txl(absl::StrCat("admin ", command,
                            " --admin unix:", folder_.file("data/admin.sock")));
  }
  void Feed(const std::string& id) {
    v1::CreateSessionRequest create;
    create.set_session_id(id);
    ASSERT_TRUE(server_.client().CreateSession(create).ok());
    v1::AppendTokensRequest append;
    append.set_session_id(id);
    for (const uint32_t token : {1, 2, 3}) {
      append.mutable_tokens()->add_ids(token);
    }
    ASSERT_TRUE(server_.client().AppendTokens(append).ok());
  }

  const Folder folder_;
  const std::string tenants_ =
      folder_.Write("tenants.toml", "[tenant.default]\nturns = 7\n");
  ServerProcess server_{GoldenModel("kimi-char"),
                        {"--slots", "8", "--data-dir", folder_.file("data"),
                         "--tenants", tenants_}};
};

TEST_F(AdminProgram, ListsMovesOutAndEndsSessions) {
  Feed("padua");
  Feed("verona");
  const auto slots = [&] {
    const Completed list = Admin("sessions list --json");
    EXPECT_EQ(list.exit_code, 0) << list.err;
    std::vector<std::string> found;
    for (const auto line : absl::StrSplit(list.out, '\n', absl::SkipEmpty())) {
      const Json json = Json::parse(std::string(line));
      found.push_back(
          absl::StrCat(json["session"]["sessionId"].get<std::string>(), " ",
                       json["inSlot"].get<bool>()));
    }
    return found;
  };
  EXPECT_THAT(slots(), ElementsAre("padua 1", "verona 1"));
  EXPECT_EQ(Admin("sessions move-out verona").out, "moved out\n");
  EXPECT_THAT(slots(), ElementsAre("padua 1", "verona 0"));
  EXPECT_EQ(Admin("sessions move-out verona").out, "it was not in a slot\n");
  EXPECT_THAT(Admin("sessions list").out,
              AllOf(HasSubstr("SLOT SESSION"), HasSubstr("yes  padua"),
                    HasSubstr("no   verona")));
  EXPECT_EQ(Admin("sessions end padua verona").exit_code, 0);
  EXPECT_EQ(Admin("sessions list --json").out, "");
  const Completed none = Admin("sessions end nobody");
  EXPECT_EQ(none.exit_code, 1);
  EXPECT_THAT(none.err, HasSubstr("SESSION_UNKNOWN"));
  EXPECT_EQ(Admin("sessions list --json --tenant alice").out, "");
}

TEST_F(AdminProgram, DrainsATenantAndTakesItsTurnsOnAgain) {
  const auto turn = [&] {
    return RunTurn(server_.client(), Greedy("", std::vector<uint32_t>{1, 2}, 3))
        .status;
  };
  EXPECT_TRUE(turn().ok());
  EXPECT_EQ(Admin("drain --tenant default").out,
            "draining: default\nturns of default: 0\n");
  EXPECT_THAT(std::string(turn().message()), HasSubstr("of the tenant"));
  EXPECT_THAT(Admin("quotas").out,
              AllOf(HasSubstr("draining"), HasSubstr("0/7")));
  EXPECT_EQ(Admin("drain --tenant default --undo").exit_code, 0);
  EXPECT_TRUE(turn().ok());
}

TEST_F(AdminProgram, ReadsFilesAgainAndFailsWhereOneIsWrong) {
  folder_.Write("tenants.toml", "[tenant.default]\nturns = 9\n");
  const Completed read = Admin("reload");
  EXPECT_EQ(read.exit_code, 0);
  EXPECT_EQ(read.out, absl::StrCat("tenants ", tenants_, ": taken\n"));
  EXPECT_THAT(Admin("quotas").out, HasSubstr("0/9"));
  folder_.Write("tenants.toml", "[tenant.default]\nturns = 0\n");
  const Completed wrong = Admin("reload --json");
  EXPECT_EQ(wrong.exit_code, 1);
  EXPECT_THAT(Json::parse(wrong.out)["files"][0]["error"].get<std::string>(),
              HasSubstr("turns"));
  EXPECT_THAT(Admin("quotas").out, HasSubstr("0/9"));
}

TEST_F(AdminProgram, SetsWhatTheLogHas) {
  EXPECT_THAT(server_.Log(), Not(HasSubstr("\"DEBUG\"")));
  EXPECT_EQ(Admin("log-level error").out, "info -> error\n");
  EXPECT_EQ(Admin("log-level info").out, "error -> info\n");
  EXPECT_EQ(Admin("log-level loud").exit_code, 2);
  // The second call raised no line of its own end.
  EXPECT_THAT(server_.Log(), HasSubstr("AdminService/SetLogLevel"));
}

TEST_F(AdminProgram, DumpsWhatTheServerDoesWithoutNames) {
  Feed("verona");
  const Completed dump = Admin("dump");
  ASSERT_EQ(dump.exit_code, 0) << dump.err;
  const Json json = Json::parse(dump.out);
  EXPECT_EQ(json["scheduler"]["answered"], true);
  EXPECT_EQ(json["scheduler"]["slots_used"], 1);
  EXPECT_EQ(json["store"]["sessions_in_slots"][0]["position"], 3);
  EXPECT_EQ(json["status"]["store"]["state"], "serving");
  EXPECT_THAT(dump.out, Not(HasSubstr("verona")));
}

TEST_F(AdminProgram, EndsTheServer) {
  EXPECT_EQ(Admin("drain").out, "the server drains\n");
  EXPECT_EQ(server_.Wait(), 0);
  EXPECT_THAT(server_.Log(), HasSubstr("\"event\":\"drain\""));
  EXPECT_FALSE(std::filesystem::exists(folder_.file("data/admin.sock")));
  const Completed gone = Admin("quotas");
  EXPECT_EQ(gone.exit_code, 1);
  EXPECT_THAT(gone.err, HasSubstr("UNAVAILABLE"));
}

TEST_F(AdminProgram, SaysWhatIsWrongWithItsCommandLine) {
  const Completed nowhere = Txl("admin quotas");
  EXPECT_EQ(nowhere.exit_code, 2);
  EXPECT_THAT(nowhere.err, HasSubstr("--admin"));
  EXPECT_EQ(Txl("admin quotas --admin nowhere").exit_code, 2);
  const Completed undo = Admin("drain --undo");
  EXPECT_EQ(undo.exit_code, 2);
  EXPECT_THAT(undo.err, HasSubstr("--tenant"));
}

TEST_F(AdminProgram, FindsNothingOnThePublicListener) {
  const Completed there =
      Txl(absl::StrCat("admin quotas --admin ", server_.address()));
  EXPECT_EQ(there.exit_code, 1);
  EXPECT_THAT(there.err, HasSubstr("UNIMPLEMENTED"));
}

TEST(AdminOnAPort, WantsTheKeyOfAnAdministrator) {
  const Folder folder;
  const std::string keys = folder.file("keys.toml");
  const auto add = [&](const std::string& role) {
    const Completed added =
        RunProgram({TXL_SERVER_PROGRAM, "keys", "add", "--keys", keys, "--name",
                    role, "--tenant", "alice", "--role", role});
    EXPECT_EQ(added.exit_code, 0) << added.err;
    const std::vector<std::string> words =
        absl::StrSplit(added.out, absl::ByAnyChar(" \n"), absl::SkipEmpty());
    return folder.Write(role, words.back());
  };
  const std::string admin = add("admin");
  const std::string user = add("user");
  Process server({TXL_SERVER_PROGRAM, "--model", GoldenModel("kimi-char"),
                  "--listen", "127.0.0.1:0", "--slots", "2", "--keys", keys,
                  "--admin-listen", "127.0.0.1:0"});
  server.ReadLine();
  const std::string line = server.ReadLine();
  const std::vector<std::string> words =
      absl::StrSplit(line, absl::ByAnyChar(" \n"), absl::SkipEmpty());
  ASSERT_EQ(words.size(), 3u) << line << server.Err();
  const auto quotas = [&](const std::string& rest) {
    return Txl(absl::StrCat("admin reload --admin ", words[2], rest));
  };
  EXPECT_THAT(quotas("").err, HasSubstr("UNAUTHENTICATED"));
  EXPECT_THAT(quotas(" --key-file " + user).err,
              HasSubstr("PERMISSION_DENIED"));
  const Completed read = quotas(" --key-file " + admin);
  EXPECT_EQ(read.exit_code, 0) << read.err;
  EXPECT_EQ(read.out, absl::StrCat("keys ", keys, ": taken\n"));
  server.Signal(SIGTERM);
  EXPECT_EQ(server.Wait(), 0);
}

TEST(AdminOnAPort, BeyondLoopbackIsRefused) {
  const Completed server =
      RunProgram({TXL_SERVER_PROGRAM, "--model", GoldenModel("kimi-char"),
                  "--insecure", "--admin-listen", "0.0.0.0:0"});
  EXPECT_EQ(server.exit_code, 2);
  EXPECT_THAT(server.err, HasSubstr("--admin-listen 0.0.0.0:0"));
}

}  // namespace
}  // namespace txl::testing
