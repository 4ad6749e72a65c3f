#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "server/session/session_store.h"
#include "tests/server/session/store_fixture.h"

namespace txl {
namespace {

class SessionImagesTest : public StoreTest {
 protected:
  void SetUp() override {
    SessionStoreOptions options;
    options.image_bytes = 100;
    options.bytes_per_slot = 4096;
    options.memory_retry = absl::Seconds(2);
    SessionStore& store = MakeStore(options);
    for (const char* id : {"a", "b"}) {
      ASSERT_TRUE(
          store.Create(SessionName::OfDefaultTenant(id), absl::Minutes(1))
              .ok());
    }
    a_ = Lease("a").key();
    b_ = Lease("b").key();
  }

  int64_t image_bytes() const { return store_->counts().image_bytes; }

  uint64_t a_ = 0;
  uint64_t b_ = 0;
};

TEST_F(SessionImagesTest, AnImageStaysUntilItIsDropped) {
  EXPECT_EQ(store_->GetImage(a_), nullptr);
  ASSERT_TRUE(store_->PutImage(a_, ImageOfBytes(40, 7)).ok());
  for (int i = 0; i < 2; ++i) {
    const std::shared_ptr<const StateImage> image = store_->GetImage(a_);
    ASSERT_NE(image, nullptr);
    EXPECT_THAT(image->data, ::testing::SizeIs(40));
    EXPECT_THAT(image->data, ::testing::Each(7));
  }
  EXPECT_EQ(store_->GetImage(b_), nullptr);
  store_->DropImage(a_);
  EXPECT_EQ(store_->GetImage(a_), nullptr);
  EXPECT_EQ(image_bytes(), 0);
}

TEST_F(SessionImagesTest, TheBudgetHoldsOverAllSessionsToTheByte) {
  ASSERT_TRUE(store_->PutImage(a_, ImageOfBytes(60)).ok());
  const absl::Status status = store_->PutImage(b_, ImageOfBytes(41));
  EXPECT_EQ(Refusal(status), "RESOURCE_EXHAUSTED NO_SESSION_MEMORY");
  EXPECT_EQ(GetErrorDetails(status).retry, absl::Seconds(2));
  EXPECT_EQ(store_->GetImage(b_), nullptr);
  EXPECT_EQ(image_bytes(), 60);
  EXPECT_TRUE(store_->PutImage(b_, ImageOfBytes(40)).ok());
  EXPECT_EQ(image_bytes(), 100);
}

TEST_F(SessionImagesTest, ANewImageReplacesTheOldOneInTheBudgetToo) {
  ASSERT_TRUE(store_->PutImage(a_, ImageOfBytes(90, 1)).ok());
  ASSERT_TRUE(store_->PutImage(a_, ImageOfBytes(100, 2)).ok());
  EXPECT_EQ(image_bytes(), 100);
  EXPECT_EQ(store_->GetImage(a_)->data.front(), 2);
  ASSERT_TRUE(store_->PutImage(a_, ImageOfBytes(5, 3)).ok());
  EXPECT_EQ(image_bytes(), 5);
}

TEST_F(SessionImagesTest, ARefusedImageLeavesTheOldOne) {
  ASSERT_TRUE(store_->PutImage(a_, ImageOfBytes(30, 1)).ok());
  EXPECT_FALSE(store_->PutImage(a_, ImageOfBytes(101, 2)).ok());
  EXPECT_EQ(store_->GetImage(a_)->data.front(), 1);
  EXPECT_EQ(image_bytes(), 30);
}

TEST_F(SessionImagesTest, TheEndOfASessionFreesItsImage) {
  ASSERT_TRUE(store_->PutImage(a_, ImageOfBytes(40)).ok());
  ASSERT_TRUE(store_->PutImage(b_, ImageOfBytes(50)).ok());
  ASSERT_TRUE(store_->Delete("a").ok());
  EXPECT_EQ(image_bytes(), 50);
  EXPECT_EQ(store_->GetImage(a_), nullptr);
  clock_.Advance(absl::Minutes(1));
  store_->ExpireNow();
  EXPECT_EQ(image_bytes(), 0);
}

TEST_F(SessionImagesTest, AnImageThatSomebodyReadsOutlivesItsSession) {
  ASSERT_TRUE(store_->PutImage(a_, ImageOfBytes(40, 9)).ok());
  const std::shared_ptr<const StateImage> image = store_->GetImage(a_);
  ASSERT_TRUE(store_->Delete("a").ok());
  EXPECT_THAT(image->data, ::testing::Each(9));
}

TEST_F(SessionImagesTest, ATurnMayKeepAnImageToGoBackTo) {
  absl::StatusOr<SessionLease> lease = store_->AcquireTemporary();
  ASSERT_TRUE(lease.ok());
  const uint64_t key = lease->key();
  ASSERT_TRUE(store_->PutImage(key, ImageOfBytes(40)).ok());
  EXPECT_NE(store_->GetImage(key), nullptr);
  lease->Release();
  EXPECT_EQ(store_->GetImage(key), nullptr);
  EXPECT_EQ(image_bytes(), 0);
}

TEST_F(SessionImagesTest, ADeletedSessionKeepsItsImageUntilItsTurnEnds) {
  SessionLease lease = Lease("a");
  ASSERT_TRUE(store_->Delete("a").ok());
  EXPECT_TRUE(store_->PutImage(a_, ImageOfBytes(40)).ok());
  EXPECT_EQ(image_bytes(), 40);
  lease.Release();
  EXPECT_EQ(image_bytes(), 0);
}

TEST_F(SessionImagesTest, AnEndedSessionTakesNoImage) {
  ASSERT_TRUE(store_->Delete("a").ok());
  EXPECT_EQ(Refusal(store_->PutImage(a_, ImageOfBytes(1))),
            "NOT_FOUND SESSION_UNKNOWN");
  EXPECT_EQ(image_bytes(), 0);
  store_->DropImage(a_);
  EXPECT_EQ(image_bytes(), 0);
}

TEST_F(SessionImagesTest, MemoryBytesAreTheImageOrTheSlotAndTheIds) {
  EXPECT_EQ(store_->Get("a")->memory_bytes, 0);
  { Lease("a").Append({1}); }
  const int64_t ids = TokenSequence::BytesFor(1);
  EXPECT_EQ(store_->Get("a")->memory_bytes, ids);  // nothing fed yet
  { Lease("a").Append({2}); }
  EXPECT_EQ(store_->Get("a")->memory_bytes, 4096 + ids);
  ASSERT_TRUE(store_->PutImage(a_, ImageOfBytes(33)).ok());
  EXPECT_EQ(store_->Get("a")->memory_bytes, 33 + ids);
}

}  // namespace
}  // namespace txl
