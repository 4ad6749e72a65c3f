// The journal when there is no room.

#include <gtest/gtest.h>

#include "server/base/error.h"
#include "tests/server/store/store_fixture.h"

namespace txl {
namespace {

class FullStoreTest : public JournalTest {
 protected:
  FullStoreTest() {
    journal_.reset();
    options_.max_bytes = 1 << 20;
    Reopen();
    journal_->Create(Head("a"), Sequence(Ids(300000)));
    EXPECT_TRUE(Durable(*journal_).ok());
    journal_->Create(Head("b"), Sequence(Ids(300000)));
  }
};

TEST_F(FullStoreTest, NothingIsAcknowledgedUntilSomethingGoes) {
  const absl::Status full = Durable(*journal_);
  EXPECT_TRUE(absl::IsResourceExhausted(full));
  EXPECT_EQ(GetErrorDetails(full).reason, "STORE_FULL");
  EXPECT_TRUE(journal_->status().full);
  EXPECT_EQ(journal_->durable_entry(), 1u);
  EXPECT_EQ(IdsOf("a"), Ids(300000));
  journal_->Remove("a");
  EXPECT_TRUE(Durable(*journal_).ok());
  EXPECT_FALSE(journal_->status().full);
  EXPECT_EQ(journal_->durable_entry(), 3u);
  EXPECT_EQ(IdsOf("b"), Ids(300000));
}

TEST_F(FullStoreTest, WhatWaitsForRoomIsNotReadAsItWas) {
  EXPECT_FALSE(Durable(*journal_).ok());
  EXPECT_EQ(GetErrorDetails(Load(*journal_, "b").status()).reason,
            "STORE_FULL");
  journal_->Begin("a", {}, At(1500));
  EXPECT_EQ(GetErrorDetails(Load(*journal_, "a").status()).reason,
            "STORE_FULL");
  EXPECT_TRUE(Expired(*journal_, At(100000)).empty());
}

TEST_F(FullStoreTest, AFullStoreOpensAndKeepsWhatItHas) {
  EXPECT_FALSE(Durable(*journal_).ok());
  Crash();
  EXPECT_EQ(IdsOf("a"), Ids(300000));
  EXPECT_TRUE(absl::IsNotFound(Load(*journal_, "b").status()));
}

}  // namespace
}  // namespace txl
