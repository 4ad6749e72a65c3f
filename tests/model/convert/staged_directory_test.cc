#include "model/convert/staged_directory.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/model/checkpoint/raw_safetensors.h"

namespace txl {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class StagedDirectoryTest : public testing::Test {
 protected:
  std::unique_ptr<StagedDirectory> Create() {
    auto staged = StagedDirectory::Create(dir_);
    EXPECT_TRUE(staged.ok()) << staged.status();
    return staged.ok() ? *std::move(staged) : nullptr;
  }

  // Names in the folder above, sorted.
  std::vector<std::string> Beside() {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(above_)) {
      names.push_back(entry.path().filename());
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  const std::string above_ = FreshTempFolder("staged");
  const std::string dir_ = above_ + "/model";
};

TEST_F(StagedDirectoryTest, AppearsWholeWhenCommitted) {
  auto staged = Create();
  std::ofstream(staged->path() + "/config.json") << "{}";
  fs::create_directory(staged->path() + "/sub");
  std::ofstream(staged->path() + "/sub/file") << "x";
  EXPECT_FALSE(fs::exists(dir_));
  ASSERT_TRUE(staged->Commit().ok());
  staged.reset();
  EXPECT_THAT(Beside(), ElementsAre("model"));
  EXPECT_EQ(ReadWholeFile(dir_ + "/config.json"), "{}");
  EXPECT_EQ(ReadWholeFile(dir_ + "/sub/file"), "x");
}

TEST_F(StagedDirectoryTest, LeavesNothingWithoutCommit) {
  auto staged = Create();
  std::ofstream(staged->path() + "/config.json") << "{}";
  EXPECT_THAT(Beside(), ElementsAre(absl::StrCat("model.partial-", getpid())));
  staged.reset();
  EXPECT_THAT(Beside(), IsEmpty());
}

TEST_F(StagedDirectoryTest, NeverReplacesWhatIsThere) {
  fs::create_directory(dir_);
  const auto folder = StagedDirectory::Create(dir_);
  EXPECT_EQ(folder.status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(folder.status().message(), HasSubstr(dir_ + ": exists already"));
  EXPECT_FALSE(StagedDirectory::Create(dir_ + "//").ok());
  fs::remove(dir_);
  std::ofstream(dir_) << "a file";
  EXPECT_FALSE(StagedDirectory::Create(dir_).ok());
  fs::remove(dir_);
  fs::create_symlink("nowhere", dir_);
  EXPECT_FALSE(StagedDirectory::Create(dir_).ok());
}

TEST_F(StagedDirectoryTest, DoesNotReplaceAFolderThatCameMeanwhile) {
  auto staged = Create();
  std::ofstream(staged->path() + "/config.json") << "{}";
  fs::create_directory(dir_);
  EXPECT_EQ(staged->Commit().code(), absl::StatusCode::kAlreadyExists);
  staged.reset();
  EXPECT_THAT(Beside(), ElementsAre("model"));
  EXPECT_TRUE(fs::is_empty(dir_));
}

TEST_F(StagedDirectoryTest, CommitsOnce) {
  auto staged = Create();
  ASSERT_TRUE(staged->Commit().ok());
  EXPECT_EQ(staged->Commit().code(), absl::StatusCode::kFailedPrecondition);
  staged.reset();
  EXPECT_TRUE(fs::exists(dir_));
}

TEST_F(StagedDirectoryTest, NamesAFolderAboveThatIsMissing) {
  const auto staged = StagedDirectory::Create(above_ + "/none/model");
  EXPECT_EQ(staged.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(staged.status().message(), HasSubstr(above_ + "/none/model"));
  EXPECT_FALSE(StagedDirectory::Create("").ok());
}

TEST_F(StagedDirectoryTest, TakesNamesRelativeToTheWorkingFolder) {
  const fs::path before = fs::current_path();
  fs::current_path(above_);
  auto staged = StagedDirectory::Create("model/");
  ASSERT_TRUE(staged.ok()) << staged.status();
  EXPECT_TRUE((*staged)->Commit().ok());
  fs::current_path(before);
  EXPECT_THAT(Beside(), ElementsAre("model"));
}

TEST_F(StagedDirectoryTest, RemovesWhatACrashedProcessLeft) {
  const pid_t child = fork();
  if (child == 0) {
    auto staged = StagedDirectory::Create(dir_);
    if (!staged.ok()) _exit(1);
    std::ofstream((*staged)->path() + "/model.safetensors") << "half";
    raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_THAT(Beside(), ElementsAre(absl::StrCat("model.partial-", child)));
  const auto staged = Create();
  EXPECT_THAT(Beside(), ElementsAre(absl::StrCat("model.partial-", getpid())));
}

// A leftover of the same process id, as process 1 of a container leaves it.
TEST_F(StagedDirectoryTest, RemovesALeftoverOfItsOwnName) {
  const std::string left = absl::StrCat(dir_, ".partial-", getpid());
  fs::create_directory(left);
  std::ofstream(left + "/model.safetensors") << "half";
  const auto staged = Create();
  EXPECT_TRUE(fs::is_empty(staged->path()));
}

TEST_F(StagedDirectoryTest, KeepsWhatALivingProcessWrites) {
  int ready[2], done[2];
  ASSERT_EQ(pipe(ready), 0);
  ASSERT_EQ(pipe(done), 0);
  const pid_t child = fork();
  if (child == 0) {
    close(done[1]);
    auto staged = StagedDirectory::Create(dir_);
    char byte = staged.ok() ? 'k' : 'x';
    if (write(ready[1], &byte, 1) != 1) _exit(2);
    if (read(done[0], &byte, 1) < 0) _exit(3);  // until the parent closes it
    _exit((*staged)->Commit().ok() ? 0 : 1);
  }
  close(done[0]);
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  ASSERT_EQ(byte, 'k');
  {
    const auto own = Create();
    EXPECT_EQ(Beside().size(), 2u);
  }
  close(done[1]);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_THAT(Beside(), ElementsAre("model"));
}

TEST_F(StagedDirectoryTest, LeavesFoldersOfOtherNamesAlone) {
  for (const std::string name : {"model.partial-", "model.partial-x",
                                 "model2.partial-1", "model.partial-1.old"}) {
    fs::create_directory(above_ + "/" + name);
  }
  const auto before = Beside();
  Create();
  EXPECT_EQ(Beside(), before);
}

TEST_F(StagedDirectoryTest, OneProcessWritesADirOnceAtATime) {
  const auto first = Create();
  EXPECT_FALSE(StagedDirectory::Create(dir_).ok());
  EXPECT_TRUE(fs::exists(first->path()));
}

}  // namespace
}  // namespace txl
