#pragma once

// What the tests of the session store share.

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/session/session_store.h"
#include "tests/fakes/fake_clock.h"
#include "tests/server/base/refusal.h"

namespace txl {

inline StateImage ImageOfBytes(size_t bytes, uint8_t value = 0) {
  StateImage image;
  image.data.assign(bytes, value);
  return image;
}

class StoreTest : public ::testing::Test {
 protected:
  SessionStore& MakeStore(const SessionStoreOptions& options = {}) {
    store_ = std::make_unique<SessionStore>(options, &clock_);
    return *store_;
  }

  // A session that is there, with a lease on it.
  SessionLease Lease(const std::string& id) {
    absl::StatusOr<SessionLease> lease =
        store_->Acquire(SessionName::OfDefaultTenant(id));
    EXPECT_TRUE(lease.ok()) << lease.status();
    return lease.ok() ? *std::move(lease) : SessionLease();
  }

  std::vector<int32_t> TokensOf(const std::string& id) {
    const auto text =
        store_->GetTokens(SessionName::OfDefaultTenant(id), 0, 1'000'000);
    EXPECT_TRUE(text.ok()) << text.status();
    return text.ok() ? text->token_ids : std::vector<int32_t>{-1};
  }

  // created + loaded == ended + stored_away + idle + busy.
  void ExpectConserved() const {
    const SessionStore::Counts counts = store_->counts();
    EXPECT_EQ(counts.created + counts.loaded,
              counts.ended + counts.stored_away + counts.idle + counts.busy);
  }

  FakeClock clock_;
  std::unique_ptr<SessionStore> store_;
};

}  // namespace txl
