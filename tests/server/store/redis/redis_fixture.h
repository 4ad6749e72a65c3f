#pragma once

// What the tests of the journal in Redis share.

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <string>
#include <utility>

#include "server/store/redis/redis_connection.h"
#include "server/store/redis/redis_journal.h"
#include "tests/server/store/redis/redis_server.h"
#include "tests/server/store/store_fixture.h"

namespace txl {

inline RedisJournalOptions RedisOptions(const testing::RedisServer& redis) {
  RedisJournalOptions options;
  options.address = {"127.0.0.1", redis.port()};
  options.interval = absl::Milliseconds(1);
  options.lease = absl::Minutes(10);    // ends by release only
  options.timeout = absl::Seconds(30);  // of a machine that does much else
  options.fingerprint = "model";
  options.vocab_size = 1000;
  return options;
}

inline std::unique_ptr<SharedJournal> OpenJournal(
    const RedisJournalOptions& options) {
  absl::StatusOr<std::unique_ptr<RedisJournal>> opened =
      RedisJournal::Open(options);
  EXPECT_TRUE(opened.ok()) << opened.status();
  return opened.ok() ? *std::move(opened) : nullptr;
}

inline void Flush(const testing::RedisServer& redis) {
  auto connection =
      RedisConnection::Open({"127.0.0.1", redis.port()}, absl::Seconds(10));
  ASSERT_TRUE(connection.ok()) << connection.status();
  ASSERT_TRUE((*connection)->CallOne({"FLUSHALL"}).ok());
}

inline absl::StatusOr<SharedSession> Acquire(
    SharedJournal& journal, const std::string& id,
    const std::string& request = "",
    std::shared_ptr<SessionClaim> held = nullptr) {
  std::promise<absl::StatusOr<SharedSession>> told;
  journal.Acquire(id, {request, request}, std::move(held),
                  [&](absl::StatusOr<SharedSession> found) {
                    if (found.ok()) journal.Hold(id, found->claim);
                    told.set_value(std::move(found));
                  });
  return told.get_future().get();
}

inline absl::StatusOr<SharedSession> Refresh(
    SharedJournal& journal, const std::string& id,
    std::shared_ptr<SessionClaim> held) {
  std::promise<absl::StatusOr<SharedSession>> told;
  journal.Refresh(id, std::move(held), [&](absl::StatusOr<SharedSession> it) {
    told.set_value(std::move(it));
  });
  return told.get_future().get();
}

}  // namespace txl
