#include "server/session/turn_record.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/server/session/store_fixture.h"

namespace txl {
namespace {

LastTurn Last(const std::string& request_id) {
  LastTurn last;
  last.request_id = request_id;
  last.start_position = 10;
  last.prompt_tokens = 3;
  last.generated_tokens = 4;
  return last;
}

std::shared_ptr<const TurnRecord> Record(const std::string& request_id,
                                         const std::string& digest) {
  auto record = std::make_shared<TurnRecord>();
  record->identity = {request_id, digest};
  return record;
}

TEST(RecordFor, TheSameRequestIsAnsweredFromItsRecord) {
  const auto record = Record("r", "d");
  const auto found = RecordFor({"r", "d"}, record, Last("r"), {});
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(*found, record);
}

TEST(RecordFor, AnotherIdOrNoneIsANewTurn) {
  for (const char* id : {"", "s"}) {
    const auto found = RecordFor({id, "d"}, Record("r", "d"), Last("r"), {});
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(*found, nullptr);
  }
  // Two turns without an id are never the same.
  EXPECT_EQ(*RecordFor({"", ""}, nullptr, Last(""), {}), nullptr);
}

TEST(RecordFor, AnotherRequestUnderTheIdIsRefused) {
  EXPECT_EQ(Refusal(RecordFor({"r", "other"}, Record("r", "d"), Last("r"), {})),
            "INVALID_ARGUMENT FIELD_INVALID request_id");
}

TEST(RecordFor, ATurnWhoseRecordIsGoneIsNotRunAgain) {
  const auto found = RecordFor({"r", "d"}, nullptr, Last("r"), {});
  EXPECT_EQ(Refusal(found), "ABORTED REPLAY_EVICTED");
  EXPECT_EQ(GetErrorDetails(found.status()).metadata.at("position"), "17");
}

TEST(RecordFor, ARetryThatComesAfterALaterTurnIsNotRunAgain) {
  RequestHistory earlier;
  earlier.Add("r", 16);
  for (const char* digest : {"d", "other"}) {
    const auto found =
        RecordFor({"r", digest}, Record("s", "d"), Last("s"), earlier);
    EXPECT_EQ(Refusal(found), "ABORTED REPLAY_EVICTED");
    EXPECT_EQ(GetErrorDetails(found.status()).metadata.at("position"), "17");
  }
  EXPECT_EQ(*RecordFor({"t", "d"}, Record("s", "d"), Last("s"), earlier),
            nullptr);
  EXPECT_EQ(*RecordFor({"", "d"}, Record("s", "d"), Last("s"), earlier),
            nullptr);
}

TEST(TurnRecord, TakesMemoryForEverythingInIt) {
  TurnRecord record;
  int64_t before = record.Bytes();
  EXPECT_GE(before, static_cast<int64_t>(sizeof(TurnRecord)));
  record.tokens.resize(10);
  EXPECT_GE(record.Bytes(), before + 10 * int64_t{sizeof(TokenEvent)});
  before = record.Bytes();
  record.tokens[3].top_logprobs.resize(20);
  EXPECT_GE(record.Bytes(), before + 20 * int64_t{sizeof(TokenLogprob)});
  before = record.Bytes();
  record.scored.resize(5);
  record.scored[0].text = std::string(1000, 'x');
  EXPECT_GE(record.Bytes(), before + 5 * int64_t{sizeof(ScoredToken)} + 1000);
}

TEST(RequestHistory, KnowsTheIdsThatWereAdded) {
  RequestHistory history;
  EXPECT_FALSE(history.Contains("a"));
  history.Add("a", 16);
  EXPECT_TRUE(history.Contains("a"));
  EXPECT_FALSE(history.Contains("b"));
  EXPECT_FALSE(history.Contains(""));
}

TEST(RequestHistory, ForgetsTheOldestOverItsCapacity) {
  RequestHistory history;
  for (int i = 0; i < 100; ++i) history.Add(absl::StrCat("id", i), 3);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(history.Contains(absl::StrCat("id", i)), i >= 97) << i;
  }
}

TEST(RequestHistory, IsTheSameAfterItWasPutAway) {
  RequestHistory history;
  history.Add("a", 16);
  history.Add("b", 16);
  const RequestHistory again(history.hashes());
  EXPECT_TRUE(again.Contains("a"));
  EXPECT_TRUE(again.Contains("b"));
  EXPECT_FALSE(again.Contains("c"));
  // The first 8 bytes that sha256sum prints of "a", the last one first.
  EXPECT_EQ(history.hashes()[0], 0xcabd1bca128197ca);
}

TEST(RequestHistory, WithoutCapacityNothingIsRemembered) {
  RequestHistory history;
  history.Add("a", 0);
  EXPECT_FALSE(history.Contains("a"));
}

}  // namespace

}  // namespace txl
