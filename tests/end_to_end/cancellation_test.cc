// However a client leaves, sessions are at a token border and nothing leaks.

#include <gtest/gtest.h>

#include "tests/end_to_end/server_process.h"
#include "tests/end_to_end/turns.h"

namespace txl::testing {
namespace {

constexpr int kCancellations = 200;
constexpr int kCancelled = 4;

std::vector<uint32_t> IdsOf(const v1::GetSessionResponse& session) {
  return {session.token_ids().begin(), session.token_ids().end()};
}

// The session holds what it held, or that, the prompt and at least every token
// that the client has seen.
void ExpectTokenBorder(const std::vector<uint32_t>& before,
                       const std::vector<uint32_t>& after,
                       const std::vector<uint32_t>& prompt,
                       const TurnOutput& turn) {
  if (after == before) {
    EXPECT_TRUE(turn.ids.empty()) << "tokens were seen that are not kept";
    return;
  }
  std::vector<uint32_t> seen = before;
  seen.insert(seen.end(), prompt.begin(), prompt.end());
  const size_t fed = seen.size();
  seen.insert(seen.end(), turn.ids.begin(), turn.ids.end());
  ASSERT_GT(after.size(), fed) << "a prompt is kept only with a token";
  ASSERT_GE(after.size(), seen.size());
  EXPECT_TRUE(std::equal(seen.begin(), seen.end(), after.begin()));
}

// Phase of the i-th cancellation: before the call, while the prompt (short or
// long) is fed, after Started, after some tokens.
TurnOutput CancelledTurn(Client& client, int i,
                         const v1::GenerateRequest& request) {
  Canceller canceller;
  const int64_t at = i % 5 < 2 ? 0 : i % 17;
  if (i % 10 == 0) canceller.Cancel();
  CallOptions options{.canceller = &canceller};
  // A deadline ends a turn like a cancellation, from the other side.
  if (i % 10 == 5) options.timeout = absl::Microseconds(200 * (i % 40));
  return RunTurn(client, request, options, [&](int64_t tokens) {
    if (tokens >= at) canceller.Cancel();
  });
}

TEST(Cancellation, InAnyPhaseLeavesSessionsAtATokenBorder) {
  ServerProcess server(GoldenModel("kimi-char"), {"--slots", "3"});
  Client& client = server.client();
  std::vector<std::vector<uint32_t>> held(kCancelled);
  for (int s = 0; s < kCancelled; ++s) {
    CreateSession(client, "s-" + std::to_string(s));
  }
  const v1::GetServerStatusResponse before = server.Status();
  for (int i = 0; i < kCancellations; ++i) {
    const int s = i % kCancelled;
    const std::string session = "s-" + std::to_string(s);
    const std::vector<uint32_t> prompt =
        RandomIds(i, i % 3 == 0 ? 300 : 3, kVocabulary);
    const TurnOutput turn =
        CancelledTurn(client, i, Greedy(session, prompt, 4096));
    EXPECT_TRUE(turn.status.code() == absl::StatusCode::kCancelled ||
                turn.status.code() == absl::StatusCode::kDeadlineExceeded)
        << turn.status;
    const std::vector<uint32_t> after = IdsOf(IdleSession(client, session));
    ExpectTokenBorder(held[s], after, prompt, turn);
    held[s] = after;
  }

  ASSERT_TRUE(WaitUntil([&] { return server.Status().turns_active() == 0; }));
  const v1::GetServerStatusResponse status = server.Status();
  EXPECT_LE(status.turns_started() - before.turns_started(), kCancellations);
  EXPECT_EQ(status.turns_finished().at("OK"), before.turns_finished().at("OK"));
  EXPECT_EQ(status.sessions_idle(), kCancelled);
  EXPECT_EQ(status.queued_calls(), 0);

  // Each session goes on like a fresh one that was fed its tokens.
  for (int s = 0; s < kCancelled; ++s) {
    CreateSession(client, "fresh-" + std::to_string(s));
    for (size_t i = 0; i < held[s].size(); i += 8192) {
      const auto fed = Append(client, "fresh-" + std::to_string(s),
                              absl::MakeSpan(held[s]).subspan(i, 8192));
      ASSERT_TRUE(fed.ok()) << fed.status();
    }
    v1::GenerateRequest request = Greedy("fresh-" + std::to_string(s), {}, 20);
    request.mutable_sampling()->set_temperature(1);
    request.mutable_sampling()->set_seed(s);
    const TurnOutput fresh = RunTurn(client, request);
    request.set_session_id("s-" + std::to_string(s));
    const TurnOutput old = RunTurn(client, request);
    EXPECT_TRUE(old.status.ok()) << old.status;
    EXPECT_EQ(old.ids, fresh.ids);
  }
}

}  // namespace
}  // namespace txl::testing
