// What sessions take, as sums over them.

#include "server/session/session_memory.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace txl {
namespace {

constexpr int64_t kPiece = TokenSequence::kPieceTokens;

class SessionMemoryTest : public ::testing::Test {
 protected:
  ~SessionMemoryTest() override {
    for (const RecordPtr& record : records_) memory_.Remove(record);
    EXPECT_EQ(memory_.id_bytes(), 0);
    EXPECT_EQ(memory_.image_bytes(), 0);
    EXPECT_EQ(memory_.turn_record_bytes(), 0);
    for (const auto& [tenant, use] : quota_.uses()) {
      EXPECT_EQ(use.sessions, 0) << tenant;
      EXPECT_EQ(use.bytes, 0) << tenant;
    }
  }

  SessionRecord& Add(SessionName name) {
    records_.push_back(std::make_shared<SessionRecord>());
    records_.back()->name = std::move(name);
    memory_.Add(*records_.back());
    return *records_.back();
  }
  static std::shared_ptr<const StateImage> Image(int64_t bytes) {
    StateImage image;
    image.data.assign(bytes, 1);
    return std::make_shared<const StateImage>(std::move(image));
  }
  static std::shared_ptr<const TurnRecord> Turn() {
    return std::make_shared<const TurnRecord>();
  }
  SessionUse UseOf(const std::string& tenant) {
    return quota_.uses().at(tenant);
  }

  SessionQuota quota_{[](const std::string&) { return SessionLimits(); }, 0};
  SessionMemory memory_{/*image_limit=*/100, /*turn_record_limit=*/10, &quota_};
  std::vector<RecordPtr> records_;
};

TEST_F(SessionMemoryTest, ASessionTakesItsRecordAndTheIdsItIsChargedWith) {
  SessionRecord& a = Add("a");
  EXPECT_EQ(memory_.id_bytes(), kSessionRecordBytes);
  memory_.Charge(a, 100);
  EXPECT_EQ(memory_.id_bytes(),
            kSessionRecordBytes + TokenSequence::BytesFor(100));
  memory_.Charge(a, 1);
  EXPECT_EQ(memory_.id_bytes(),
            kSessionRecordBytes + TokenSequence::BytesFor(1));
}

TEST_F(SessionMemoryTest, ATenantIsCountedWithWhatClientsCanName) {
  SessionRecord& a = Add(SessionName("zoe", "a"));
  Add(SessionName());
  memory_.Charge(a, 10);
  EXPECT_EQ(UseOf("zoe").sessions, 1);
  EXPECT_EQ(UseOf("zoe").bytes, quota_.BytesOf(10));
  EXPECT_EQ(quota_.uses().size(), 1u);
  memory_.Uncount(a);
  memory_.Uncount(a);
  EXPECT_EQ(UseOf("zoe").sessions, 0);
  memory_.Charge(a, 20);
  EXPECT_EQ(UseOf("zoe").bytes, 0);
}

TEST_F(SessionMemoryTest, FullPiecesOfABranchAreTakenOnce) {
  SessionRecord& parent = Add("parent");
  memory_.Charge(parent, 2 * kPiece + 5);
  const int64_t before = memory_.id_bytes();
  SessionRecord& child = Add("child");
  memory_.ChargeBranch(parent, child, 2 * kPiece + 3);
  EXPECT_EQ(memory_.id_bytes(),
            before + kSessionRecordBytes +
                SessionMemory::BytesOfBranch(2 * kPiece + 3));
  EXPECT_EQ(SessionMemory::BytesOfBranch(2 * kPiece + 3),
            TokenSequence::BytesFor(2 * kPiece + 3) -
                2 * TokenSequence::BytesOfPiece());
  // The last holder of the pieces pays for them.
  memory_.Charge(parent, 0, 0);
  EXPECT_EQ(memory_.id_bytes(),
            2 * kSessionRecordBytes + TokenSequence::BytesFor(2 * kPiece + 3));
}

TEST_F(SessionMemoryTest, ABranchOfABranchSharesToo) {
  SessionRecord& parent = Add("parent");
  memory_.Charge(parent, kPiece);
  SessionRecord& child = Add("child");
  memory_.ChargeBranch(parent, child, kPiece);
  SessionRecord& grandchild = Add("grandchild");
  memory_.ChargeBranch(child, grandchild, kPiece);
  EXPECT_EQ(memory_.id_bytes(),
            3 * (kSessionRecordBytes + SessionMemory::BytesOfBranch(kPiece)) +
                TokenSequence::BytesOfPiece());
}

TEST_F(SessionMemoryTest, ImagesFillTheirLimitToTheByte) {
  SessionRecord& a = Add("a");
  EXPECT_TRUE(memory_.HasImageRoom(100));
  EXPECT_FALSE(memory_.HasImageRoom(101));
  memory_.SetImage(a, Image(60));
  EXPECT_TRUE(memory_.HasImageRoom(40));
  EXPECT_FALSE(memory_.HasImageRoom(41));
  memory_.SetImage(a, Image(10));
  EXPECT_EQ(memory_.image_bytes(), 10);
  memory_.SetImage(a, nullptr);
  EXPECT_EQ(memory_.image_bytes(), 0);
  EXPECT_EQ(a.image, nullptr);
}

TEST_F(SessionMemoryTest, TheOldestRecordsOfTurnsAreGivenUp) {
  SessionRecord& a = Add("a");
  SessionRecord& b = Add("b");
  memory_.SetTurnRecord(a, Turn(), 4);
  memory_.SetTurnRecord(b, Turn(), 4);
  memory_.SetTurnRecord(a, Turn(), 6);  // a's is the newer one now
  EXPECT_EQ(memory_.turn_record_bytes(), 10);
  SessionRecord& c = Add("c");
  memory_.SetTurnRecord(c, Turn(), 1);
  EXPECT_EQ(b.turn_record, nullptr);
  EXPECT_NE(a.turn_record, nullptr);
  EXPECT_EQ(memory_.turn_record_bytes(), 7);
  memory_.SetTurnRecord(c, Turn(), 11);
  EXPECT_EQ(memory_.turn_record_bytes(), 0);
}

TEST_F(SessionMemoryTest, WhatIsDroppedLivesUntilItIsTaken) {
  SessionRecord& a = Add("a");
  std::shared_ptr<const StateImage> image = Image(10);
  const std::weak_ptr<const StateImage> alive = image;
  memory_.SetImage(a, std::move(image));
  memory_.SetImage(a, nullptr);
  EXPECT_FALSE(alive.expired());
  memory_.TakeDropped();
  EXPECT_TRUE(alive.expired());
}

}  // namespace
}  // namespace txl
