#include "client/turn_joiner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "tests/client/fake_service.h"

namespace txl {
namespace {

using testing::FinishedEvent;
using testing::StartedEvent;
using testing::TokenEvent;

v1::GenerateResponse Batch(int32_t first, const std::string& characters) {
  v1::GenerateResponse response;
  for (const char character : characters) {
    *response.mutable_tokens()->add_tokens() =
        TokenEvent(first++, character).token();
  }
  return response;
}

class TurnJoinerTest : public ::testing::Test {
 protected:
  // "nothing", "started", "b" for a token, "[bc]" for a batch, "finished", or
  // the error's message.
  std::string Take(v1::GenerateResponse response) {
    const auto fresh = joiner_.Take(std::move(response));
    if (!fresh.ok()) return std::string(fresh.status().message());
    if (!fresh->has_value()) return "nothing";
    const v1::GenerateResponse& out = **fresh;
    if (out.has_started()) return "started";
    if (out.has_finished()) return "finished";
    if (out.has_token()) return out.token().text();
    std::string text = "[";
    for (const v1::Token& token : out.tokens().tokens()) text += token.text();
    return text + "]";
  }

  TurnJoiner joiner_;
};

TEST_F(TurnJoinerTest, OneAttemptPassesWhole) {
  EXPECT_FALSE(joiner_.started());
  EXPECT_EQ(Take(StartedEvent(3, 1)), "started");
  EXPECT_TRUE(joiner_.started());
  EXPECT_EQ(Take(TokenEvent(0, 'a')), "a");
  EXPECT_EQ(Take(TokenEvent(1, 'b')), "b");
  EXPECT_FALSE(joiner_.finished());
  EXPECT_EQ(Take(FinishedEvent(6, 1, 2)), "finished");
  EXPECT_TRUE(joiner_.finished());
  EXPECT_EQ(joiner_.tokens(), 2);
}

TEST_F(TurnJoinerTest, WhatASecondAttemptRepeatsIsLeftOut) {
  Take(StartedEvent(3, 1));
  Take(TokenEvent(0, 'a'));
  Take(TokenEvent(1, 'b'));
  EXPECT_EQ(Take(StartedEvent(3, 1)), "nothing");
  EXPECT_EQ(Take(TokenEvent(0, 'a')), "nothing");
  EXPECT_EQ(Take(TokenEvent(1, 'b')), "nothing");
  EXPECT_EQ(Take(TokenEvent(2, 'c')), "c");
}

TEST_F(TurnJoinerTest, OfABatchOnlyTheNewTokensPass) {
  Take(StartedEvent(3, 1));
  EXPECT_EQ(Take(Batch(0, "ab")), "[ab]");
  Take(StartedEvent(3, 1));
  EXPECT_EQ(Take(Batch(0, "a")), "nothing");
  EXPECT_EQ(Take(Batch(1, "bcd")), "[cd]");
  EXPECT_EQ(joiner_.tokens(), 4);
}

TEST_F(TurnJoinerTest, AGapIsAnError) {
  Take(StartedEvent(3, 1));
  Take(TokenEvent(0, 'a'));
  EXPECT_EQ(Take(TokenEvent(2, 'c')), "token 2 came, expected was 1");
  EXPECT_EQ(Take(TokenEvent(-1, 'c')), "token -1 came, expected was 1");
}

TEST_F(TurnJoinerTest, ATokenThatChangesIsAnError) {
  Take(StartedEvent(3, 1));
  Take(TokenEvent(0, 'a'));
  Take(StartedEvent(3, 1));
  EXPECT_EQ(Take(TokenEvent(0, 'x')), "token 0 came again as another one");
}

TEST_F(TurnJoinerTest, AnotherTurnBehindTokensIsAnError) {
  v1::GenerateResponse seeded = StartedEvent(3, 1);
  seeded.mutable_started()->set_seed(8);
  v1::GenerateResponse other_model = StartedEvent(3, 1);
  other_model.mutable_started()->set_model_fingerprint("other");
  Take(StartedEvent(3, 1));
  Take(TokenEvent(0, 'a'));
  for (const v1::GenerateResponse& other :
       {StartedEvent(4, 1), StartedEvent(3, 2), seeded, other_model}) {
    EXPECT_EQ(Take(other), "the server began another turn");
  }
}

TEST_F(TurnJoinerTest, ATurnThatBeginsAnewBeforeATokenTellsItsNewSeed) {
  Take(StartedEvent(3, 1));
  v1::GenerateResponse seeded = StartedEvent(3, 1);
  seeded.mutable_started()->set_seed(8);
  EXPECT_EQ(Take(seeded), "started");
  EXPECT_EQ(Take(seeded), "nothing");
  EXPECT_EQ(Take(TokenEvent(0, 'a')), "a");
  EXPECT_EQ(Take(StartedEvent(3, 1)), "the server began another turn");
}

std::string Text(const TurnJoiner& joiner) {
  const auto received = joiner.received();
  if (!received.has_value()) return "nothing";
  std::string text = std::to_string(received->seed()) + " ";
  for (const uint32_t id : received->token_ids()) {
    text.push_back(static_cast<char>(id));
  }
  return text;
}

TEST_F(TurnJoinerTest, TellsWhatItHasOfTheTurn) {
  EXPECT_EQ(Text(joiner_), "nothing");
  v1::GenerateResponse seeded = StartedEvent(3, 1);
  seeded.mutable_started()->set_seed(8);
  Take(seeded);
  EXPECT_EQ(Text(joiner_), "8 ");
  Take(Batch(0, "ab"));
  EXPECT_EQ(Text(joiner_), "8 ab");
}

TEST_F(TurnJoinerTest, AnAttemptMayBeginBehindWhatIsThere) {
  Take(StartedEvent(3, 1));
  Take(Batch(0, "abc"));
  EXPECT_EQ(Take(StartedEvent(3, 1)), "nothing");
  EXPECT_EQ(Take(TokenEvent(3, 'd')), "d");
  EXPECT_EQ(Take(StartedEvent(3, 1)), "nothing");
  EXPECT_EQ(Take(Batch(2, "cdef")), "[ef]");
}

TEST(TurnJoiner, OfATurnThatItsCallerKnowsPassesTheRest) {
  v1::Received received;
  received.set_seed(8);
  received.add_token_ids('a');
  received.add_token_ids('b');
  v1::GenerateResponse seeded = StartedEvent(3, 1);
  seeded.mutable_started()->set_seed(8);
  TurnJoiner joiner(received);
  EXPECT_FALSE(joiner.started());
  EXPECT_EQ(Text(joiner), "8 ab");
  EXPECT_TRUE((*joiner.Take(seeded)).has_value());
  EXPECT_TRUE(joiner.started());
  EXPECT_FALSE((*joiner.Take(TokenEvent(1, 'b'))).has_value());
  EXPECT_TRUE((*joiner.Take(TokenEvent(2, 'c'))).has_value());
  EXPECT_EQ(Text(joiner), "8 abc");
  EXPECT_EQ(TurnJoiner(received).Take(StartedEvent(3, 1)).status().message(),
            "the server began another turn");
}

}  // namespace
}  // namespace txl
