// What comes back of a stored session's last turn.

#include "server/session/restored_turn.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "model/text/byte_vocabulary.h"
#include "server/base/error.h"

namespace txl {
namespace {

class RestoredTurnTest : public ::testing::Test {
 protected:
  // Holds these bytes as ids; a turn that took on the last `running` of them
  // broke off.
  static StoredSession Stored(const std::string& bytes, int64_t running) {
    StoredSession stored;
    stored.token_ids.Append(std::vector<int32_t>(bytes.begin(), bytes.end()));
    stored.running_tokens = running;
    stored.head.last_turn.outcome = "DONE";
    stored.head.last_turn.request_id = "earlier";
    return stored;
  }
  static TurnIntent Intent(int64_t start, int64_t prompt) {
    return TurnIntent{.identity = {"turn", "digest"},
                      .seed = 42,
                      .start_position = start,
                      .prompt_tokens = prompt};
  }
  static TokenEvent Event(int32_t id) {
    TokenEvent event;
    event.token_id = id;
    return event;
  }
  RestoredTurn Restored(const StoredSession& stored) {
    absl::StatusOr<RestoredTurn> turn = RestoreTurn(stored, &vocabulary_);
    EXPECT_TRUE(turn.ok()) << turn.status();
    return *std::move(turn);
  }
  // Of a detokenizer that was given this.
  std::string StateBehind(const std::string& bytes) {
    auto detokenizer = vocabulary_.NewDetokenizer();
    for (const char byte : bytes) {
      detokenizer->Add(static_cast<unsigned char>(byte));
    }
    return detokenizer->State();
  }

  const ByteVocabulary vocabulary_;
};

TEST_F(RestoredTurnTest, OneThatEndedIsAsItWasStored) {
  StoredSession stored = Stored("abc", 0);
  stored.head.detokenizer = StateBehind("\xc3");
  auto record = std::make_shared<TurnRecord>();
  record->seed = 7;
  stored.record = record;
  const RestoredTurn turn = Restored(stored);
  EXPECT_FALSE(turn.broke_off);
  EXPECT_EQ(turn.last_turn.outcome, "DONE");
  EXPECT_EQ(turn.detokenizer->State(), stored.head.detokenizer);
  EXPECT_EQ(turn.record->seed, 7u);
  EXPECT_NE(turn.record->detokenizer, nullptr);
  EXPECT_FALSE(turn.intent.has_value());
}

TEST_F(RestoredTurnTest, OneThatBrokeOffKnowsHowFarItCame) {
  StoredSession stored = Stored("abcde", 4);
  stored.running = Intent(/*start=*/1, /*prompt=*/2);
  stored.running_events = {Event('d'), Event('e')};
  const RestoredTurn turn = Restored(stored);
  EXPECT_TRUE(turn.broke_off);
  EXPECT_EQ(turn.last_turn.outcome, "INTERRUPTED");
  EXPECT_EQ(turn.last_turn.request_id, "turn");
  EXPECT_EQ(turn.last_turn.start_position, 1);
  EXPECT_EQ(turn.last_turn.prompt_tokens, 2);
  EXPECT_EQ(turn.last_turn.generated_tokens, 2);
  ASSERT_NE(turn.record, nullptr);
  EXPECT_EQ(turn.record->seed, 42u);
  EXPECT_EQ(turn.record->tokens.size(), 2u);
  EXPECT_FALSE(turn.record->finished.has_value());
}

TEST_F(RestoredTurnTest, WhatItGeneratedGoesOnInTheMiddleOfACharacter) {
  StoredSession stored = Stored("ab", 2);
  stored.token_ids.Append({0xc3});
  stored.running_tokens = 3;
  stored.running = Intent(/*start=*/0, /*prompt=*/2);
  EXPECT_EQ(Restored(stored).detokenizer->State(), StateBehind("\xc3"));
  // The end of an input is the end of its text.
  stored.running = Intent(/*start=*/0, /*prompt=*/3);
  EXPECT_EQ(Restored(stored).detokenizer->State(), StateBehind(""));
}

TEST_F(RestoredTurnTest, OneThatBrokeTwiceHasTheTokensOfBothRuns) {
  StoredSession stored = Stored("abcd", 1);
  stored.running = Intent(/*start=*/0, /*prompt=*/2);
  stored.running_events = {Event('d')};
  auto record = std::make_shared<TurnRecord>();
  record->identity = stored.running->identity;
  record->tokens = {Event('c')};
  stored.record = record;
  const RestoredTurn turn = Restored(stored);
  EXPECT_EQ(turn.last_turn.generated_tokens, 2);
  ASSERT_NE(turn.record, nullptr);
  ASSERT_EQ(turn.record->tokens.size(), 2u);
  EXPECT_EQ(turn.record->tokens[0].token_id, 'c');
  EXPECT_EQ(turn.record->tokens[1].token_id, 'd');
}

TEST_F(RestoredTurnTest, ARecordWithAGapIsNone) {
  StoredSession stored = Stored("abcd", 4);
  stored.running = Intent(/*start=*/0, /*prompt=*/2);
  stored.running_events = {Event('d')};  // of two
  EXPECT_EQ(Restored(stored).record, nullptr);
}

TEST_F(RestoredTurnTest, OneOfWhichNobodySaidThatItBeganFedItsTokens) {
  const RestoredTurn turn = Restored(Stored("abcd", 3));
  ASSERT_TRUE(turn.intent.has_value());
  EXPECT_EQ(turn.intent->start_position, 1);
  EXPECT_EQ(turn.intent->prompt_tokens, 3);
  EXPECT_EQ(turn.last_turn.generated_tokens, 0);
  EXPECT_EQ(turn.record, nullptr);
}

TEST_F(RestoredTurnTest, OneThatHadSaidNothingKeepsItsIntent) {
  StoredSession stored = Stored("abc", 0);
  stored.running = Intent(/*start=*/3, /*prompt=*/2);
  const RestoredTurn turn = Restored(stored);
  EXPECT_FALSE(turn.broke_off);
  EXPECT_EQ(turn.intent->seed, 42u);
  EXPECT_EQ(turn.last_turn.outcome, "DONE");
}

TEST_F(RestoredTurnTest, WithoutAVocabularyThereIsNoText) {
  StoredSession stored = Stored("abc", 2);
  stored.head.detokenizer = "whatever";
  const auto turn = RestoreTurn(stored, nullptr);
  ASSERT_TRUE(turn.ok()) << turn.status();
  EXPECT_EQ(turn->detokenizer, nullptr);
}

TEST_F(RestoredTurnTest, ATextThatCannotBeReadIsDamage) {
  StoredSession stored = Stored("abc", 0);
  stored.head.detokenizer = std::string(100, '\xff');
  const absl::Status status = RestoreTurn(stored, &vocabulary_).status();
  EXPECT_TRUE(absl::IsDataLoss(status));
  EXPECT_EQ(GetErrorDetails(status).reason, "SESSION_DAMAGED");
}

}  // namespace
}  // namespace txl
