#include "server/store/record_codec.h"

#include <gtest/gtest.h>

#include <bit>
#include <limits>
#include <string>
#include <vector>

#include "tests/server/store/store_fixture.h"

namespace txl {
namespace {

// Every field differs from its default and from the others.
KeptHead FullHead() {
  KeptHead kept;
  kept.fingerprint = "print";
  kept.head = Head(std::string("a\0b", 3));
  kept.head.ttl = absl::Nanoseconds(123456789);
  kept.head.create_time = absl::FromUnixNanos(11);
  kept.head.last_use = absl::FromUnixNanos(-12);
  kept.head.detokenizer = std::string("\xff\0z", 3);
  kept.head.last_turn = {"request", "STOP", 1, 2, 3};
  kept.head.earlier_requests = {0, 7, UINT64_MAX};
  return kept;
}

// A NaN with bits of its own, which only a copy of the bits keeps.
float OddNan() { return std::bit_cast<float>(uint32_t{0x7fc12345}); }

TokenEvent FullEvent() {
  return {.index = 3,
          .token_id = 999,
          .text = "na\xc3\xafve",
          .held_back = 300,
          .logprob = -0.0f,
          .top_logprobs = {{5, OddNan()},
                           {6, -std::numeric_limits<float>::infinity()}}};
}

TurnRecord FullRecord() {
  TurnRecord record;
  record.identity = {"request", "digest"};
  record.start_position = 4;
  record.prompt_tokens = 5;
  record.seed = UINT64_MAX - 1;
  record.tokens = {FullEvent(), TokenEvent()};
  ScoredToken scored;
  scored.token_id = 12;
  scored.logprob = -1.5e-42f;  // denormal
  scored.text = "t";
  scored.top_logprobs = {{1, -2.0f}};
  record.scored = {scored, ScoredToken()};
  TurnFinished finished;
  finished.reason = FinishReason::kServerDrain;
  finished.position = 6;
  finished.text = "rest";
  finished.matched_stop_text = "stop";
  finished.prompt_tokens = 7;
  finished.generated_tokens = 8;
  finished.cached_tokens = 9;
  finished.rebuilt_tokens = 10;
  finished.timing = {0.1, 1e-300, 3.0};
  record.finished = finished;
  return record;
}

uint32_t Bits(float value) { return std::bit_cast<uint32_t>(value); }

TEST(RecordCodec, AHeadComesBackWithEveryField) {
  const KeptHead kept = FullHead();
  const auto back = DecodeHead(EncodeHead(kept));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->fingerprint, kept.fingerprint);
  EXPECT_EQ(back->head.session_id, kept.head.session_id);
  EXPECT_EQ(back->head.ttl, kept.head.ttl);
  EXPECT_EQ(back->head.create_time, kept.head.create_time);
  EXPECT_EQ(back->head.last_use, kept.head.last_use);
  EXPECT_EQ(back->head.detokenizer, kept.head.detokenizer);
  EXPECT_EQ(back->head.last_turn.request_id, "request");
  EXPECT_EQ(back->head.last_turn.outcome, "STOP");
  EXPECT_EQ(back->head.last_turn.start_position, 1);
  EXPECT_EQ(back->head.last_turn.prompt_tokens, 2);
  EXPECT_EQ(back->head.last_turn.generated_tokens, 3);
  EXPECT_EQ(back->head.earlier_requests, kept.head.earlier_requests);
}

TEST(RecordCodec, ARecordComesBackWithEveryFieldAndEveryBitOfItsFloats) {
  const auto back = DecodeRecord(EncodeRecord(FullRecord()));
  ASSERT_TRUE(back.ok()) << back.status();
  const TurnRecord& record = back->record;
  EXPECT_EQ(record.identity.request_id, "request");
  EXPECT_EQ(record.identity.digest, "digest");
  EXPECT_EQ(record.start_position, 4);
  EXPECT_EQ(record.prompt_tokens, 5);
  EXPECT_EQ(record.seed, UINT64_MAX - 1);
  ASSERT_EQ(record.tokens.size(), 2u);
  EXPECT_EQ(record.tokens[0].index, 3);
  EXPECT_EQ(record.tokens[0].held_back, 300);
  EXPECT_EQ(record.tokens[1].held_back, 0);
  EXPECT_EQ(record.tokens[0].token_id, 999);
  EXPECT_EQ(record.tokens[0].text, "na\xc3\xafve");
  EXPECT_EQ(Bits(record.tokens[0].logprob), Bits(-0.0f));
  ASSERT_EQ(record.tokens[0].top_logprobs.size(), 2u);
  EXPECT_EQ(record.tokens[0].top_logprobs[0].token_id, 5);
  EXPECT_EQ(Bits(record.tokens[0].top_logprobs[0].logprob), 0x7fc12345u);
  EXPECT_EQ(Bits(record.tokens[0].top_logprobs[1].logprob), 0xff800000u);
  ASSERT_EQ(record.scored.size(), 2u);
  EXPECT_EQ(record.scored[0].token_id, 12);
  EXPECT_EQ(Bits(*record.scored[0].logprob), Bits(-1.5e-42f));
  EXPECT_EQ(record.scored[0].text, "t");
  EXPECT_EQ(record.scored[0].top_logprobs[0].logprob, -2.0f);
  EXPECT_FALSE(record.scored[1].logprob.has_value());
  ASSERT_TRUE(record.finished.has_value());
  EXPECT_EQ(record.finished->reason, FinishReason::kServerDrain);
  EXPECT_EQ(record.finished->position, 6);
  EXPECT_EQ(record.finished->text, "rest");
  EXPECT_EQ(record.finished->matched_stop_text, "stop");
  EXPECT_EQ(record.finished->prompt_tokens, 7);
  EXPECT_EQ(record.finished->generated_tokens, 8);
  EXPECT_EQ(record.finished->cached_tokens, 9);
  EXPECT_EQ(record.finished->rebuilt_tokens, 10);
  EXPECT_EQ(record.finished->timing.queued_seconds, 0.1);
  EXPECT_EQ(record.finished->timing.prefill_seconds, 1e-300);
  EXPECT_EQ(record.finished->timing.decode_seconds, 3.0);
}

// A store that was written before held text was counted is read as it is.
TEST(RecordCodec, ATokenBehindWhichNothingIsHeldHasNoFieldForIt) {
  JournalTokens tokens;
  tokens.events = {TokenEvent()};
  ByteWriter out;
  WriteTokens(tokens, out);
  tokens.events[0].held_back = 1;
  ByteWriter more;
  WriteTokens(tokens, more);
  EXPECT_EQ(more.Take().size(), out.Take().size() + 4);
}

// What a server wrote before it counted cached and rebuilt tokens: the record
// of a turn whose end is all that differs from the defaults.
TEST(RecordCodec, AnEndWithoutCachedTokensIsReadAndWrittenAsBefore) {
  ByteWriter old;
  old.Text("");
  old.Text("");
  old.I64(0);
  old.I64(0);
  old.U64(0);
  old.Text("");
  old.U8(1);  // an end follows
  old.U8(0);
  old.I64(6);
  old.Text("rest");
  old.Text("");
  old.I64(7);
  old.I64(8);
  for (int i = 0; i < 3; ++i) old.U64(0);
  old.U32(0);
  old.U32(0);
  const std::string bytes = old.Take();
  const auto back = DecodeRecord(bytes);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->record.finished->generated_tokens, 8);
  EXPECT_EQ(back->record.finished->cached_tokens, 0);
  EXPECT_EQ(back->record.finished->rebuilt_tokens, 0);
  EXPECT_EQ(EncodeRecord(back->record), bytes);
}

TEST(RecordCodec, AnEndOfAnotherFormIsRefused) {
  TurnRecord record;
  record.finished.emplace().text = "rest";
  std::string bytes = EncodeRecord(record);
  // Behind two texts, three numbers and another text.
  const size_t form = 3 * sizeof(uint32_t) + 3 * sizeof(int64_t);
  ASSERT_EQ(bytes[form], 1);
  bytes[form] = 3;
  EXPECT_FALSE(DecodeRecord(bytes).ok());
}

TEST(RecordCodec, ARecordOfABrokenTurnHasNoEnd) {
  TurnRecord record = FullRecord();
  record.finished.reset();
  const auto back = DecodeRecord(EncodeRecord(record));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_FALSE(back->record.finished.has_value());
}

TEST(RecordCodec, IntentAndTokensComeBack) {
  TurnIntent intent;
  intent.identity = {"r", "d"};
  intent.seed = 1;
  intent.start_position = 2;
  intent.prompt_tokens = 3;
  ByteWriter out;
  WriteIntent(intent, out);
  WriteTokens({7, {1, -1, 2}, {FullEvent()}}, out);
  ByteReader in(out.bytes());
  const TurnIntent intent_back = ReadIntent(in);
  const JournalTokens tokens_back = ReadTokens(in);
  EXPECT_TRUE(in.done());
  EXPECT_EQ(intent_back.identity.request_id, "r");
  EXPECT_EQ(intent_back.identity.digest, "d");
  EXPECT_EQ(intent_back.seed, 1u);
  EXPECT_EQ(intent_back.start_position, 2);
  EXPECT_EQ(intent_back.prompt_tokens, 3);
  EXPECT_EQ(tokens_back.from, 7);
  EXPECT_EQ(tokens_back.ids, (std::vector<int32_t>{1, -1, 2}));
  ASSERT_EQ(tokens_back.events.size(), 1u);
  EXPECT_EQ(tokens_back.events[0].text, FullEvent().text);
}

TEST(RecordCodec, EveryCutIsRefused) {
  const std::string head = EncodeHead(FullHead());
  for (size_t size = 0; size < head.size(); ++size) {
    EXPECT_FALSE(DecodeHead(head.substr(0, size)).ok()) << size;
  }
  EXPECT_FALSE(DecodeHead(head + 'x').ok());
  const std::string record = EncodeRecord(FullRecord());
  for (size_t size = 0; size < record.size(); ++size) {
    EXPECT_FALSE(DecodeRecord(record.substr(0, size)).ok()) << size;
  }
  EXPECT_FALSE(DecodeRecord(record + 'x').ok());
}

// A checksum stands before the decoder; should it pass what it should not, the
// decoder still answers, and what it takes it can write again.
TEST(RecordCodec, NoFlippedBitBreaksTheDecoder) {
  const std::string head = EncodeHead(FullHead());
  const std::string record = EncodeRecord(FullRecord());
  for (int bit = 0; bit < 8; ++bit) {
    for (size_t at = 0; at < head.size(); ++at) {
      std::string bad = head;
      bad[at] = static_cast<char>(bad[at] ^ (1 << bit));
      const auto back = DecodeHead(bad);
      if (back.ok()) {
        EXPECT_EQ(EncodeHead(*back), bad) << at;
      }
    }
    for (size_t at = 0; at < record.size(); ++at) {
      std::string bad = record;
      bad[at] = static_cast<char>(bad[at] ^ (1 << bit));
      const auto back = DecodeRecord(bad);
      if (back.ok() && back->record.finished.has_value()) {
        EXPECT_LE(back->record.finished->reason, FinishReason::kServerDrain);
      }
    }
  }
}

TEST(RecordCodec, AnIdTakesAsManyBytesAsTheLargestNeeds) {
  EXPECT_EQ(EncodeIds({255}, 256).size(), 1u);
  EXPECT_EQ(EncodeIds({256}, 257).size(), 2u);
  EXPECT_EQ(EncodeIds({65535}, 65536).size(), 2u);
  EXPECT_EQ(EncodeIds({65536}, 65537).size(), 3u);
  EXPECT_EQ(EncodeIds({1 << 24}, (1 << 24) + 1).size(), 4u);
  for (const int64_t size : {int64_t{2}, int64_t{256}, int64_t{257},
                             int64_t{65537}, int64_t{INT32_MAX}}) {
    const std::vector<int32_t> ids = {0, 1, static_cast<int32_t>(size - 1)};
    const auto back = DecodeIds(EncodeIds(ids, size), size);
    ASSERT_TRUE(back.ok()) << size;
    EXPECT_EQ(*back, ids);
  }
}

TEST(RecordCodec, AnIdOutsideTheVocabularyIsRefused) {
  EXPECT_FALSE(DecodeIds(EncodeIds({999}, 1000), 999).ok());
  EXPECT_FALSE(DecodeIds("abc", 1000).ok());  // half an id
  EXPECT_TRUE(DecodeIds("", 1000)->empty());
}

}  // namespace
}  // namespace txl
