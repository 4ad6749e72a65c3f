#include "client/fleet/sessions.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/client/fleet/small_cell.h"

namespace txl::fleet {
namespace {

TurnMix Mix(int64_t sessions) {
  TurnMix mix;
  mix.sessions = sessions;
  mix.session_tokens = Lengths("uniform:10:20");
  return mix;
}

TEST(Sessions, AreTakenByOneConversationEach) {
  const TurnMix mix = Mix(10);
  bench::Random random({1});
  Sessions sessions(&mix, /*shared_images=*/false, &random);
  std::set<uint64_t> taken;
  while (const std::optional<uint64_t> session = sessions.Take()) {
    EXPECT_TRUE(taken.insert(*session).second);
    EXPECT_GE(*session, 1u);
    EXPECT_LE(*session, 10u);
  }
  // The last is found by a hundred draws but once in 37,000 times.
  EXPECT_EQ(taken.size(), 10u);
  sessions.Of(4).in_use = false;
  EXPECT_EQ(sessions.Take(), 4u);
}

TEST(Sessions, ExistWhenTheyAreUsed) {
  const TurnMix mix = Mix(100'000'000);
  bench::Random random({1});
  Sessions sessions(&mix, /*shared_images=*/false, &random);
  for (int i = 0; i < 100; ++i) sessions.Take();
  EXPECT_EQ(sessions.touched(), 100);
}

TEST(Sessions, HaveTokensBeforeTheirFirstUseAndKeepWhatTheyGet) {
  const TurnMix mix = Mix(1);
  bench::Random random({1});
  Sessions sessions(&mix, /*shared_images=*/false, &random);
  Session& session = sessions.Of(*sessions.Take());
  EXPECT_GE(session.tokens, 10);
  EXPECT_LE(session.tokens, 20);
  EXPECT_EQ(session.server, -1);
  EXPECT_EQ(session.image_tokens, -1);
  session.tokens = 500;
  session.in_use = false;
  EXPECT_EQ(sessions.Of(*sessions.Take()).tokens, 500);
}

TEST(Sessions, HaveAnImageOfOldWhereImagesAreShared) {
  const TurnMix mix = Mix(1);
  bench::Random random({1});
  Sessions sessions(&mix, /*shared_images=*/true, &random);
  const Session& session = sessions.Of(*sessions.Take());
  EXPECT_EQ(session.image_tokens, session.tokens);
}

}  // namespace
}  // namespace txl::fleet
