#pragma once

// Two servers' journals on one Redis.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/server/store/redis/redis_fixture.h"

namespace txl {

class RedisJournalTest : public testing::WithRedis<> {
 protected:
  void SetUp() override {
    Flush(*redis_);
    here_ = OpenJournal(RedisOptions(*redis_));
    there_ = OpenJournal(RedisOptions(*redis_));
  }
  // A session of five ids that `here` has acquired for this request.
  std::shared_ptr<SessionClaim> OwnHere(const std::string& request) {
    here_->Create(Head("a"), Sequence(Ids(5)));
    EXPECT_TRUE(Durable(*here_).ok());
    const auto owned = Acquire(*here_, "a", request);
    EXPECT_TRUE(owned.ok()) << owned.status();
    here_->Begin("a", {}, At(1500));
    EXPECT_TRUE(Durable(*here_).ok());
    return owned->claim;
  }
  std::vector<int32_t> IdsThere() {
    const auto loaded = Load(*there_, "a");
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    return loaded.ok() ? Plain(loaded->token_ids) : std::vector<int32_t>();
  }

  std::unique_ptr<SharedJournal> here_;
  std::unique_ptr<SharedJournal> there_;
};

}  // namespace txl
