#include "server/store/store_scan.h"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "server/store/database.h"

namespace txl {
namespace {

constexpr int64_t kCommits = 5;

void WriteFile(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

std::string FileBytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// A database whose process was killed after kCommits rows, each a transaction
// of several pages; the table itself stands outside the log.
class WalCheckTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "/wal_check_" +
              testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directory(folder_);
    auto database = Database::Open({folder_ + "/live.db", "", 0});
    ASSERT_TRUE(database.ok()) << database.status();
    ASSERT_TRUE((*database)->Run("CREATE TABLE t (x BLOB)").ok());
    ASSERT_TRUE((*database)->Checkpoint().ok());
    for (int64_t i = 0; i < kCommits; ++i) {
      ASSERT_TRUE(
          (*database)->Run("INSERT INTO t VALUES (randomblob(5000))").ok());
    }
    database_ = FileBytes(folder_ + "/live.db");
    wal_ = FileBytes(folder_ + "/live.db-wal");
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  WalState StateOf(const std::string& wal) {
    WriteFile(path(), wal);
    const absl::StatusOr<WalState> state = ReadWal(path());
    EXPECT_TRUE(state.ok()) << state.status();
    return state.value_or(WalState());
  }
  // What SQLite makes of the log.
  int64_t RowsWith(const std::string& wal) {
    WriteFile(folder_ + "/copy.db", database_);
    WriteFile(path(), wal);
    auto database = Database::Open({folder_ + "/copy.db", "", 0});
    if (!database.ok()) return -1;
    return (*database)->Number("SELECT count(*) FROM t").value_or(-1);
  }
  std::string path() const { return folder_ + "/copy.db-wal"; }

  std::string folder_, database_, wal_;
};

std::string Flipped(std::string bytes, size_t at) {
  bytes[at] = static_cast<char>(bytes[at] ^ 0x10);
  return bytes;
}

TEST_F(WalCheckTest, AWholeLogIsSound) {
  ASSERT_EQ(RowsWith(wal_), kCommits);
  EXPECT_EQ(StateOf(wal_).bad_at, -1);
  EXPECT_EQ(StateOf(wal_).lost_commits, 0);
}

TEST_F(WalCheckTest, WhatIsNotThereIsSound) {
  const absl::StatusOr<WalState> state = ReadWal(folder_ + "/nothing");
  ASSERT_TRUE(state.ok()) << state.status();
  EXPECT_FALSE(state->damaged());
  EXPECT_EQ(StateOf("").bad_at, -1);
  EXPECT_EQ(StateOf(wal_.substr(0, 20)).bad_at, -1);
}

// Wherever a byte is flipped: two commits that SQLite drops are never dropped
// without a word.
TEST_F(WalCheckTest, DamageBeforeTheLastCommitIsNoticed) {
  for (size_t at = 0; at < wal_.size(); at += 607) {
    const std::string wal = Flipped(wal_, at);
    const WalState state = StateOf(wal);
    EXPECT_GE(state.bad_at, 0) << at;
    EXPECT_LE(state.bad_at, static_cast<int64_t>(at)) << at;
    const int64_t rows = RowsWith(wal);
    if (kCommits - rows > 1) {
      EXPECT_TRUE(state.damaged()) << at;
    }
  }
}

TEST_F(WalCheckTest, DamageOfAnyHeaderIsNoticed) {
  for (size_t at = 0; at < 32; ++at) {
    EXPECT_TRUE(StateOf(Flipped(wal_, at)).damaged()) << at;
  }
  for (size_t at = 32; at < 56; ++at) {
    EXPECT_TRUE(StateOf(Flipped(wal_, at)).damaged()) << at;
  }
}

// The machine may end while the last transaction is being written, whose pages
// reach the disk in any order.
TEST_F(WalCheckTest, ATornLastCommitIsNoDamage) {
  const size_t frame = kWalPageBytes + 24;
  const WalState state = StateOf(Flipped(wal_, wal_.size() - frame + 500));
  EXPECT_EQ(state.bad_at, static_cast<int64_t>(wal_.size() - frame));
  EXPECT_EQ(state.lost_commits, 1);
  EXPECT_FALSE(state.damaged());
}

TEST_F(WalCheckTest, ALogThatWasCutIsSound) {
  EXPECT_EQ(StateOf(wal_.substr(0, wal_.size() - 1)).bad_at, -1);
  EXPECT_EQ(StateOf(wal_.substr(0, wal_.size() / 2)).bad_at, -1);
}

TEST_F(WalCheckTest, TheErrorNamesTheFileAndTheWayOut) {
  WalState state = {.bad_at = 4152, .lost_commits = 3};
  const absl::Status status = CheckWal("/data/journal.db-wal", state);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(status.message(),
            "/data/journal.db-wal: damaged behind byte 4152; 3 changes of "
            "sessions would be lost; start once with --store-recover to go on "
            "without them");
  state.lost_commits = 1;
  EXPECT_TRUE(CheckWal("/data/journal.db-wal", state).ok());
}

}  // namespace

}  // namespace txl
