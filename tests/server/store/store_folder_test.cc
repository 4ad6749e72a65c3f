#include "server/store/store_folder.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "tests/server/store/store_fixture.h"

namespace txl {
namespace {

class StoreFolderTest : public testing::Test {
 protected:
  StoreFolderTest() : path_(temporary_.path() + "/store") {}

  TemporaryFolder temporary_;
  const std::string path_;
};

TEST_F(StoreFolderTest, AFolderIsMadeForItsOwnerAlone) {
  ASSERT_TRUE(StoreFolder::Open(path_).ok());
  struct stat about;
  ASSERT_EQ(::stat(path_.c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777u, 0700u);
}

TEST_F(StoreFolderTest, AFolderWithoutAParentIsNamed) {
  const auto folder = StoreFolder::Open(path_ + "/deeper");
  EXPECT_TRUE(absl::IsUnavailable(folder.status()));
  EXPECT_NE(folder.status().message().find(path_), absl::string_view::npos);
}

TEST_F(StoreFolderTest, TheLockIsFreeOnceItsHolderIsGone) {
  auto first = StoreFolder::Open(path_);
  ASSERT_TRUE(first.ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(StoreFolder::Open(path_).status()));
  first->reset();
  EXPECT_TRUE(StoreFolder::Open(path_).ok());
}

TEST_F(StoreFolderTest, AFailureIsRememberedUntilItIsCleared) {
  auto folder = *StoreFolder::Open(path_);
  EXPECT_FALSE(folder->failed());
  folder->MarkFailed();
  folder.reset();
  folder = *StoreFolder::Open(path_);
  EXPECT_TRUE(folder->failed());
  folder->ClearFailed();
  EXPECT_FALSE(folder->failed());
}

TEST_F(StoreFolderTest, TheReserveTakesRoomAndGivesItUp) {
  const auto folder = *StoreFolder::Open(path_);
  folder->MakeReserve();
  struct stat about;
  ASSERT_EQ(::stat((path_ + "/reserve").c_str(), &about), 0);
  EXPECT_GE(about.st_blocks * 512, StoreFolder::kReserveBytes);
  folder->GiveUpReserve();
  EXPECT_NE(::stat((path_ + "/reserve").c_str(), &about), 0);
}

TEST_F(StoreFolderTest, AnIdIsNeverAPath) {
  const auto folder = *StoreFolder::Open(path_);
  folder->Quarantine("../../x", "bytes");
  std::filesystem::directory_iterator file(path_ + "/quarantine");
  ASSERT_NE(file, std::filesystem::directory_iterator());
  std::ifstream kept(file->path());
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(kept), {}), "bytes");
}

}  // namespace
}  // namespace txl
