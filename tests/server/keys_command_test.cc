#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "server/access/keys_file.h"
#include "server/base/digest.h"
#include "server/commands.h"

namespace txl {
namespace {

using testing::HasSubstr;
using testing::Not;

class KeysCommand : public testing::Test {
 protected:
  KeysCommand() { unlink(path_.c_str()); }

  int Run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "keys");
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    const int code = RunKeysCommand(arguments);
    error_ = testing::internal::GetCapturedStderr();
    output_ = testing::internal::GetCapturedStdout();
    return code;
  }
  int Add(const std::string& name, const std::string& role = "user",
          const std::vector<std::string>& more = {}) {
    std::vector<std::string> all = {"add",    "--keys", path_,
                                    "--name", name,     "--tenant",
                                    "alice",  "--role", role};
    all.insert(all.end(), more.begin(), more.end());
    return Run(all);
  }
  std::string LastWord() const {
    const std::vector<std::string> words =
        absl::StrSplit(output_, absl::ByAnyChar(" \n"), absl::SkipEmpty());
    return words.empty() ? "" : words.back();
  }

  const std::string path_ =
      absl::StrCat(testing::TempDir(), "/keys_command_", getpid());
  std::string output_, error_;
};

TEST_F(KeysCommand, OnlyItsOwnWordBeginsIt) {
  EXPECT_TRUE(IsKeysCommand({"keys", "list"}));
  EXPECT_FALSE(IsKeysCommand({}));
  EXPECT_FALSE(IsKeysCommand({"--keys", "list"}));
}

TEST_F(KeysCommand, AddPrintsTheKeyAsTheLastWordAndKeepsItsDigestAlone) {
  ASSERT_EQ(Add("laptop"), 0) << error_;
  const std::string key = LastWord();
  EXPECT_EQ(key.size(), 43u);
  const auto keys = ReadKeysFile(path_);
  ASSERT_TRUE(keys.ok()) << keys.status();
  ASSERT_EQ(keys->size(), 1u);
  EXPECT_EQ((*keys)[0].caller.name, "laptop");
  EXPECT_EQ((*keys)[0].caller.tenant, "alice");
  EXPECT_EQ((*keys)[0].caller.role, Role::kUser);
  EXPECT_EQ((*keys)[0].digest, Sha256Of(key));
  EXPECT_EQ((*keys)[0].expires, absl::InfiniteFuture());
  EXPECT_THAT(FormatKeys(*keys), Not(HasSubstr(key)));
  struct stat file = {};
  ASSERT_EQ(stat(path_.c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 0777, 0600u);
}

TEST_F(KeysCommand, AddTakesAnExpiry) {
  const absl::Time before = absl::Now();
  ASSERT_EQ(Add("short", "metrics", {"--expires-in", "1h"}), 0) << error_;
  const absl::Time expires = (*ReadKeysFile(path_))[0].expires;
  // Whole seconds are kept.
  EXPECT_GE(expires, before + absl::Hours(1) - absl::Seconds(1));
  EXPECT_LE(expires, absl::Now() + absl::Hours(1));
}

TEST_F(KeysCommand, AddTakesNoExpiryBeyondAHundredYears) {
  EXPECT_EQ(Add("a", "user", {"--expires-in", "9999999h"}), 2);
  EXPECT_THAT(error_, HasSubstr("--expires-in: 9999999h is more than"));
  EXPECT_EQ(Add("a", "user", {"--expires-in", "inf"}), 2);
}

TEST_F(KeysCommand, ListTellsNamesAndNoSecrets) {
  ASSERT_EQ(Add("a", "scorer"), 0);
  const std::string key = LastWord();
  ASSERT_EQ(Add("b", "admin", {"--expires-in", "1h"}), 0);
  ASSERT_EQ(Run({"list", "--keys", path_}), 0);
  EXPECT_THAT(output_, HasSubstr("a\talice\tscorer\tnever\n"));
  EXPECT_THAT(output_, HasSubstr("b\talice\tadmin\t20"));
  EXPECT_THAT(output_, Not(HasSubstr(key)));
}

TEST_F(KeysCommand, AFileThatIsNamedGoesBeforeTheVariable) {
  const std::string other = path_ + ".other";
  unlink(other.c_str());
  setenv("TXL_KEYS", other.c_str(), 1);
  ASSERT_EQ(Add("a"), 0) << error_;
  ASSERT_EQ(Run({"list", "--keys", path_}), 0) << error_;
  EXPECT_THAT(output_, HasSubstr("a\talice\tuser\tnever\n"));
  ASSERT_EQ(Run({"revoke", "--keys", path_, "--name", "a"}), 0) << error_;
  EXPECT_NE(access(other.c_str(), F_OK), 0);
  ASSERT_EQ(Run({"add", "--name", "b", "--tenant", "t", "--role", "user"}), 0);
  EXPECT_EQ(access(other.c_str(), F_OK), 0);
  unsetenv("TXL_KEYS");
  unlink(other.c_str());
}

TEST_F(KeysCommand, RevokeEndsOneKey) {
  ASSERT_EQ(Add("a"), 0);
  ASSERT_EQ(Add("b"), 0);
  ASSERT_EQ(Run({"revoke", "--keys", path_, "--name", "a"}), 0) << error_;
  const auto keys = ReadKeysFile(path_);
  ASSERT_EQ(keys->size(), 1u);
  EXPECT_EQ((*keys)[0].caller.name, "b");
  EXPECT_EQ(Run({"revoke", "--keys", path_, "--name", "a"}), 1);
  EXPECT_THAT(error_, HasSubstr(path_ + ": there is no key \"a\""));
}

TEST_F(KeysCommand, RevokeNamesAFileThatIsNotThere) {
  EXPECT_EQ(Run({"revoke", "--keys", path_, "--name", "a"}), 1);
  EXPECT_THAT(error_, HasSubstr(path_ + ": No such file"));
  EXPECT_NE(access(path_.c_str(), F_OK), 0);
}

TEST_F(KeysCommand, AKeyThatCannotBePrintedIsNotAdded) {
  ASSERT_EQ(Add("a"), 0);
  const auto add = [&] {
    // In a process of its own, whose standard output has an error then.
    if (std::freopen("/dev/full", "w", stdout) == nullptr) std::exit(99);
    std::exit(RunKeysCommand({"keys", "add", "--keys", path_, "--name", "b",
                              "--tenant", "t", "--role", "user"}));
  };
  EXPECT_EXIT(add(), testing::ExitedWithCode(1),
              "standard output cannot be written");
  EXPECT_EQ(ReadKeysFile(path_)->size(), 1u);
}

TEST_F(KeysCommand, FollowsALinkAndKeepsIt) {
  const std::string link = path_ + ".link";
  std::filesystem::remove(link);
  std::filesystem::create_symlink(path_, link);
  ASSERT_EQ(Add("a"), 0) << error_;
  ASSERT_EQ(Run({"revoke", "--keys", link, "--name", "a"}), 0) << error_;
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_TRUE(ReadKeysFile(path_)->empty());
  std::filesystem::remove(link);
}

TEST_F(KeysCommand, RefusesWhatItCannotDoByName) {
  ASSERT_EQ(Add("a"), 0);
  EXPECT_EQ(Add("a"), 1);
  EXPECT_THAT(error_, HasSubstr("there is a key \"a\" already"));
  EXPECT_EQ(Add("b", "root"), 2);
  EXPECT_THAT(error_, HasSubstr("--role"));
  EXPECT_EQ(Add("b/c"), 2);
  EXPECT_THAT(error_, HasSubstr("--name"));
  EXPECT_EQ(Add("b", "user", {"--expires-in", "soon"}), 2);
  EXPECT_THAT(error_, HasSubstr("--expires-in"));
  EXPECT_EQ(Add("b", "user", {"--expires-in", "-1h"}), 2);
  EXPECT_EQ(Run({"add", "--keys", path_, "--name", "b"}), 2);
  EXPECT_EQ(Run({"list"}), 2);
  EXPECT_EQ(Run({"forget"}), 2);
  EXPECT_EQ(Run({}), 2);
  EXPECT_EQ(Run({"list", "--keys", path_ + "-none"}), 1);
  EXPECT_THAT(error_, HasSubstr("-none: No such file"));
  EXPECT_EQ(ReadKeysFile(path_)->size(), 1u);
}

TEST_F(KeysCommand, DoesNotWriteOverAFileThatItCannotRead) {
  ASSERT_EQ(Add("a"), 0);
  ASSERT_EQ(chmod(path_.c_str(), 0644), 0);
  EXPECT_EQ(Add("b"), 1);
  EXPECT_THAT(error_, HasSubstr("others may use it"));
  ASSERT_EQ(chmod(path_.c_str(), 0600), 0);
  EXPECT_EQ(ReadKeysFile(path_)->size(), 1u);
}

TEST_F(KeysCommand, SaysWhatIsWrongWithItsFlags) {
  EXPECT_EQ(Add("a", "user", {"--name", "b"}), 2);
  EXPECT_THAT(error_, HasSubstr("--name: is given twice\n"));
  EXPECT_EQ(Run({"revok"}), 2);
  EXPECT_THAT(error_, HasSubstr("did you mean revoke?"));
}

TEST_F(KeysCommand, HelpIsNoError) {
  EXPECT_EQ(Run({"--help"}), 0);
  EXPECT_THAT(output_, HasSubstr("revoke"));
  EXPECT_EQ(Run({"add", "--help"}), 0);
  EXPECT_THAT(output_, HasSubstr("--expires-in"));
}

TEST_F(KeysCommand, SeveralAtOnceLoseNoKey) {
  testing::internal::CaptureStdout();
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([this, i] {
      RunKeysCommand({"keys", "add", "--keys", path_, "--name",
                      absl::StrCat("k", i), "--tenant", "t", "--role", "user"});
    });
  }
  for (std::thread& thread : threads) thread.join();
  testing::internal::GetCapturedStdout();
  EXPECT_EQ(ReadKeysFile(path_)->size(), 8u);
}

}  // namespace
}  // namespace txl
