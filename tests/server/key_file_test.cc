#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "server/commands.h"

namespace txl {
namespace {

using testing::HasSubstr;

// A file of these bytes that only its owner may use, unless `mode` says more.
std::string File(const std::string& name, const std::string& bytes,
                 mode_t mode = 0600) {
  const std::string path = absl::StrCat(testing::TempDir(), "/", name);
  unlink(path.c_str());
  std::ofstream(path, std::ios::binary) << bytes;
  EXPECT_EQ(chmod(path.c_str(), mode), 0);
  return path;
}

TEST(ReadKeyFile, GivesAllBytes) {
  std::string key(32, '\0');
  key[7] = '\n';
  key[31] = '\xff';
  EXPECT_EQ(*ReadKeyFile(File("key", key)), key);
  EXPECT_EQ(*ReadKeyFile(File("key", key, 0400)), key);
}

TEST(ReadKeyFile, OfOtherSizesIsRefused) {
  EXPECT_EQ(ReadKeyFile(File("short", std::string(31, 'k'))).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ReadKeyFile(File("long", std::string(4097, 'k'))).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(ReadKeyFile(File("longest", std::string(4096, 'k'))).ok());
}

TEST(ReadKeyFile, ThatOthersMayUseIsRefused) {
  for (const mode_t mode : {0644, 0604, 0620, 0602, 0610, 0601}) {
    const absl::Status status =
        ReadKeyFile(File("open", std::string(32, 'k'), mode)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << mode;
    EXPECT_THAT(status.message(), HasSubstr("open: others may use it"));
  }
}

TEST(ReadKeyFile, ThatIsNoFileIsRefused) {
  const std::string pipe = testing::TempDir() + "/pipe";
  unlink(pipe.c_str());
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(ReadKeyFile(pipe).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ReadKeyFile(testing::TempDir() + "/none").status().code(),
            absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace txl
