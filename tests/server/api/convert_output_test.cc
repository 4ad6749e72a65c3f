#include "server/api/convert_output.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "server/api/convert_sampling.h"
#include "tests/model/sampling/some_kinds.h"
#include "tests/server/api/convert_fixture.h"

namespace txl {
namespace {

using ::testing::ElementsAre;

TEST(WriteToken, CopiesEveryField) {
  TokenEvent event;
  event.index = 3;
  event.token_id = 65;
  event.text = "A";
  event.logprob = -0.5f;
  event.top_logprobs = {{66, -0.25f}, {65, -0.5f}};
  v1::Token message;
  WriteToken(event, nullptr, &message);
  EXPECT_EQ(message.ShortDebugString(),
            "index: 3 token_id: 65 text: \"A\" logprob: -0.5 "
            "top_logprobs { token_id: 66 logprob: -0.25 } "
            "top_logprobs { token_id: 65 logprob: -0.5 }");
}

TEST(WriteToken, AddsTheExactBytesWhenAsked) {
  const ByteVocabulary vocabulary;
  TokenEvent event;
  event.token_id = 0xff;  // no character by itself
  v1::Token message;
  WriteToken(event, &vocabulary, &message);
  EXPECT_EQ(message.text(), "");
  EXPECT_EQ(message.token_bytes(), "\xff");
}

TEST(WriteFinished, CopiesEveryField) {
  TurnFinished finished;
  finished.reason = FinishReason::kStopText;
  finished.position = 12;
  finished.text = "rest";
  finished.matched_stop_text = "stop";
  finished.prompt_tokens = 4;
  finished.generated_tokens = 8;
  finished.cached_tokens = 3;
  finished.rebuilt_tokens = 5;
  finished.timing = {0.5, 0.25, 2};
  v1::Finished message;
  WriteFinished(finished, &message);
  EXPECT_EQ(message.ShortDebugString(),
            "reason: FINISH_REASON_STOP_TEXT position: 12 text: \"rest\" "
            "matched_stop_text: \"stop\" "
            "usage { prompt_tokens: 4 generated_tokens: 8 "
            "cached_tokens: 3 rebuilt_tokens: 5 } "
            "timing { queued_seconds: 0.5 prefill_seconds: 0.25 "
            "decode_seconds: 2 }");
}

TEST(ToProto, KnowsEveryFinishReason) {
  EXPECT_EQ(ToProto(FinishReason::kMaxTokens), v1::FINISH_REASON_MAX_TOKENS);
  EXPECT_EQ(ToProto(FinishReason::kStopText), v1::FINISH_REASON_STOP_TEXT);
  EXPECT_EQ(ToProto(FinishReason::kStopToken), v1::FINISH_REASON_STOP_TOKEN);
  EXPECT_EQ(ToProto(FinishReason::kEndToken), v1::FINISH_REASON_END_TOKEN);
  EXPECT_EQ(ToProto(FinishReason::kServerDrain),
            v1::FINISH_REASON_SERVER_DRAIN);
}

TEST(WriteScored, SumsThePresentLogprobs) {
  std::vector<ScoredToken> tokens(3);
  tokens[1].logprob = -1.5f;
  tokens[2].logprob = -0.25f;
  v1::ScoreResponse message;
  EXPECT_EQ(WriteScored(tokens, message.mutable_tokens()), -1.75);
  EXPECT_FALSE(message.tokens(0).has_logprob());
  EXPECT_TRUE(message.tokens(1).has_logprob());
}

TEST(WriteSession, CopiesEveryField) {
  SessionInfo info;
  info.session_id = "s";
  info.state = SessionState::kBusy;
  info.position = 9;
  info.create_time = absl::FromUnixMillis(1500);
  info.last_use_time = absl::FromUnixSeconds(2);
  info.expire_time = absl::FromUnixSeconds(3);
  info.ttl = absl::Milliseconds(1250);
  info.memory_bytes = 64;
  info.last_turn = {"r", "MAX_TOKENS", 1, 2, 3};
  v1::Session message;
  WriteSession(info, &message);
  EXPECT_EQ(message.ShortDebugString(),
            "session_id: \"s\" state: SESSION_STATE_BUSY position: 9 "
            "create_time { seconds: 1 nanos: 500000000 } "
            "last_use_time { seconds: 2 } expire_time { seconds: 3 } "
            "ttl { seconds: 1 nanos: 250000000 } memory_bytes: 64 "
            "last_turn { request_id: \"r\" outcome: \"MAX_TOKENS\" "
            "start_position: 1 prompt_tokens: 2 generated_tokens: 3 }");
}

TEST(WriteSession, HasNoLastTurnBeforeTheFirst) {
  v1::Session message;
  WriteSession(SessionInfo{}, &message);
  EXPECT_FALSE(message.has_last_turn());
}

TEST(WriteTime, CountsNanosecondsForwardAlsoBeforeTheEpoch) {
  google::protobuf::Timestamp time;
  WriteTime(absl::FromUnixMillis(-250), &time);
  EXPECT_EQ(time.seconds(), -1);
  EXPECT_EQ(time.nanos(), 750'000'000);
}

TEST(WriteModel, ShowsEveryLimit) {
  const ModelFacts facts = ByteModel();
  ServedModel model;
  model.facts = &facts;
  model.limits = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 17, 18, 19};
  model.scheduler.max_queued_calls = 11;
  model.scheduler.max_queued_tokens = 12;
  model.sessions.max_sessions = 13;
  model.sessions.max_session_tokens = 16;
  model.sessions.min_ttl = absl::Seconds(14);
  model.sessions.max_ttl = absl::Seconds(15);
  v1::GetModelResponse message;
  WriteModel(model, &message);
  EXPECT_EQ(message.limits().ShortDebugString(),
            "max_prompt_tokens: 1 max_prompt_bytes: 2 max_tokens: 3 "
            "max_stop_texts: 4 max_stop_text_bytes: 5 max_stop_tokens: 6 "
            "max_logprobs: 7 max_logit_bias: 8 max_logit_bias_value: 100 "
            "max_message_bytes: 10 max_tokens_per_message: 9 "
            "min_ttl { seconds: 14 } max_ttl { seconds: 15 } "
            "max_queued_calls: 11 max_queued_tokens: 12 max_sessions: 13 "
            "max_session_tokens: 16 max_import_bytes: 17 max_alternatives: "
            "18 max_allowed_tokens: 19");
}

TEST(WriteModel, LeavesNoFieldOfAFullModelUnset) {
  ModelFacts facts = ByteModel();
  facts.config.n_head = facts.config.d_head = facts.config.d_model = 2;
  facts.config.d_embed = facts.config.d_inner = 2;
  facts.generation.start_tokens = {1};
  facts.generation.end_tokens = {2};
  facts.kinds = SomeTable(256);
  facts.memory_length = facts.window = facts.bytes_per_session = 5;
  const std::string known = "known";
  facts.device = facts.kernel = facts.form = facts.weight_dtype = known;
  facts.memory_dtype = facts.server_version = known;
  ServedModel model;
  model.facts = &facts;
  v1::GetModelResponse message;
  WriteModel(model, &message);
  std::vector<const google::protobuf::FieldDescriptor*> set;
  message.GetReflection()->ListFields(message, &set);
  EXPECT_EQ(static_cast<int>(set.size()),
            v1::GetModelResponse::descriptor()->field_count())
      << message.ShortDebugString();
  EXPECT_EQ(message.vocabulary_kind(), "bytes");
  EXPECT_THAT(message.token_kinds(), ElementsAre("A", "B", "C", "D"));
  EXPECT_FALSE(message.default_sampling().has_seed());
}

StoreUse SomeStore() {
  return {.durability = "turn",
          .state = "serving",
          .sessions = 71,
          .database_bytes = 72,
          .image_bytes = 73,
          .tokens_waiting = 74,
          .commits = 76};
}

void FillPrefixes(Snapshot& s) {
  s.prefix_lookups = 96;
  s.prefix_hits = 94;
  s.tokens_cached = 95;
  s.prefix_images = 93;
  s.prefix_bytes = 92;
  s.prefix_evictions = 91;
}

TEST(WriteStatus, LeavesNoFieldOfABusyServerUnset) {
  ServerStatus facts;
  facts.phase = ServerPhase::kDraining;
  facts.uptime = facts.stall = absl::Seconds(1);
  facts.sessions = {1, 2, 3, 4, 61, 62, 5, 6, 7};
  Snapshot& s = facts.snapshot;
  s.turns_started = s.turns_active = s.queued_calls = s.queued_tokens = 1;
  s.turns_finished["OK"] = 2;
  s.steps = s.rows_decode = s.rows_prefill = s.rows_score = 1;
  s.rows_rebuild = s.rows_discarded = s.steps_with_decode = 1;
  s.steps_with_prompt_and_decode = s.tokens_sampled = 1;
  s.tokens_delivered = s.tokens_discarded = s.slots_total = 1;
  s.slots_used = s.turns_parked = s.stream_queue_tokens = 1;
  s.softmax_tails = {{.computed = 4, .skipped = 3}, {.skipped = 7}};
  s.step_seconds = 0.5;
  s.tokens_guessed = s.guesses_accepted = s.steps_saved = 1;
  FillPrefixes(s);
  facts.memory.division = {45, 1, 2, 3, 9, 4, 5, 6, 7, 8};
  facts.memory.resident_bytes = 11;
  facts.memory.shedding = true;
  facts.memory.request_bytes = 12;
  facts.memory.requests_refused = 13;
  facts.memory.stream_bytes = 14;
  facts.memory.streams_refused = 15;
  facts.calls = {21, 22, 23, 24};
  facts.work = {31, 32, 33, 34};
  facts.log_lines_dropped = facts.audit_lines_lost = 41;
  facts.span_lines_lost = 43;
  facts.connections = {51, 52, 53};
  facts.store = SomeStore();
  facts.self_test = {SelfTestResult::kFellBack, "native", "rows differ", 1.5};
  v1::GetServerStatusResponse message;
  WriteStatus(facts, &message);
  EXPECT_EQ(message.memory().ShortDebugString(),
            "limit: 45 weights: 1 slots: 2 images: 3 ids: 4 records: 5 "
            "requests: 6 streams: 7 reserve: 8 prefixes: 9");
  EXPECT_EQ(message.self_test().ShortDebugString(),
            "result: \"fell_back\" step: \"native\" objection: \"rows "
            "differ\" seconds: 1.5");
  EXPECT_EQ(message.request_bytes(), 12);
  EXPECT_EQ(message.work_refused(), 34);
  EXPECT_EQ(message.sessions_loaded(), 61);
  EXPECT_EQ(message.sessions_stored_away(), 62);
  EXPECT_EQ(message.store().ShortDebugString(),
            "durability: \"turn\" state: \"serving\" sessions: 71 "
            "database_bytes: 72 image_bytes: 73 tokens_waiting: 74 commits: "
            "76");
  std::vector<const google::protobuf::FieldDescriptor*> set;
  message.GetReflection()->ListFields(message, &set);
  EXPECT_EQ(static_cast<int>(set.size()),
            v1::GetServerStatusResponse::descriptor()->field_count())
      << message.ShortDebugString();
  EXPECT_EQ(message.state(), v1::SERVER_STATE_DRAINING);
  EXPECT_EQ(message.sessions_idle(), 1);
  EXPECT_EQ(message.sessions_busy(), 2);
  ASSERT_EQ(message.softmax_tails_size(), 2);
  EXPECT_EQ(message.softmax_tails(0).ShortDebugString(),
            "computed: 4 skipped: 3");
  EXPECT_EQ(message.softmax_tails(1).ShortDebugString(), "skipped: 7");
}

TEST(WriteStatus, HasTheGuessesAsTheMetricsDo) {
  ServerStatus facts;
  facts.snapshot.tokens_guessed = 83;
  facts.snapshot.guesses_accepted = 82;
  facts.snapshot.steps_saved = 81;
  v1::GetServerStatusResponse message;
  WriteStatus(facts, &message);
  EXPECT_EQ(message.tokens_guessed(), 83);
  EXPECT_EQ(message.guesses_accepted(), 82);
  EXPECT_EQ(message.steps_saved(), 81);
}

TEST(WriteStatus, HasThePrefixCacheAsTheMetricsDo) {
  ServerStatus facts;
  FillPrefixes(facts.snapshot);
  v1::GetServerStatusResponse message;
  WriteStatus(facts, &message);
  EXPECT_EQ(message.prefix_lookups(), 96);
  EXPECT_EQ(message.prefix_hits(), 94);
  EXPECT_EQ(message.tokens_cached(), 95);
  EXPECT_EQ(message.prefix_images(), 93);
  EXPECT_EQ(message.prefix_bytes(), 92);
  EXPECT_EQ(message.prefix_evictions(), 91);
}

TEST(WriteSampling, SetsEveryField) {
  SamplingParams params = {
      .logit_bias = {{1, 2.5}}, .allowed_token_ids = {3}, .follow_kinds = true};
  v1::SamplingParams message;
  WriteSampling(params, &message);
  std::vector<const google::protobuf::FieldDescriptor*> set;
  message.GetReflection()->ListFields(message, &set);
  EXPECT_EQ(static_cast<int>(set.size()),
            v1::SamplingParams::descriptor()->field_count());
  EXPECT_TRUE(message.follow_kinds());
}

TEST(WriteStop, SetsTheCountedTokenWhereThereIsOne) {
  StopRules stop;
  v1::StopConditions message;
  WriteStop(stop, &message);
  EXPECT_FALSE(message.has_token_count());
  stop.token_count = {7, 8};
  WriteStop(stop, &message);
  EXPECT_EQ(message.token_count().ShortDebugString(), "id: 7 count: 8");
}

using Ids = std::vector<int32_t>;

absl::StatusOr<AlternativesParams> Read(const std::string& request,
                                        const RequestLimits& limits = {},
                                        const ModelFacts& facts = ByteModel()) {
  return ReadAlternatives(FromText<v1::ScoreAlternativesRequest>(request),
                          facts, limits);
}

TEST(ReadAlternatives, TakesTextsAndIds) {
  const auto params = Read(
      "session_id: 's' text: 'ab' return_tokens: true "
      "alternatives { text: 'c' } alternatives { tokens { ids: [1, 2] } }");
  ASSERT_TRUE(params.ok()) << params.status();
  EXPECT_EQ(params->session_id, "s");
  EXPECT_THAT(params->context, ElementsAre('a', 'b'));
  EXPECT_THAT(params->alternatives, ElementsAre(Ids{'c'}, Ids{1, 2}));
  EXPECT_TRUE(params->return_tokens);
  EXPECT_EQ(params->tokens(), 5);
}

TEST(ReadAlternatives, NeedsNeitherSessionNorContext) {
  const auto params = Read("alternatives { text: 'c' }");
  ASSERT_TRUE(params.ok()) << params.status();
  EXPECT_EQ(params->session_id, "");
  EXPECT_TRUE(params->context.empty());
  EXPECT_FALSE(params->return_tokens);
}

TEST(ReadAlternatives, NamesTheFieldThatIsWrong) {
  const std::string good = "alternatives { text: 'c' } ";
  EXPECT_EQ(Refusal(Read("")), "INVALID_ARGUMENT FIELD_INVALID alternatives");
  EXPECT_EQ(Refusal(Read("session_id: '/' " + good)),
            "INVALID_ARGUMENT FIELD_INVALID session_id");
  EXPECT_EQ(Refusal(Read("text: '' " + good)),
            "INVALID_ARGUMENT FIELD_INVALID text");
  EXPECT_EQ(Refusal(Read("tokens { ids: 256 } " + good)),
            "INVALID_ARGUMENT FIELD_INVALID tokens.ids[0]");
  EXPECT_EQ(Refusal(Read(good + "alternatives { }")),
            "INVALID_ARGUMENT FIELD_INVALID alternatives[1].input");
  EXPECT_EQ(Refusal(Read(good + "alternatives { text: '' }")),
            "INVALID_ARGUMENT FIELD_INVALID alternatives[1].text");
  EXPECT_EQ(Refusal(Read(good + "alternatives { tokens { } }")),
            "INVALID_ARGUMENT FIELD_INVALID alternatives[1].tokens");
  EXPECT_EQ(
      Refusal(Read(good + good + "alternatives { tokens { ids: [1, 999] } }")),
      "INVALID_ARGUMENT FIELD_INVALID alternatives[2].tokens.ids[1]");
  EXPECT_EQ(Refusal(Read(good, {}, IdModel())),
            "INVALID_ARGUMENT FIELD_INVALID alternatives[0].text");
}

TEST(ReadAlternatives, CountsTheContextWithEachAlternative) {
  RequestLimits limits = {.prompt_tokens = 5, .alternatives = 2};
  const std::string fits = "alternatives { text: 'abc' } ";
  EXPECT_EQ(Refusal(Read("text: 'ab' " + fits + fits, limits)), "OK");
  EXPECT_EQ(Refusal(Read("text: 'abc' " + fits, limits)),
            "INVALID_ARGUMENT OVER_LIMIT alternatives[0]");
  EXPECT_EQ(Refusal(Read("text: 'abcdef' " + fits, limits)),
            "INVALID_ARGUMENT OVER_LIMIT text");
  EXPECT_EQ(Refusal(Read(fits + fits + fits, limits)),
            "INVALID_ARGUMENT OVER_LIMIT alternatives");
  EXPECT_EQ(
      Refusal(Read("alternatives { tokens { ids: [1,1,1,1,1,1] } }", limits)),
      "INVALID_ARGUMENT OVER_LIMIT alternatives[0].tokens.ids");
}

ScoredToken Token(int32_t id, std::optional<float> logprob) {
  ScoredToken token;
  token.token_id = id;
  token.logprob = logprob;
  return token;
}

TEST(WriteAlternatives, SumsWhatEachHas) {
  AlternativesParams params;
  params.alternatives = {{1, 2}, {3}};
  const auto response = WriteAlternatives(
      params, nullptr, TurnFinished(),
      {Token(1, std::nullopt), Token(2, -0.5f), Token(3, -2)});
  ASSERT_EQ(response.scores_size(), 2);
  EXPECT_EQ(response.scores(0).sum_logprob(), -0.5);
  EXPECT_EQ(response.scores(0).token_count(), 2);
  EXPECT_EQ(response.scores(0).tokens_size(), 0);
  EXPECT_EQ(response.scores(1).sum_logprob(), -2);
  EXPECT_EQ(response.scores(1).token_count(), 1);
}

TEST(WriteAlternatives, CountsContextAndAlternativesAsThePrompt) {
  AlternativesParams params;
  params.context = {1, 2, 3};
  params.alternatives = {{4, 5}, {6}};
  TurnFinished finished;
  finished.prompt_tokens = 3;
  finished.cached_tokens = 2;
  finished.rebuilt_tokens = 7;
  const auto response = WriteAlternatives(
      params, nullptr, finished, {Token(4, -1), Token(5, -1), Token(6, -1)});
  EXPECT_EQ(response.usage().ShortDebugString(),
            "prompt_tokens: 6 cached_tokens: 2 rebuilt_tokens: 7");
}

TEST(WriteAlternatives, ShowsEveryTokenWithTheTextThatItHasThere) {
  AlternativesParams params;
  params.context = {'x', 0xc3};  // the beginning of a character
  params.alternatives = {{0xa9, 'a'}, {'b'}, {0xc3}};
  params.return_tokens = true;
  const ModelFacts facts = ByteModel();
  const auto detokenizer = facts.vocabulary->NewDetokenizer();
  const auto response = WriteAlternatives(
      params, detokenizer.get(), TurnFinished(),
      {Token(0xa9, -1), Token('a', -2), Token('b', -3), Token(0xc3, -4)});
  EXPECT_EQ(response.scores(0).tokens(0).text(), "\xc3\xa9");
  EXPECT_EQ(response.scores(0).tokens(1).text(), "a");
  EXPECT_EQ(response.scores(0).tokens(1).logprob(), -2);
  EXPECT_EQ(response.scores(1).tokens(0).text(),
            "\xef\xbf\xbd"
            "b");
  EXPECT_EQ(response.scores(2).tokens(0).token_id(), 0xc3u);
}

}  // namespace

}  // namespace txl
