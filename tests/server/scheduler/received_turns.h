#pragma once

// A turn that is sent again with the tokens that its client has of it: how
// tests make it, and what has to come of it.

#include <algorithm>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "model/text/byte_vocabulary.h"
#include "tests/server/scheduler/scheduler_world.h"

namespace txl {

inline const TurnIdentity kTurn{"r", "digest"};

// Where the session's state is when the turn comes again.
enum class State { kInSlot, kInImage, kLost };

struct Case {
  Ids before;
  Ids prompt;
  int max_tokens = 0;
  int kept = 0;      // J: tokens that the session holds of the turn
  int received = 0;  // R: tokens that the client has
  StopRules stop = {};
};

inline Ids Joined(Ids a, const Ids& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

inline Ids First(const Ids& ids, size_t count) {
  return {ids.begin(), ids.begin() + std::min(count, ids.size())};
}

// Parameters: steps in flight, whether imported states want kDerive rows.
class SchedulerReceived
    : public ::testing::TestWithParam<std::tuple<int, bool>> {
 protected:
  static WorldOptions Options() {
    WorldOptions options;
    options.runner.depth = std::get<0>(GetParam());
    options.runner.derives = std::get<1>(GetParam());
    options.runner.slots = 2;
    return options;
  }
  static WorldOptions WithText() {
    static const ByteVocabulary vocabulary;
    WorldOptions options = Options();
    options.runner.vocab_size = ByteVocabulary::kSize;
    options.store.vocabulary = &vocabulary;
    return options;
  }

  // What an unbroken turn gives.
  static TestTurn Whole(World& world, const Case& c) {
    world.CreateSession("whole");
    Append(world, "whole", c.before);
    const TestTurn turn =
        world.Generate("whole", c.prompt, c.max_tokens, [&](Turn& turn) {
          Set(c, turn);
          turn.identity = kTurn;
          turn.top_logprobs = 2;
        });
    world.Run();
    EXPECT_TRUE(turn.sink->finished().has_value()) << turn.sink->failed();
    return turn;
  }

  // The session "a" as it is after so many tokens of the turn; its record.
  static std::shared_ptr<const TurnRecord> MakeSession(World& world,
                                                       const Case& c,
                                                       const TestTurn& whole,
                                                       State state) {
    world.CreateSession("a");
    const Ids held = c.kept == 0
                         ? Ids{}
                         : Joined(c.prompt, First(whole.sink->ids(), c.kept));
    if (state == State::kLost) {
      auto lease = world.store->Acquire("a");
      lease->Append(Joined(c.before, held));
    } else {
      Append(world, "a", c.before);
      Append(world, "a", held);
    }
    if (state == State::kInImage) {
      for (const char* other : {"b", "c"}) {
        world.CreateSession(other);
        Append(world, other, {1, 2});
      }
    }
    return c.kept == 0 ? nullptr : Keep(world, c, whole);
  }

  // Makes the first tokens of the turn what the session remembers of it.
  static std::shared_ptr<const TurnRecord> Keep(World& world, const Case& c,
                                                const TestTurn& whole) {
    auto record = std::make_shared<TurnRecord>();
    record->identity = kTurn;
    record->start_position = static_cast<int64_t>(c.before.size());
    record->prompt_tokens = static_cast<int64_t>(c.prompt.size());
    record->tokens = whole.sink->tokens();
    record->tokens.resize(c.kept);
    auto lease = world.store->Acquire("a");
    if (auto fresh = lease->CloneDetokenizer(); fresh != nullptr) {
      for (const int32_t id : c.before) fresh->Add(id);
      record->detokenizer = std::move(fresh);
    }
    LastTurn last;
    last.request_id = kTurn.request_id;
    last.start_position = record->start_position;
    last.prompt_tokens = record->prompt_tokens;
    last.generated_tokens = c.kept;
    lease->SetLastTurn(last, record);
    return record;
  }

  static TestTurn Resume(World& world, const Case& c, const Ids& tokens,
                         std::shared_ptr<const TurnRecord> record) {
    const Ids input = record == nullptr ? c.prompt : Ids{};
    TestTurn turn = world.Generate("a", input, c.max_tokens, [&](Turn& turn) {
      Set(c, turn);
      turn.identity = kTurn;
      turn.top_logprobs = 2;
      turn.resumed = record;
      turn.received = c.received;
      const Ids received = First(tokens, c.received);
      const size_t kept = std::min<size_t>(c.kept, received.size());
      turn.adopted.assign(received.begin() + kept, received.end());
      std::static_pointer_cast<RecordingSink>(turn.sink)->ExpectFirst(
          c.received);
    });
    return turn;
  }

  static std::shared_ptr<const TurnRecord> RecordOf(World& world,
                                                    const std::string& id) {
    auto lease = world.store->Acquire(SessionName::OfDefaultTenant(id));
    auto record = lease->RecordFor(kTurn);
    return record.ok() ? *record : nullptr;
  }

  // The turn on "a" ended as the whole one did, and left the same behind.
  static void ExpectAsWhole(World& world, const Case& c, const TestTurn& turn,
                            const TestTurn& whole) {
    ASSERT_TRUE(turn.sink->finished().has_value()) << turn.sink->failed();
    EXPECT_EQ(turn.sink->started()->position,
              static_cast<int64_t>(c.before.size()));
    EXPECT_EQ(turn.sink->started()->prompt_tokens,
              static_cast<int64_t>(c.prompt.size()));
    EXPECT_EQ(turn.sink->started()->replayed_tokens,
              std::max(c.kept, c.received));
    const auto expected = whole.sink->tokens();
    ExpectTokens(turn.sink->tokens(), expected, c.received);
    const TurnFinished finished = *turn.sink->finished();
    const TurnFinished wanted = *whole.sink->finished();
    EXPECT_EQ(finished.reason, wanted.reason);
    EXPECT_EQ(finished.position, wanted.position);
    EXPECT_EQ(finished.text, wanted.text);
    EXPECT_EQ(finished.matched_stop_text, wanted.matched_stop_text);
    EXPECT_EQ(finished.prompt_tokens, wanted.prompt_tokens);
    EXPECT_EQ(finished.generated_tokens, wanted.generated_tokens);
    EXPECT_EQ(world.TokensOf("a"), world.TokensOf("whole"));
    const auto record = RecordOf(world, "a");
    ASSERT_NE(record, nullptr);
    ASSERT_TRUE(record->finished.has_value());
    EXPECT_EQ(record->finished->reason, wanted.reason);
    ExpectTokens(record->tokens, expected, 0);
  }

  static void ExpectTokens(const std::vector<TokenEvent>& tokens,
                           const std::vector<TokenEvent>& expected, int first) {
    ASSERT_EQ(tokens.size() + first, expected.size());
    for (size_t i = 0; i < tokens.size(); ++i) {
      const TokenEvent& wanted = expected[first + i];
      EXPECT_EQ(tokens[i].index, wanted.index);
      EXPECT_EQ(tokens[i].token_id, wanted.token_id);
      EXPECT_EQ(tokens[i].text, wanted.text);
      EXPECT_EQ(tokens[i].logprob, wanted.logprob);
      ASSERT_EQ(tokens[i].top_logprobs.size(), 2u);
      for (int k = 0; k < 2; ++k) {
        EXPECT_EQ(tokens[i].top_logprobs[k].token_id,
                  wanted.top_logprobs[k].token_id);
        EXPECT_EQ(tokens[i].top_logprobs[k].logprob,
                  wanted.top_logprobs[k].logprob);
      }
    }
  }

  static void ExpectGoesOn(const WorldOptions& options, const Case& c,
                           State state) {
    SCOPED_TRACE(absl::StrCat("kept ", c.kept, ", received ", c.received,
                              ", state ", static_cast<int>(state)));
    World world(options);
    const TestTurn whole = Whole(world, c);
    const auto record = MakeSession(world, c, whole, state);
    const int64_t sampled = world.metrics.Get().tokens_sampled;
    const TestTurn turn = Resume(world, c, whole.sink->ids(), record);
    world.Run();
    ASSERT_NO_FATAL_FAILURE(ExpectAsWhole(world, c, turn, whole));
    // Adopted tokens are fed, not sampled.
    const auto all = static_cast<int64_t>(whole.sink->ids().size());
    const auto known = std::max<int64_t>(c.kept, c.received);
    EXPECT_EQ(world.metrics.Get().tokens_delivered, 2 * all - known);
    if (known == all) {
      EXPECT_EQ(world.metrics.Get().tokens_sampled, sampled);
    }
    EXPECT_EQ(world.runner->violations(), std::vector<std::string>());
    world.ExpectHealthy("a");
    if (c.received >= c.kept) world.ExpectAtRest();
  }

 private:
  static void Append(World& world, const std::string& id, const Ids& ids) {
    if (ids.empty()) return;
    world.Submit(id, TurnKind::kAppend, ids);
    world.Run();
  }
  static void Set(const Case& c, Turn& turn) {
    turn.stop = c.stop;
    turn.stop.max_tokens = c.max_tokens;
  }
};

}  // namespace txl
