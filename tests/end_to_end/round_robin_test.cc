// Sessions that lose their slot to others go on as if they had kept it.

#include <gtest/gtest.h>

#include "tests/end_to_end/server_process.h"
#include "tests/end_to_end/turns.h"

namespace txl::testing {
namespace {

constexpr int kSlots = 4;
constexpr int kSessions = 3 * kSlots;
constexpr int kRounds = 4;
constexpr int kTokensOfTurn = 6;

// A session's turns have the same seed: draws are a function of seed and
// position, so its turns together are one long turn.
v1::GenerateRequest Request(int session, const std::string& session_id,
                            absl::Span<const uint32_t> prompt,
                            int32_t max_tokens) {
  v1::GenerateRequest request = Greedy(session_id, prompt, max_tokens);
  if (session % 2 == 1) {
    request.mutable_sampling()->set_temperature(1);
    request.mutable_sampling()->set_seed(session);
  }
  return request;
}

TEST(RoundRobin, ThreeTimesMoreSessionsThanSlotsGiveTheSameTokensAsAlone) {
  ServerProcess server(GoldenModel("kimi-char"),
                       {"--slots", std::to_string(kSlots)});
  Client& client = server.client();
  std::vector<std::vector<uint32_t>> alone;
  std::vector<std::vector<uint32_t>> prompts;
  for (int i = 0; i < kSessions; ++i) {
    prompts.push_back(RandomIds(i, 30 + i, kVocabulary));
    const TurnOutput turn =
        RunTurn(client, Request(i, "", prompts[i], kRounds * kTokensOfTurn));
    ASSERT_TRUE(turn.status.ok()) << turn.status;
    alone.push_back(turn.ids);
    CreateSession(client, "s-" + std::to_string(i));
  }
  std::vector<std::vector<uint32_t>> robin(kSessions);
  for (int round = 0; round < kRounds; ++round) {
    for (int i = 0; i < kSessions; ++i) {
      const std::vector<uint32_t> none;
      const TurnOutput turn = RunTurn(
          client, Request(i, "s-" + std::to_string(i),
                          round == 0 ? prompts[i] : none, kTokensOfTurn));
      ASSERT_TRUE(turn.status.ok()) << turn.status;
      robin[i].insert(robin[i].end(), turn.ids.begin(), turn.ids.end());
    }
  }
  for (int i = 0; i < kSessions; ++i) EXPECT_EQ(robin[i], alone[i]) << i;
  const v1::GetServerStatusResponse status = server.Status();
  EXPECT_EQ(status.slots_total(), kSlots);
  EXPECT_EQ(status.sessions_idle(), kSessions);
  EXPECT_GT(status.image_bytes(), 0);
}

}  // namespace
}  // namespace txl::testing
