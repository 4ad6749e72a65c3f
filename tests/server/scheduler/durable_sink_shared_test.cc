// DurableSink of a session that servers share: an entry that was refused counts
// as stored, and nobody is told of it.

#include <gtest/gtest.h>

#include <memory>

#include "server/base/error.h"
#include "server/scheduler/durable_sink.h"
#include "tests/fakes/fake_journal.h"
#include "tests/fakes/recording_sink.h"

namespace txl {
namespace {

class DurableSinkSharedTest : public ::testing::Test {
 protected:
  DurableSinkSharedTest() {
    StoredHead head;
    head.session_id = "s";
    journal_.Create(head, TokenSequence());
    journal_.Commit();
    DurableSinkOptions options;
    options.journal = &journal_;
    options.wake = [] {};
    options.claim = claim_;
    options.most_silence = absl::Seconds(4);
    options.boot_time = [this] { return now_; };
    sink_ = std::make_shared<DurableSink>(options, reader_,
                                          std::make_shared<CancelToken>());
    Confirm();
  }
  ~DurableSinkSharedTest() override {
    EXPECT_TRUE(reader_->violations().empty());
  }

  void Confirm() { claim_->confirmed = absl::ToInt64Nanoseconds(now_); }
  void Enter() { journal_.Append("s", {}); }
  void Start() {
    Enter();
    sink_->Started({});
  }
  void StartStored() {
    Start();
    journal_.Commit();
  }
  void Say(int tokens) {
    for (int i = 0; i < tokens; ++i) {
      Enter();
      TokenEvent event;
      event.index = said_++;
      sink_->Token(event);
    }
  }
  void Finish() {
    Enter();
    sink_->Finished({});
  }
  int told() const { return static_cast<int>(reader_->tokens().size()); }

  FakeJournal journal_{/*commits=*/false};
  const std::shared_ptr<SessionClaim> claim_ = std::make_shared<SessionClaim>();
  const std::shared_ptr<RecordingSink> reader_ =
      std::make_shared<RecordingSink>();
  std::shared_ptr<DurableSink> sink_;
  absl::Duration now_ = absl::Hours(1);
  int said_ = 0;
};

TEST_F(DurableSinkSharedTest, WhatAMovedSessionWasGivenIsToldToNobody) {
  StartStored();
  Say(1);
  Finish();
  claim_->moved_to = 9;
  journal_.Commit();
  EXPECT_EQ(told(), 1);
  EXPECT_FALSE(reader_->finished().has_value());
  EXPECT_EQ(GetErrorDetails(reader_->failed()).reason, "SESSION_MOVED");
  EXPECT_EQ(GetErrorDetails(reader_->failed()).metadata.at("position"), "9");
}

TEST_F(DurableSinkSharedTest, ATurnWhoseBeginWasRefusedNeverStarts) {
  Start();
  claim_->moved_to = SessionClaim::kGone;
  journal_.Commit();
  EXPECT_FALSE(reader_->started().has_value());
  EXPECT_EQ(GetErrorDetails(reader_->failed()).reason, "SESSION_DELETED");
}

TEST_F(DurableSinkSharedTest, NoTokenGoesOutWhileNothingIsConfirmed) {
  StartStored();
  now_ += absl::Seconds(3.9);
  Say(1);
  EXPECT_EQ(told(), 1);
  now_ += absl::Seconds(0.1);
  Say(2);
  EXPECT_EQ(told(), 1);
  Confirm();
  journal_.Commit();
  EXPECT_EQ(told(), 3);
  Say(1);
  EXPECT_EQ(told(), 4);
}

TEST_F(DurableSinkSharedTest, AfterAPauseTheFirstTokenWaitsToo) {
  StartStored();
  Say(3);
  now_ += absl::Hours(1);
  Say(1);
  claim_->moved_to = 12;
  journal_.Commit();
  EXPECT_EQ(told(), 3);
}

}  // namespace
}  // namespace txl
