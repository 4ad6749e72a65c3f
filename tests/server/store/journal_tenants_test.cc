// SqliteJournal: sessions of several tenants in one database.

#include <gtest/gtest.h>

#include <future>
#include <map>
#include <string>
#include <vector>

#include "tests/server/store/store_fixture.h"

namespace txl {
namespace {

class TenantsInTheJournal : public JournalTest {};

// Running turns too: their rows in the log know whose they are.
TEST_F(TenantsInTheJournal, HaveSessionsOfOneIdThatAreKeptApart) {
  const std::string names[] = {"s", "alice/s", "bob/s"};
  for (int i = 0; i < 3; ++i) {
    journal_->Create(Head(names[i]), Sequence(Ids(3 + i)));
    journal_->Begin(names[i], TurnIntent(), At(1500));
    journal_->Append(names[i], {3 + i, {100 + i}, {}});
  }
  ASSERT_TRUE(Durable(*journal_).ok());
  Crash();
  for (int i = 0; i < 3; ++i) {
    std::vector<int32_t> expected = Ids(3 + i);
    expected.push_back(100 + i);
    EXPECT_EQ(IdsOf(names[i]), expected) << names[i];
  }
  journal_->Remove("alice/s");
  EXPECT_EQ(Load(*journal_, "alice/s").status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(IdsOf("bob/s").size(), 6u);
  EXPECT_EQ(journal_->status().sessions, 2);
}

TEST_F(TenantsInTheJournal, AreListedAloneAndExpireTogether) {
  for (const char* name : {"b", "alice/a", "alice/c", "bob/b"}) {
    journal_->Create(Head(name), Sequence({}));
  }
  const auto listed = [&](const std::string& after, int64_t count) {
    std::vector<std::string> names;
    for (const StoredInfo& info : List(*journal_, after, count)) {
      names.push_back(info.head.session_id);
    }
    return names;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(listed("", 9), (Names{"b"}));
  EXPECT_EQ(listed("alice/", 9), (Names{"alice/a", "alice/c"}));
  EXPECT_EQ(listed("alice/", 1), (Names{"alice/a"}));
  EXPECT_EQ(listed("alice/a", 9), (Names{"alice/c"}));
  EXPECT_EQ(listed("carol/", 9), Names());
  EXPECT_EQ(Expired(*journal_, At(1000) + absl::Hours(2)).size(), 4u);
}

// What a quota counts, before anybody has asked for a session.
TEST_F(TenantsInTheJournal, HaveSessionsWhosePositionsAreToldWithoutLoading) {
  journal_->Create(Head("alice/s"), Sequence(Ids(3)));
  journal_->Create(Head("bob/s"), Sequence(Ids(5)));
  journal_->Begin("bob/s", TurnIntent(), At(1500));
  journal_->Append("bob/s", {5, {1, 2}, {}});
  journal_->Create(Head("s"), Sequence({}));
  const std::map<std::string, int64_t> all = {
      {"alice/s", 3}, {"bob/s", 7}, {"s", 0}};
  EXPECT_EQ(Positions(*journal_), all);
  ASSERT_TRUE(Durable(*journal_).ok());
  Crash();
  EXPECT_EQ(Positions(*journal_), all);
  EXPECT_EQ(Positions(*journal_, "bob/s"),
            (std::map<std::string, int64_t>{{"bob/s", 7}}));
  EXPECT_TRUE(Positions(*journal_, "carol/s").empty());
}

TEST_F(TenantsInTheJournal, AreCountedAlsoWhereASessionCannotBeServed) {
  journal_->Create(Head("alice/s"), Sequence(Ids(300)));
  journal_->Create(Head("alice/t"), Sequence(Ids(300)));
  ASSERT_TRUE(Durable(*journal_).ok());
  // One that a damaged row makes longer than any, and one of another model.
  Tamper("UPDATE session SET position=9223372036854775807 WHERE id='s'");
  options_.fingerprint = "another";
  Reopen();
  EXPECT_TRUE(absl::IsDataLoss(Load(*journal_, "alice/s").status()));
  EXPECT_TRUE(absl::IsFailedPrecondition(Load(*journal_, "alice/t").status()));
  EXPECT_EQ(Positions(*journal_).at("alice/s"), int64_t{1} << 40);
  EXPECT_EQ(Positions(*journal_).at("alice/t"), 300);
  EXPECT_EQ(Positions(*journal_, "alice/t").at("alice/t"), 300);
}

TEST_F(TenantsInTheJournal, LoseWhatExpiresWithItsPosition) {
  journal_->Create(Head("alice/s"), Sequence(Ids(300)));
  std::promise<std::vector<StoredPosition>> told;
  journal_->ListExpired(
      At(1000) + absl::Hours(2), 10,
      [&](const absl::StatusOr<std::vector<StoredPosition>>& expired) {
        told.set_value(expired.value_or(std::vector<StoredPosition>()));
      });
  const std::vector<StoredPosition> expired = told.get_future().get();
  ASSERT_EQ(expired.size(), 1u);
  EXPECT_EQ(expired[0].session_id, "alice/s");
  EXPECT_EQ(expired[0].position, 300);
}

// What a store of before has: a tenant's column, and its default alone.
TEST_F(TenantsInTheJournal, HaveRowsOfWhichTheDefaultsAreAsTheyWere) {
  journal_->Create(Head("a"), Sequence(Ids(3)));
  journal_->Create(Head("alice/a"), Sequence(Ids(3)));
  ASSERT_TRUE(Durable(*journal_).ok());
  journal_.reset();
  auto database = Database::Open({options_.folder + "/journal.db", "", 0});
  ASSERT_TRUE(database.ok()) << database.status();
  const auto count = [&](const std::string& where) {
    return *(*database)->Number(
        ("SELECT count(*) FROM session WHERE " + where).c_str());
  };
  EXPECT_EQ(count("tenant='default' AND id='a'"), 1);
  EXPECT_EQ(count("tenant='alice' AND id='a'"), 1);
}

}  // namespace
}  // namespace txl
