#include "server/store/turn_log.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "tests/server/store/store_fixture.h"

namespace txl {
namespace {

TurnIntent Intent(const std::string& request_id) {
  TurnIntent intent;
  intent.identity.request_id = request_id;
  return intent;
}

class TurnLogTest : public testing::Test {
 protected:
  TurnLogTest() {
    database_ = *Database::Open({temporary_.path() + "/l.db", "", 0});
    EXPECT_TRUE(database_->Run(TurnLog::Schema()).ok());
    Reopen();
  }
  ~TurnLogTest() override {
    log_.reset();
    database_.reset();
  }

  void Reopen() {
    log_.reset();
    log_ = *TurnLog::Open(database_.get());
  }
  void Commit() {
    ASSERT_TRUE(log_->Write().ok());
    log_->Committed();
  }
  int64_t Rows() { return *database_->Number("SELECT count(*) FROM log"); }
  absl::Status FoldAll(bool drop_damaged = false) {
    return log_->Fold(
        [](const std::string&, const TurnLog::Turn&) { return true; },
        drop_damaged);
  }
  // A turn of three rows: its begin, 7 and 8, 9.
  void ThreeRows(const std::string& id) {
    log_->Begin(id, Intent("r"), At(5));
    Commit();
    log_->Append(id, {10, {7, 8}, {}});
    Commit();
    log_->Append(id, {12, {9}, {}});
    Commit();
  }

  TemporaryFolder temporary_;
  std::unique_ptr<Database> database_;
  std::unique_ptr<TurnLog> log_;
};

TEST_F(TurnLogTest, AnOpenTurnIsFoundAgain) {
  ThreeRows("a");
  Reopen();
  const TurnLog::Turn* const turn = log_->Find("a");
  ASSERT_NE(turn, nullptr);
  EXPECT_EQ(turn->intent->identity.request_id, "r");
  EXPECT_EQ(turn->begun, At(5));
  EXPECT_EQ(turn->from, 10);
  EXPECT_EQ(turn->ids, (std::vector<int32_t>{7, 8, 9}));
  EXPECT_FALSE(turn->damaged);
}

TEST_F(TurnLogTest, ACommitIsOneRowWhateverTheNumberOfSessions) {
  for (const char* id : {"a", "b", "c"}) {
    log_->Begin(id, Intent(id), At(5));
    log_->Append(id, {0, {1, 2}, {}});
  }
  Commit();
  EXPECT_EQ(Rows(), 1);
  Reopen();
  for (const char* id : {"a", "b", "c"}) {
    EXPECT_EQ(log_->Find(id)->intent->identity.request_id, id);
  }
}

TEST_F(TurnLogTest, RowsThatNoTurnNeedsLeaveTheLog) {
  ThreeRows("a");
  log_->Begin("b", Intent("b"), At(6));
  log_->Append("a", {13, {1}, {}});
  Commit();
  EXPECT_EQ(Rows(), 4);
  EXPECT_EQ(log_->Take("a").ids, (std::vector<int32_t>{7, 8, 9, 1}));
  Commit();
  Commit();
  EXPECT_EQ(Rows(), 1) << "the last row has b's";
  log_->Take("b");
  Commit();
  Commit();
  log_->Begin("c", Intent("c"), At(6));
  Commit();
  EXPECT_EQ(Rows(), 1);
}

TEST_F(TurnLogTest, RowNumbersGrowOverRestartsOfAnEmptyLog) {
  ThreeRows("a");
  log_->Take("a");
  Commit();
  Commit();
  const int64_t last = log_->last_row();
  for (int restart = 0; restart < 2; ++restart) {
    Reopen();
    const auto none = [](const std::string&, const TurnLog::Turn&) {
      return false;
    };
    ASSERT_TRUE(log_->Fold(none, false).ok());
    EXPECT_GE(log_->last_row(), last);
    EXPECT_EQ(Rows(), 1);
    Commit();
  }
  log_->Begin("a", Intent("r"), At(5));
  Commit();
  EXPECT_GT(log_->Find("a")->rows.front(), last);
}

TEST_F(TurnLogTest, ARollbackRestoresEveryTurn) {
  ThreeRows("grown");
  ThreeRows("taken");
  ThreeRows("begun-again");
  log_->Append("grown", {13, {1, 2, 3}, {}});
  log_->Append("taken", {13, {4}, {}});
  EXPECT_EQ(log_->Take("taken").ids.size(), 4u);
  log_->Begin("begun-again", Intent("other"), At(9));
  log_->Append("begun-again", {0, {5}, {}});
  log_->Begin("new", Intent("new"), At(9));
  ASSERT_TRUE(log_->Write().ok());
  log_->RolledBack();
  for (const char* id : {"grown", "taken", "begun-again"}) {
    const TurnLog::Turn* const turn = log_->Find(id);
    ASSERT_NE(turn, nullptr) << id;
    EXPECT_EQ(turn->ids, (std::vector<int32_t>{7, 8, 9})) << id;
    EXPECT_EQ(turn->intent->identity.request_id, "r") << id;
    EXPECT_EQ(turn->rows.size(), 3u) << id;
    EXPECT_FALSE(turn->damaged) << id;
  }
  EXPECT_EQ(log_->Find("new"), nullptr);
}

TEST_F(TurnLogTest, ADamagedRowIsAHoleInItsTurns) {
  ThreeRows("a");
  log_->Append("a", {13, {1}, {}});
  Commit();
  ASSERT_TRUE(
      database_->Run("UPDATE log SET entries=entries||'x' WHERE seq=3").ok());
  Reopen();
  EXPECT_EQ(log_->damaged_rows(), 1);
  EXPECT_TRUE(log_->Find("a")->damaged);
  ASSERT_TRUE(FoldAll().ok());
  Reopen();
  EXPECT_TRUE(log_->Find("a")->damaged) << "folding heals nothing";
  EXPECT_EQ(log_->damaged_rows(), 1);
  ASSERT_TRUE(FoldAll(true).ok());
  Reopen();
  EXPECT_EQ(log_->Find("a"), nullptr);
  EXPECT_EQ(log_->damaged_rows(), 0);
}

TEST_F(TurnLogTest, ATurnWhoseBeginIsDamagedIsDamaged) {
  ThreeRows("a");
  ASSERT_TRUE(database_->Run("UPDATE log SET crc=crc+1 WHERE seq=1").ok());
  Reopen();
  EXPECT_TRUE(log_->Find("a")->damaged);
}

TEST_F(TurnLogTest, FoldingGivesEachTurnARowForItself) {
  for (int i = 0; i < 5; ++i) {
    for (const char* id : {"a", "b", "gone"}) {
      if (i == 0) log_->Begin(id, Intent(id), At(5));
      log_->Append(id, {i, {i}, {}});
    }
    Commit();
  }
  Reopen();
  ASSERT_TRUE(log_->Fold([](const std::string& id,
                            const TurnLog::Turn&) { return id != "gone"; },
                         false)
                  .ok());
  EXPECT_EQ(Rows(), 2);
  Reopen();
  EXPECT_EQ(log_->Find("gone"), nullptr);
  EXPECT_EQ(log_->Find("a")->ids, (std::vector<int32_t>{0, 1, 2, 3, 4}));
  log_->Take("a");
  Commit();
  log_->Append("b", {5, {5}, {}});
  Commit();
  EXPECT_EQ(Rows(), 2) << "both rows of b";
}

TEST_F(TurnLogTest, TokensWithoutABeginAreATurnOfTheirOwn) {
  log_->Append("a", {3, {1}, {}});
  Commit();
  Reopen();
  EXPECT_FALSE(log_->Find("a")->damaged);
  EXPECT_EQ(log_->Find("a")->from, 3);
}

}  // namespace
}  // namespace txl
