#include "server/session/session_import.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "model/text/byte_vocabulary.h"
#include "tests/server/session/export_fixture.h"

namespace txl {
namespace {

void ExpectSame(const ImportedSession& session,
                const std::vector<int32_t>& ids) {
  const StoredHead from = ExportedHead();
  EXPECT_EQ(IdsOf(session), ids);
  EXPECT_EQ(session.head.session_id, "");
  EXPECT_EQ(session.head.ttl, from.ttl);
  EXPECT_EQ(session.head.detokenizer, from.detokenizer);
  EXPECT_EQ(session.head.last_turn.request_id, from.last_turn.request_id);
  EXPECT_EQ(session.head.last_turn.outcome, from.last_turn.outcome);
  EXPECT_EQ(session.head.last_turn.start_position, 10);
  EXPECT_EQ(session.head.last_turn.prompt_tokens, 20);
  EXPECT_EQ(session.head.last_turn.generated_tokens, 30);
  EXPECT_EQ(session.head.earlier_requests, from.earlier_requests);
}

TEST(SessionImport, TakesInWhatWasExportedOfEveryWidth) {
  for (const int64_t vocabulary : {int64_t{2}, int64_t{256}, int64_t{300},
                                   int64_t{267'735}, int64_t{1} << 31}) {
    for (const int64_t count : {0, 1, 5000, 400'000}) {
      const ExportOptions options = {"model", vocabulary, ""};
      const std::vector<int32_t> ids = RandomTokens(count, vocabulary);
      const auto session =
          ImportAll(ImportOptionsFor(options), ExportAll(options, ids));
      ASSERT_TRUE(session.ok()) << session.status();
      ExpectSame(*session, ids);
      EXPECT_FALSE(session->state.has_value());
    }
  }
}

TEST(SessionImport, AsksOnceItKnowsHowManyTokensThereAre) {
  const ExportOptions from = {"model", 300, ""};
  const std::string file = ExportAll(from, RandomTokens(70'000, 300));
  ImportOptions options = ImportOptionsFor(from);
  std::vector<int64_t> asked;
  absl::Status answer;
  options.may_add = [&](int64_t tokens) {
    asked.push_back(tokens);
    return answer;
  };
  ASSERT_TRUE(ImportAll(options, file).ok());
  EXPECT_EQ(asked, std::vector<int64_t>{70'000});
  answer = absl::ResourceExhaustedError("no room");
  SessionImport import(options);
  size_t taken = 0;
  while (taken < file.size() && import.Add(file.substr(taken, 1)).ok()) ++taken;
  EXPECT_LT(taken, 200u);  // of 140,000 bytes
  EXPECT_EQ(import.Add("x"), answer);
  EXPECT_EQ(import.Finish().status(), answer);
  EXPECT_EQ(asked.size(), 2u);
}

TEST(SessionImport, TakesAnEmptySession) {
  const ExportOptions options = {"", 0, ""};
  StoredHead head;
  head.ttl = absl::InfiniteDuration();
  const auto session = ImportAll(ImportOptionsFor(options),
                                 ExportAll(options, {}, nullptr, head));
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_EQ(session->token_ids.size(), 0);
  EXPECT_EQ(session->head.ttl, absl::InfiniteDuration());
  EXPECT_TRUE(session->head.earlier_requests.empty());
}

TEST(SessionImport, TakesAStateOfTheSameKeyOnly) {
  const std::vector<int32_t> ids = RandomTokens(100, 300);
  const auto state = ExportedState((2 << 20) + 5, 100);
  const struct {
    const char* exported;
    const char* imported;
    bool taken;
  } cases[] = {{"key", "key", true},
               {"key", "other", false},
               {"key", "", false},
               {"", "key", false},
               {"", "", false}};
  for (const auto& c : cases) {
    const std::string file = ExportAll({"model", 300, c.exported}, ids, state);
    const auto session =
        ImportAll(ImportOptionsFor({"model", 300, c.imported}), file);
    ASSERT_TRUE(session.ok()) << session.status();
    ExpectSame(*session, ids);
    ASSERT_EQ(session->state.has_value(), c.taken) << c.exported << c.imported;
    if (!c.taken) continue;
    EXPECT_EQ(session->state->identity, state->identity);
    EXPECT_EQ(session->state->position, state->position);
    EXPECT_EQ(session->state->rows, state->rows);
    EXPECT_EQ(session->state->data, state->data);
    EXPECT_EQ(session->state->checksum, state->checksum);
  }
}

TEST(SessionImport, AStateBehindTheIdsIsLeftOut) {
  const ExportOptions options = {"model", 300, "key"};
  const std::string file =
      ExportAll(options, RandomTokens(100, 300), ExportedState(50, 101));
  const auto session = ImportAll(ImportOptionsFor(options), file);
  ASSERT_TRUE(session.ok());
  EXPECT_FALSE(session->state.has_value());
}

TEST(SessionImport, AnyCutsIntoPiecesGiveTheSame) {
  const ExportOptions options = {"model", 100'000, "key"};
  const std::vector<int32_t> ids = RandomTokens(400'000, 100'000);
  const std::string file = ExportAll(options, ids, ExportedState(3000, 7));
  std::mt19937 random(3);
  for (int run = 0; run < 20; ++run) {
    const size_t most = size_t{1} << (run % 10 * 2 + 3);
    SessionImport import(ImportOptionsFor(options));
    for (size_t at = 0; at < file.size();) {
      const size_t size = random() % most;  // also none
      ASSERT_TRUE(import.Add(absl::string_view(file).substr(at, size)).ok());
      at += size;
    }
    const auto session = import.Finish();
    ASSERT_TRUE(session.ok()) << session.status();
    ExpectSame(*session, ids);
    EXPECT_TRUE(session->state.has_value());
  }
}

TEST(SessionImport, AnotherModelIsRefusedAtOnce) {
  const std::string file = ExportAll({"model", 300, ""}, {1, 2, 3});
  for (const ExportOptions& other :
       {ExportOptions{"other", 300, ""}, ExportOptions{"model", 299, ""}}) {
    SessionImport import(ImportOptionsFor(other));
    const absl::Status status = import.Add(file.substr(0, 120));
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_EQ(ReasonAndFieldOf(status), "MODEL_MISMATCH");
    EXPECT_EQ(import.Add(file), status);
    EXPECT_EQ(import.Finish().status(), status);
  }
}

TEST(SessionImport, LimitsHold) {
  const ExportOptions options = {"model", 300, ""};
  const std::string file = ExportAll(options, RandomTokens(1000, 300));
  ImportOptions limited = ImportOptionsFor(options);
  limited.max_bytes = static_cast<int64_t>(file.size());
  limited.max_tokens = 1000;
  EXPECT_TRUE(ImportAll(limited, file).ok());
  limited.max_tokens = 999;
  EXPECT_EQ(ReasonAndFieldOf(ImportAll(limited, file.substr(0, 120)).status()),
            "OVER_LIMIT chunk");
  limited.max_tokens = 1000;
  --limited.max_bytes;
  EXPECT_EQ(ReasonAndFieldOf(ImportAll(limited, file).status()),
            "OVER_LIMIT chunk");
}

TEST(SessionImport, AStateThatExceedsTheLimitIsRefusedBeforeItComes) {
  const ExportOptions options = {"model", 300, "key"};
  const std::string file = ExportAll(options, {1}, ExportedState(100'000, 1));
  ImportOptions limited = ImportOptionsFor(options);
  limited.max_bytes = 50'000;
  EXPECT_EQ(ReasonAndFieldOf(ImportAll(limited, file.substr(0, 1000)).status()),
            "OVER_LIMIT chunk");
}

TEST(SessionImport, IdsOutsideTheVocabularyAreRefused) {
  for (const auto& [vocabulary, id] : {std::pair<int64_t, int32_t>{200, 200},
                                       {300, 300},
                                       {300, 65'535},
                                       {70'000, 70'000},
                                       {int64_t{1} << 31, -1}}) {
    const ExportOptions options = {"model", vocabulary, ""};
    const std::string file = ExportAll(options, {1, id, 2});
    EXPECT_EQ(
        ReasonAndFieldOf(ImportAll(ImportOptionsFor(options), file).status()),
        "FIELD_INVALID chunk")
        << id;
  }
}

TEST(SessionImport, TheDetokenizersStateHasToBeOneOfTheVocabulary) {
  const ByteVocabulary vocabulary;
  const ExportOptions options = {"model", 256, ""};
  ImportOptions import = ImportOptionsFor(options);
  import.vocabulary = &vocabulary;
  EXPECT_TRUE(ImportAll(import, ExportAll(options, {1})).ok());
  StoredHead head = ExportedHead();
  head.detokenizer = "no character begins so";
  EXPECT_EQ(
      ReasonAndFieldOf(
          ImportAll(import, ExportAll(options, {1}, nullptr, head)).status()),
      "FIELD_INVALID chunk");
}

TEST(SessionImport, FieldsThatNoServerWritesAreRefused) {
  const ExportOptions options = {"model", 256, ""};
  const auto reason = [&](const StoredHead& head) {
    const std::string file = ExportAll(options, {1}, nullptr, head);
    return ReasonAndFieldOf(
        ImportAll(ImportOptionsFor(options), file).status());
  };
  EXPECT_EQ(reason(ExportedHead()), "");
  StoredHead head = ExportedHead();
  head.ttl = absl::Seconds(-1);
  EXPECT_EQ(reason(head), "FIELD_INVALID chunk");
  head = ExportedHead();
  head.last_turn.request_id = "\xFF";
  EXPECT_EQ(reason(head), "FIELD_INVALID chunk");
  head = ExportedHead();
  head.last_turn.generated_tokens = -1;
  EXPECT_EQ(reason(head), "FIELD_INVALID chunk");
}

}  // namespace
}  // namespace txl
