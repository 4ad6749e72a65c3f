// SessionService, ModelService and Score as clients see them.

#include <gmock/gmock.h>

#include "absl/strings/str_cat.h"
#include "tests/server/api/music_model.h"
#include "tests/server/rpc/rpc_world.h"

namespace txl {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::MatchesRegex;
using testing::SizeIs;

template <typename Stub, typename Request, typename Response>
grpc::Status Call(Stub& stub,
                  grpc::Status (Stub::*method)(grpc::ClientContext*,
                                               const Request&, Response*),
                  const std::string& request, Response* response,
                  const RpcWorld::Metadata& metadata = {},
                  std::string* session_metadata = nullptr) {
  grpc::ClientContext client;
  for (const auto& [key, value] : metadata) client.AddMetadata(key, value);
  const grpc::Status status =
      (stub.*method)(&client, Proto<Request>(request), response);
  const auto& initial = client.GetServerInitialMetadata();
  const auto it = initial.find("x-txl-session");
  if (session_metadata != nullptr && it != initial.end()) {
    *session_metadata = std::string(it->second.data(), it->second.size());
  }
  return status;
}

using Sessions = v1::SessionService::Stub;
using Model = v1::ModelService::Stub;
using Generation = v1::GenerationService::Stub;

TEST(CreateSession, TakesTheClientsIdAndTtl) {
  RpcWorld world;
  v1::CreateSessionResponse response;
  EXPECT_EQ(
      Outcome(Call(*world.sessions, &Sessions::CreateSession,
                   "session_id: 'chat-1' ttl { seconds: 60 }", &response)),
      "OK");
  EXPECT_EQ(response.session().session_id(), "chat-1");
  EXPECT_EQ(response.session().ttl().seconds(), 60);
  EXPECT_EQ(response.session().state(), v1::SESSION_STATE_IDLE);
  EXPECT_EQ(response.session().position(), 0);
  EXPECT_EQ(response.session().expire_time().seconds() -
                response.session().create_time().seconds(),
            60);
}

TEST(CreateSession, MakesAnIdOf128BitsAndReturnsItInTheMetadata) {
  RpcWorld world;
  v1::CreateSessionResponse response;
  std::string metadata;
  EXPECT_EQ(Outcome(Call(*world.sessions, &Sessions::CreateSession, "",
                         &response, {}, &metadata)),
            "OK");
  EXPECT_THAT(response.session().session_id(), MatchesRegex("[A-Za-z0-9_-]+"));
  EXPECT_GE(response.session().session_id().size(), 22u);
  EXPECT_EQ(metadata, response.session().session_id());
}

TEST(CreateSession, OfAnIdInUseIsRefused) {
  RpcWorld world;
  world.MakeSession("s");
  v1::CreateSessionResponse response;
  EXPECT_EQ(Outcome(Call(*world.sessions, &Sessions::CreateSession,
                         "session_id: 's'", &response)),
            "ALREADY_EXISTS SESSION_EXISTS");
}

TEST(CreateSession, OfATtlOutOfRangeIsRefused) {
  RpcWorld world;
  v1::CreateSessionResponse response;
  for (const char* ttl :
       {"ttl { }", "ttl { seconds: 2592001 }", "ttl { seconds: -1 }"}) {
    EXPECT_EQ(Outcome(Call(*world.sessions, &Sessions::CreateSession, ttl,
                           &response)),
              "INVALID_ARGUMENT FIELD_INVALID ttl");
  }
}

TEST(GetSession, ShowsTokensAndTextOnlyWhenAsked) {
  RpcWorld world;
  world.MakeSession("s", {'h', 'i', 0xc3});
  v1::GetSessionResponse plain;
  v1::GetSessionResponse full;
  EXPECT_EQ(Outcome(Call(*world.sessions, &Sessions::GetSession,
                         "session_id: 's'", &plain)),
            "OK");
  EXPECT_EQ(Outcome(Call(*world.sessions, &Sessions::GetSession,
                         "session_id: 's' include_tokens: true", &full)),
            "OK");
  EXPECT_EQ(plain.session().position(), 3);
  EXPECT_THAT(plain.token_ids(), IsEmpty());
  EXPECT_THAT(full.token_ids(), ElementsAre('h', 'i', 0xc3));
  EXPECT_EQ(full.text(), "hi\xef\xbf\xbd");  // an incomplete character
}

TEST(GetSession, OfWhatIsNotThereIsNotFound) {
  RpcWorld world;
  v1::GetSessionResponse response;
  EXPECT_EQ(Outcome(Call(*world.sessions, &Sessions::GetSession,
                         "session_id: 'x'", &response)),
            "NOT_FOUND SESSION_UNKNOWN");
  EXPECT_EQ(
      Outcome(Call(*world.sessions, &Sessions::GetSession, "", &response)),
      "INVALID_ARGUMENT FIELD_INVALID session_id");
}

TEST(ListSessions, GoesPageByPage) {
  RpcWorld world;
  for (const char* id : {"c", "a", "b"}) world.MakeSession(id);
  v1::ListSessionsResponse first;
  v1::ListSessionsResponse second;
  EXPECT_EQ(Outcome(Call(*world.sessions, &Sessions::ListSessions,
                         "page_size: 2", &first)),
            "OK");
  ASSERT_THAT(first.sessions(), SizeIs(2));
  EXPECT_EQ(first.sessions(0).session_id(), "a");
  EXPECT_EQ(
      Outcome(Call(*world.sessions, &Sessions::ListSessions,
                   absl::StrCat("page_token: '", first.next_page_token(), "'"),
                   &second)),
      "OK");
  ASSERT_THAT(second.sessions(), SizeIs(1));
  EXPECT_EQ(second.sessions(0).session_id(), "c");
  EXPECT_EQ(second.next_page_token(), "");
}

TEST(ListSessions, RefusesATokenThatIsNone) {
  RpcWorld world;
  v1::ListSessionsResponse response;
  EXPECT_EQ(Outcome(Call(*world.sessions, &Sessions::ListSessions,
                         "page_token: '?'", &response)),
            "INVALID_ARGUMENT FIELD_INVALID page_token");
}

TEST(DeleteSession, EndsItForGood) {
  RpcWorld world;
  world.MakeSession("s");
  v1::DeleteSessionResponse response;
  EXPECT_EQ(Outcome(Call(*world.sessions, &Sessions::DeleteSession,
                         "session_id: 's'", &response)),
            "OK");
  EXPECT_EQ(Outcome(Call(*world.sessions, &Sessions::DeleteSession,
                         "session_id: 's'", &response)),
            "NOT_FOUND SESSION_UNKNOWN");
}

TEST(AppendTokens, FeedsAndScores) {
  RpcWorld world;
  world.MakeSession("s");
  v1::AppendTokensResponse response;
  EXPECT_EQ(Outcome(Call(*world.sessions, &Sessions::AppendTokens,
                         "session_id: 's' text: 'abc' return_logprobs: true "
                         "expected_position: 0",
                         &response)),
            "OK");
  EXPECT_EQ(response.position(), 3);
  ASSERT_THAT(response.scored(), SizeIs(3));
  EXPECT_FALSE(response.scored(0).has_logprob());
  EXPECT_FLOAT_EQ(response.scored(2).logprob(),
                  world.runner.LogProbs(std::vector<int32_t>{'a', 'b'})['c']);
  EXPECT_NEAR(response.sum_logprob(),
              response.scored(1).logprob() + response.scored(2).logprob(),
              1e-6);
  EXPECT_EQ(response.usage().ShortDebugString(), "prompt_tokens: 3");
}

TEST(AppendTokens, ScoresNothingUnlessAsked) {
  RpcWorld world;
  world.MakeSession("s");
  v1::AppendTokensResponse response;
  EXPECT_EQ(Outcome(Call(*world.sessions, &Sessions::AppendTokens,
                         "session_id: 's' text: 'abc'", &response)),
            "OK");
  EXPECT_THAT(response.scored(), IsEmpty());
  EXPECT_EQ(Outcome(Call(*world.sessions, &Sessions::AppendTokens,
                         "session_id: 's' text: 'd' expected_position: 2",
                         &response)),
            "ABORTED POSITION_MISMATCH");
}

TEST(Score, LeavesTheSessionAsItWas) {
  RpcWorld world;
  world.MakeSession("s", {1, 2});
  v1::ScoreResponse response;
  EXPECT_EQ(
      Outcome(Call(*world.generation, &Generation::Score,
                   "session_id: 's' tokens { ids: 3 } logprobs: 1", &response)),
      "OK");
  ASSERT_THAT(response.tokens(), SizeIs(1));
  const std::vector<float> logprobs =
      world.runner.LogProbs(std::vector<int32_t>{1, 2});
  EXPECT_FLOAT_EQ(response.tokens(0).logprob(), logprobs[3]);
  ASSERT_EQ(response.tokens(0).top_logprobs_size(), 1);
  EXPECT_EQ(static_cast<int32_t>(response.tokens(0).top_logprobs(0).token_id()),
            world.runner.NextToken(std::vector<int32_t>{1, 2}));
  EXPECT_EQ(response.position(), 2);
  EXPECT_EQ(response.usage().ShortDebugString(), "prompt_tokens: 1");
  EXPECT_EQ(world.GetSession("s").position(), 2);
  EXPECT_EQ(Outcome(Call(*world.generation, &Generation::Score,
                         "tokens { ids: [3, 4] }", &response)),
            "OK");
  EXPECT_EQ(response.position(), 0);  // of nobody's session
}

TEST(Tokenize, AndDetokenizeAreInverse) {
  RpcWorld world;
  v1::TokenizeResponse ids;
  EXPECT_EQ(Outcome(Call(*world.model, &Model::Tokenize, "text: 'Hi!'", &ids)),
            "OK");
  EXPECT_THAT(ids.token_ids(), ElementsAre('H', 'i', '!'));
  v1::DetokenizeResponse text;
  EXPECT_EQ(Outcome(Call(*world.model, &Model::Detokenize,
                         "token_ids: [72, 105, 33]", &text)),
            "OK");
  EXPECT_EQ(text.text(), "Hi!");
}

TEST(Tokenize, TakesAMidiFileOfAModelOfMusic) {
  RpcWorld world;
  v1::TokenizeRequest request;
  request.set_midi(kUnknownNote);
  v1::TokenizeResponse response;
  grpc::ClientContext of_text;
  EXPECT_EQ(Outcome(world.model->Tokenize(&of_text, request, &response)),
            "INVALID_ARGUMENT FIELD_INVALID midi");
  world.facts.midi = MidiEncoder::Make(RemiVocabulary());
  grpc::ClientContext of_music;
  EXPECT_EQ(Outcome(world.model->Tokenize(&of_music, request, &response)),
            "OK");
  EXPECT_EQ(std::vector<int32_t>(response.token_ids().begin(),
                                 response.token_ids().end()),
            kOneNoteIds);
  ASSERT_THAT(response.left_out(), SizeIs(1));
  EXPECT_EQ(response.left_out(0).what(), "Note On_109");
  EXPECT_EQ(response.left_out(0).count(), 1);
}

TEST(GetServerStatus, AgreesWithTheTurnsThatRan) {
  RpcWorld world;
  world.MakeSession("s");
  world.Generate("session_id: 's' text: 'abc' stop { max_tokens: 4 }");
  world.Generate("session_id: 'nobody' text: 'abc'");
  v1::GetServerStatusResponse status;
  EXPECT_EQ(Outcome(Call(*world.model, &Model::GetServerStatus, "", &status)),
            "OK");
  EXPECT_EQ(status.state(), v1::SERVER_STATE_READY);
  EXPECT_EQ(status.turns_started(), 1);
  EXPECT_EQ(status.turns_active(), 0);
  EXPECT_EQ(status.turns_finished().at("OK"), 1);
  EXPECT_EQ(status.tokens_delivered(), 4);
  EXPECT_EQ(status.sessions_idle(), 1);
}

TEST(EveryCall, ReturnsANamedSessionInTheMetadata) {
  RpcWorld world;
  world.MakeSession("s");
  EXPECT_EQ(world
                .Generate("session_id: 's' text: 'a' stop { max_tokens: 1 }",
                          {{"x-txl-session", "s"}})
                .session_metadata,
            "s");
  v1::GetSessionResponse response;
  std::string metadata;
  EXPECT_EQ(Outcome(Call(*world.sessions, &Sessions::GetSession,
                         "session_id: 's'", &response, {}, &metadata)),
            "OK");
  EXPECT_EQ(metadata, "s");
}

// A proxy would learn a way to a session that is not there.
TEST(EveryCall, ReturnsNoSessionThatWasNotFound) {
  RpcWorld world;
  std::string metadata;
  v1::GetSessionResponse got;
  v1::DeleteSessionResponse deleted;
  v1::AppendTokensResponse appended;
  v1::ScoreResponse scored;
  EXPECT_EQ(Outcome(Call(*world.sessions, &Sessions::GetSession,
                         "session_id: 's'", &got, {}, &metadata)),
            "NOT_FOUND SESSION_UNKNOWN");
  EXPECT_EQ(Outcome(Call(*world.sessions, &Sessions::GetSession,
                         "session_id: 's' include_tokens: true", &got, {},
                         &metadata)),
            "NOT_FOUND SESSION_UNKNOWN");
  EXPECT_EQ(Outcome(Call(*world.sessions, &Sessions::DeleteSession,
                         "session_id: 's'", &deleted, {}, &metadata)),
            "NOT_FOUND SESSION_UNKNOWN");
  EXPECT_EQ(
      Outcome(Call(*world.sessions, &Sessions::AppendTokens,
                   "session_id: 's' text: 'a'", &appended, {}, &metadata)),
      "NOT_FOUND SESSION_UNKNOWN");
  EXPECT_EQ(Outcome(Call(*world.generation, &Generation::Score,
                         "session_id: 's' text: 'a'", &scored, {}, &metadata)),
            "NOT_FOUND SESSION_UNKNOWN");
  EXPECT_EQ(metadata, "");
  EXPECT_EQ(world.Generate("session_id: 's' text: 'a'").session_metadata, "");
  v1::CreateSessionResponse created;
  EXPECT_EQ(Outcome(Call(*world.sessions, &Sessions::CreateSession,
                         "session_id: 's' ttl { seconds: -1 }", &created, {},
                         &metadata)),
            "INVALID_ARGUMENT FIELD_INVALID ttl");
  EXPECT_EQ(metadata, "");
}

TEST(EveryCall, RefusesMetadataUnlikeTheField) {
  RpcWorld world;
  world.MakeSession("s");
  constexpr char kRefusal[] = "INVALID_ARGUMENT FIELD_INVALID x-txl-session";
  const RpcWorld::Metadata other = {{"x-txl-session", "t"}};
  const RpcWorld::Metadata both = {{"x-txl-session", "s"},
                                   {"x-txl-session", "t"}};
  EXPECT_EQ(Outcome(world.Generate("session_id: 's' text: 'a'", other).status),
            kRefusal);
  EXPECT_EQ(Outcome(world.Generate("session_id: 's' text: 'a'", both).status),
            kRefusal);
  EXPECT_EQ(Outcome(world.Generate("text: 'a'", other).status), kRefusal);
  v1::GetSessionResponse got;
  v1::DeleteSessionResponse deleted;
  v1::AppendTokensResponse appended;
  v1::ScoreResponse scored;
  EXPECT_EQ(Outcome(Call(*world.sessions, &Sessions::GetSession,
                         "session_id: 's'", &got, other)),
            kRefusal);
  EXPECT_EQ(Outcome(Call(*world.sessions, &Sessions::DeleteSession,
                         "session_id: 's'", &deleted, other)),
            kRefusal);
  EXPECT_EQ(Outcome(Call(*world.sessions, &Sessions::AppendTokens,
                         "session_id: 's' text: 'a'", &appended, other)),
            kRefusal);
  EXPECT_EQ(Outcome(Call(*world.generation, &Generation::Score,
                         "session_id: 's' text: 'a'", &scored, other)),
            kRefusal);
  EXPECT_EQ(world.GetSession("s").position(), 0);
}

TEST(EveryCall, ButTheModelsFactsIsRefusedUntilReady) {
  RpcWorldOptions options;
  options.ready = false;
  RpcWorld world(options);
  v1::TokenizeResponse ids;
  EXPECT_EQ(Outcome(world.Generate("text: 'a'").status),
            "UNAVAILABLE NOT_READY");
  EXPECT_EQ(Outcome(Call(*world.model, &Model::Tokenize, "text: 'a'", &ids)),
            "UNAVAILABLE NOT_READY");
  v1::GetModelResponse model;
  EXPECT_EQ(Outcome(Call(*world.model, &Model::GetModel, "", &model)), "OK");
  EXPECT_EQ(model.api_version(), "txl.v1");
  v1::GetServerStatusResponse status;
  EXPECT_EQ(Outcome(Call(*world.model, &Model::GetServerStatus, "", &status)),
            "OK");
  EXPECT_EQ(status.state(), v1::SERVER_STATE_STARTING);
}

}  // namespace
}  // namespace txl
