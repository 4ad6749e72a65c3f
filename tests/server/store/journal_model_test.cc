// Random lives of sessions, with crashes, against the reference model.

#include <gtest/gtest.h>

#include <random>

#include "tests/server/store/random_entries.h"

namespace txl {
namespace {

constexpr int kEntries = 120;

class JournalModelTest : public JournalTest {
 protected:
  void Live(uint64_t seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    std::filesystem::remove_all(options_.folder);
    Reopen();
    RandomEntries entries(seed);
    std::mt19937_64 random(seed);
    auto model = std::make_unique<FakeJournal>(false);
    for (int i = 0; i < kEntries; ++i) {
      entries.Enter(*journal_, *model);
      if (random() % 10 == 0) {
        ASSERT_EQ(StateOf(*journal_), StateOf(*model));
      }
      if (random() % 25 > 0) continue;
      ASSERT_TRUE(Durable(*journal_).ok());
      model->Commit();
      if (random() % 2 == 0) {
        Crash();
      } else {
        Reopen();
      }
      // Its entries are committed at once from here on, which is as good.
      model = model->Crash();
      ASSERT_EQ(StateOf(*journal_), StateOf(*model)) << i;
    }
    ASSERT_TRUE(Durable(*journal_).ok());
    EXPECT_EQ(journal_->status().sessions, model->status().sessions);
    // What nobody needs is gone: all sessions removed leave empty tables.
    for (const StoredInfo& info : List(*journal_, "", 1000)) {
      journal_->Remove(info.head.session_id);
    }
    ASSERT_TRUE(Durable(*journal_).ok());
    journal_.reset();
    const auto database =
        *Database::Open({options_.folder + "/journal.db", "", 0});
    EXPECT_EQ(*database->Number("SELECT count(*) FROM content"), 0);
    EXPECT_EQ(*database->Number("SELECT count(*) FROM chunk"), 0);
  }
};

TEST_F(JournalModelTest, EverySessionIsAsTheModelHasItAfterEveryCrash) {
  for (uint64_t seed = 1; seed <= 6; ++seed) Live(seed);
}

}  // namespace
}  // namespace txl
