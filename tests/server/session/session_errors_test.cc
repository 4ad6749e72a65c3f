// The store's refusals as the public API's table names them.

#include "server/session/session_errors.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/server/session/store_fixture.h"

namespace txl {
namespace {

class SessionErrorsTest : public StoreTest {
 protected:
  // "idle", "busy" and "expired" are what they say; nothing else exists.
  void SetUp() override {
    SessionStoreOptions options;
    options.max_sessions = 2;
    options.temporary_reserve = 0;
    options.busy_retry = absl::Milliseconds(70);
    options.memory_retry = absl::Seconds(3);
    SessionStore& store = MakeStore(options);
    ASSERT_TRUE(store.Create("expired", absl::Seconds(1)).ok());
    clock_.Advance(absl::Seconds(2));
    ASSERT_TRUE(store.Create("idle", {}).ok());
    Lease("idle").Append({1});  // an empty one would give way
    ASSERT_TRUE(store.Create("busy", {}).ok());
    busy_ = Lease("busy");
  }

  // The refusal of every method that names a session.
  void ExpectAllRefuse(const std::string& id, const std::string& refusal) {
    EXPECT_EQ(Refusal(store_->Get(SessionName::OfDefaultTenant(id))), refusal);
    EXPECT_EQ(
        Refusal(store_->GetTokens(SessionName::OfDefaultTenant(id), 0, 1)),
        refusal);
    EXPECT_EQ(Refusal(store_->Acquire(SessionName::OfDefaultTenant(id))),
              refusal);
    EXPECT_EQ(Refusal(store_->Delete(SessionName::OfDefaultTenant(id))),
              refusal);
  }

  SessionLease busy_;
};

TEST(MovedErrors, SayWhereTheSessionIsOrThatItIsGone) {
  SessionClaim claim;
  claim.moved_to = 7;
  const absl::Status moved = MovedError(claim);
  EXPECT_EQ(Refusal(moved), "ABORTED SESSION_MOVED");
  EXPECT_EQ(GetErrorDetails(moved).metadata.at("position"), "7");
  EXPECT_TRUE(GetErrorDetails(moved).retry.has_value());
  claim.moved_to = SessionClaim::kGone;
  EXPECT_EQ(Refusal(MovedError(claim)), "ABORTED SESSION_DELETED");
}

TEST_F(SessionErrorsTest, AnUnknownSession) {
  ExpectAllRefuse("nobody", "NOT_FOUND SESSION_UNKNOWN");
}

TEST_F(SessionErrorsTest, AnExpiredSession) {
  ExpectAllRefuse("expired", "NOT_FOUND SESSION_EXPIRED");
}

TEST_F(SessionErrorsTest, ADeletedSessionIsUnknown) {
  ASSERT_TRUE(store_->Delete("idle").ok());
  ExpectAllRefuse("idle", "NOT_FOUND SESSION_UNKNOWN");
}

TEST_F(SessionErrorsTest, AnIdThatIsNone) {
  for (const char* id : {"", "no spaces", "../../etc", "sessions/a"}) {
    ExpectAllRefuse(id, "INVALID_ARGUMENT FIELD_INVALID session_id");
  }
  EXPECT_EQ(Refusal(store_->Create("no spaces", {})),
            "INVALID_ARGUMENT FIELD_INVALID session_id");
}

TEST_F(SessionErrorsTest, ASessionThatExists) {
  EXPECT_EQ(Refusal(store_->Create("idle", {})),
            "ALREADY_EXISTS SESSION_EXISTS");
  EXPECT_EQ(Refusal(store_->Create("busy", {})),
            "ALREADY_EXISTS SESSION_EXISTS");
}

TEST_F(SessionErrorsTest, ABusySessionWithTheTimeToRetry) {
  const absl::Status status = store_->Acquire("busy").status();
  EXPECT_EQ(Refusal(status), "ABORTED SESSION_BUSY");
  EXPECT_EQ(GetErrorDetails(status).retry, absl::Milliseconds(70));
}

TEST_F(SessionErrorsTest, AFullServerWithTheTimeToRetry) {
  for (const absl::Status& status :
       {store_->Create("third", {}).status(), store_->Create("", {}).status(),
        store_->AcquireTemporary().status()}) {
    EXPECT_EQ(Refusal(status), "RESOURCE_EXHAUSTED NO_SESSION_MEMORY");
    EXPECT_EQ(GetErrorDetails(status).retry, absl::Seconds(3));
  }
  EXPECT_EQ(Refusal(store_->Get("third")), "NOT_FOUND SESSION_UNKNOWN");
  EXPECT_EQ(store_->counts().created, 3);
}

TEST_F(SessionErrorsTest, AFullServerHasRoomAgainWhenASessionEnds) {
  ASSERT_TRUE(store_->Delete("busy").ok());
  EXPECT_EQ(Refusal(store_->Create("third", {})),
            "RESOURCE_EXHAUSTED NO_SESSION_MEMORY");  // its turn still runs
  busy_.Release();
  EXPECT_TRUE(store_->Create("third", {}).ok());
  clock_.Advance(absl::Hours(25));
  EXPECT_TRUE(store_->Create("fourth", {}).ok());
}

TEST_F(SessionErrorsTest, ATimeToLiveOutsideOfItsRange) {
  ASSERT_TRUE(store_->Delete("idle").ok());
  const absl::Duration bad[] = {absl::ZeroDuration(),
                                -absl::Seconds(1),
                                absl::Seconds(1) - absl::Nanoseconds(1),
                                absl::Hours(24 * 30) + absl::Nanoseconds(1),
                                absl::InfiniteDuration(),
                                -absl::InfiniteDuration()};
  for (const absl::Duration ttl : bad) {
    EXPECT_EQ(Refusal(store_->Create("third", ttl)),
              "INVALID_ARGUMENT FIELD_INVALID ttl")
        << ttl;
  }
  for (const absl::Duration ttl : {absl::Seconds(1), absl::Hours(24 * 30)}) {
    const absl::StatusOr<SessionInfo> info = store_->Create("third", ttl);
    ASSERT_TRUE(info.ok()) << info.status();
    EXPECT_EQ(info->ttl, ttl);
    ASSERT_TRUE(store_->Delete("third").ok());
  }
}

TEST_F(SessionErrorsTest, NoMessageRepeatsAnId) {
  for (const absl::Status& status :
       {store_->Get("nobody").status(), store_->Get("expired").status(),
        store_->Acquire("busy").status(),
        store_->Create("idle", {}).status()}) {
    for (const char* id : {"nobody", "\"expired", "\"busy", "\"idle"}) {
      EXPECT_EQ(status.message().find(id), absl::string_view::npos);
    }
  }
}

}  // namespace
}  // namespace txl
