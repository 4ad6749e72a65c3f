#include "server/store/content_tables.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/server/store/store_fixture.h"

namespace txl {
namespace {

class ContentTablesTest : public testing::Test {
 protected:
  ContentTablesTest() {
    database_ = *Database::Open({temporary_.path() + "/c.db", "", 0});
    EXPECT_TRUE(database_->Run(ContentTables::Schema()).ok());
    tables_ = *ContentTables::Open(database_.get(), 1000);
    EXPECT_TRUE(database_->Run("BEGIN").ok());
  }
  ~ContentTablesTest() override {
    tables_.reset();
    database_.reset();
  }

  int64_t Made(const std::vector<int32_t>& ids) {
    const int64_t content = *tables_->Branch(0, 0);
    EXPECT_TRUE(tables_->Append(content, 0, ids).ok());
    return content;
  }
  std::vector<int32_t> Read(int64_t content, int64_t position) {
    const auto ids = tables_->Read(content, position);
    EXPECT_TRUE(ids.ok()) << ids.status();
    return ids.ok() ? Plain(*ids) : std::vector<int32_t>();
  }
  int64_t Rows(const char* table) {
    return *database_->Number(
        absl::StrCat("SELECT count(*) FROM ", table).c_str());
  }

  TemporaryFolder temporary_;
  std::unique_ptr<Database> database_;
  std::unique_ptr<ContentTables> tables_;
};

std::vector<int32_t> Concatenated(std::vector<int32_t> first,
                                  const std::vector<int32_t>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

TEST_F(ContentTablesTest, IdsComeBackWhateverTheSizeOfTheirAppends) {
  for (const int64_t size : {1, 4095, 4096, 4097, 8192, 9000}) {
    for (const int64_t step : {1000, 4096, 9000}) {
      const int64_t content = *tables_->Branch(0, 0);
      const std::vector<int32_t> ids = Ids(size);
      for (int64_t at = 0; at < size; at += step) {
        const auto part = absl::MakeConstSpan(ids).subspan(
            static_cast<size_t>(at), static_cast<size_t>(step));
        ASSERT_TRUE(tables_->Append(content, at, part).ok());
      }
      EXPECT_EQ(Read(content, size), ids) << size << " in " << step;
      EXPECT_EQ(Read(content, size / 2), Ids(size / 2));
    }
  }
}

TEST_F(ContentTablesTest, AChunkIsFullBeforeTheNextBegins) {
  Made(Ids(4096));
  EXPECT_EQ(Rows("chunk"), 1);
  Made(Ids(4097));
  EXPECT_EQ(Rows("chunk"), 3);
}

TEST_F(ContentTablesTest, ForksOfForksShareWhatTheyHaveInCommon) {
  const int64_t root = Made(Ids(5000));
  const int64_t child = *tables_->Branch(root, 4500);
  ASSERT_TRUE(tables_->Append(child, 4500, Ids(5000, 1)).ok());
  const int64_t grandchild = *tables_->Branch(child, 9000);
  ASSERT_TRUE(tables_->Append(grandchild, 9000, Ids(3, 2)).ok());
  const std::vector<int32_t> of_child = Concatenated(Ids(4500), Ids(5000, 1));
  EXPECT_EQ(Read(child, 9500), of_child);
  std::vector<int32_t> expected(of_child.begin(), of_child.begin() + 9000);
  EXPECT_EQ(Read(grandchild, 9003), Concatenated(expected, Ids(3, 2)));
  // 5,000 ids of the root: 2 chunks; of the child from 4,500: 2; 3 ids: 1.
  EXPECT_EQ(Rows("chunk"), 5);
}

TEST_F(ContentTablesTest, AForkStandsOnTheContentThatHasItsIds) {
  const int64_t root = Made(Ids(100));
  const int64_t child = *tables_->Branch(root, 50);
  const int64_t of_root = *tables_->Branch(child, 50);
  ASSERT_TRUE(tables_->Release(child).ok());
  EXPECT_EQ(Rows("content"), 2) << "the child was needed by nobody";
  EXPECT_EQ(Read(of_root, 50), Ids(50));
  const int64_t empty = *tables_->Branch(root, 0);
  EXPECT_EQ(Read(empty, 0), std::vector<int32_t>());
}

TEST_F(ContentTablesTest, ACutOfAContentForItselfKeepsThatPrefixInPlace) {
  for (const int64_t position : {0, 1, 4095, 4096, 4097, 8191, 8200}) {
    const int64_t content = Made(Ids(8200));
    EXPECT_EQ(*tables_->Cut(content, position), content);
    EXPECT_EQ(Read(content, position), Ids(position));
    EXPECT_FALSE(position < 8200 && tables_->Read(content, position + 1).ok());
    ASSERT_TRUE(tables_->Append(content, position, Ids(10, 5)).ok());
    EXPECT_EQ(Read(content, position + 10),
              Concatenated(Ids(position), Ids(10, 5)));
  }
}

TEST_F(ContentTablesTest, ACutLeavesThoseWhoStandOnTheContentAlone) {
  const int64_t parent = Made(Ids(9000));
  const int64_t child = *tables_->Branch(parent, 8000);
  const int64_t cut = *tables_->Cut(parent, 10);
  EXPECT_NE(cut, parent);
  ASSERT_TRUE(tables_->Append(cut, 10, Ids(5000, 3)).ok());
  EXPECT_EQ(Read(cut, 5010), Concatenated(Ids(10), Ids(5000, 3)));
  EXPECT_EQ(Read(child, 8000), Ids(8000));
}

TEST_F(ContentTablesTest, ACutBelowItsOwnIdsIsABranchOfTheParent) {
  const int64_t parent = Made(Ids(100));
  const int64_t child = *tables_->Branch(parent, 60);
  ASSERT_TRUE(tables_->Append(child, 60, Ids(5, 1)).ok());
  const int64_t cut = *tables_->Cut(child, 30);
  EXPECT_EQ(Read(cut, 30), Ids(30));
  EXPECT_EQ(Read(parent, 100), Ids(100));
  EXPECT_EQ(Rows("content"), 2);
}

TEST_F(ContentTablesTest, AChainOfTenThousandIsReleasedFromItsEnd) {
  int64_t last = Made(Ids(1));
  for (int64_t i = 1; i < 10'000; ++i) {
    const int64_t next = *tables_->Branch(last, i);
    ASSERT_TRUE(tables_->Append(next, i, Ids(1, static_cast<int32_t>(i))).ok());
    ASSERT_TRUE(tables_->Release(last).ok());
    last = next;
  }
  EXPECT_EQ(Rows("content"), 10'000);
  EXPECT_EQ(Read(last, 10'000).back(), Ids(1, 9999)[0]);
  ASSERT_TRUE(tables_->Release(last).ok());
  EXPECT_EQ(Rows("content"), 0);
  EXPECT_EQ(Rows("chunk"), 0);
}

TEST_F(ContentTablesTest, ReleasingTheMiddleOfAChainKeepsWhatStandsOnIt) {
  const int64_t root = Made(Ids(10));
  const int64_t middle = *tables_->Branch(root, 8);
  ASSERT_TRUE(tables_->Append(middle, 8, Ids(4, 1)).ok());
  const int64_t leaf = *tables_->Branch(middle, 12);
  ASSERT_TRUE(tables_->Release(middle).ok());
  ASSERT_TRUE(tables_->Release(root).ok());
  EXPECT_EQ(Read(leaf, 12), Concatenated(Ids(8), Ids(4, 1)));
  ASSERT_TRUE(tables_->Release(leaf).ok());
  EXPECT_EQ(Rows("content"), 0);
}

TEST_F(ContentTablesTest, ARowThatWasChangedIsNoOtherText) {
  const int64_t other = Made(Ids(100, 500));
  const int64_t root = Made(Ids(100));
  const int64_t child = *tables_->Branch(root, 50);
  ASSERT_TRUE(tables_->Append(child, 50, Ids(9000, 1)).ok());
  const std::string changes[] = {
      absl::StrCat("UPDATE content SET parent=", other, " WHERE id=", child),
      absl::StrCat("UPDATE content SET base=49 WHERE id=", child),
      absl::StrCat("UPDATE content SET refs=7 WHERE id=", root),
      absl::StrCat("DELETE FROM content WHERE id=", root),
      absl::StrCat("UPDATE chunk SET ids=substr(ids,3) WHERE content=", child),
      absl::StrCat("UPDATE chunk SET start=0 WHERE content=", root),
      absl::StrCat("UPDATE chunk SET content=", root,
                   ",start=100 WHERE content=", other),
      absl::StrCat("DELETE FROM chunk WHERE start=4096"),
  };
  for (const std::string& change : changes) {
    ASSERT_TRUE(database_->Run("SAVEPOINT s").ok());
    ASSERT_TRUE(database_->Run(change.c_str()).ok()) << change;
    const auto ids = tables_->Read(child, 9050);
    const std::vector<int32_t> right = Concatenated(Ids(50), Ids(9000, 1));
    if (ids.ok()) {
      EXPECT_EQ(Plain(*ids), right) << change;
    } else {
      EXPECT_TRUE(absl::IsDataLoss(ids.status())) << change;
    }
    ASSERT_TRUE(database_->Run("ROLLBACK TO s; RELEASE s").ok());
  }
  EXPECT_EQ(Read(child, 9050), Concatenated(Ids(50), Ids(9000, 1)));
}

TEST_F(ContentTablesTest, ALoopOfParentsIsSeen) {
  const int64_t a = Made(Ids(10));
  const int64_t b = *tables_->Branch(a, 5);
  const int64_t crc = ContentCrc(a, b, 7, 2);
  ASSERT_TRUE(
      database_
          ->Run(absl::StrCat("UPDATE content SET parent=", b,
                             ", base=7, refs=2, crc=", crc, " WHERE id=", a)
                    .c_str())
          .ok());
  EXPECT_TRUE(absl::IsDataLoss(tables_->Read(b, 5).status()));
  EXPECT_TRUE(absl::IsDataLoss(tables_->Branch(b, 3).status()));
}

}  // namespace
}  // namespace txl
