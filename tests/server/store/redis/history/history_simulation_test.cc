// The functions in Redis under random histories: their text as it is, and with
// fences taken out.

#include "tests/server/store/redis/history/history_simulation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/store/redis/function_library.h"

namespace txl::history {
namespace {

using ::testing::HasSubstr;

constexpr char kEpoch[] = "epoch";
constexpr char kNonce[] = "nonce";
constexpr char kPosition[] = "position and chain";

HistoriesResult RunWithout(const Words& fences, int64_t seeds) {
  const absl::StatusOr<std::string> text =
      WithoutFences(RedisFunctionLibrary(), fences);
  EXPECT_TRUE(text.ok()) << text.status();
  const auto library = LuaLibrary::Load(*text);
  EXPECT_TRUE(library.ok()) << library.status();
  return RunHistories(**library, 1, seeds);
}

TEST(RedisHistories, OfTheLibraryAreLinearizable) {
  const HistoriesResult result = RunWithout({}, 2000);
  EXPECT_EQ(result.violation, "");
  EXPECT_EQ(result.run, 2000);
  // Everything that can happen does, and often.
  for (int i = 0; i < kEvents; ++i) EXPECT_GT(result.happened[i], 100) << i;
}

TEST(RedisHistories, WithoutAnyFenceAreNot) {
  EXPECT_THAT(RunWithout({kEpoch, kNonce, kPosition}, 10'000).violation,
              HasSubstr("append"));
}

TEST(RedisHistories, WithTheEpochAloneAreNot) {
  EXPECT_THAT(RunWithout({kNonce, kPosition}, 10'000).violation,
              HasSubstr("append"));
}

TEST(RedisHistories, WithoutPositionAndChainAreNot) {
  EXPECT_THAT(RunWithout({kPosition}, 10'000).violation, HasSubstr("append"));
}

// Each change of ids needs its own fence.
TEST(RedisHistories, WithOneChangeThatHasNoFenceAreNot) {
  for (const char* function : {"append", "finish", "rewind"}) {
    std::string text = RedisFunctionLibrary();
    const std::string head = std::string("local function ") + function + "(";
    const size_t call = text.find("fence(key, args)", text.find(head));
    ASSERT_NE(call, text.npos) << function;
    text.replace(call, 16, "nil");
    const auto library = LuaLibrary::Load(text);
    ASSERT_TRUE(library.ok()) << library.status();
    EXPECT_THAT(RunHistories(**library, 1, 10'000).violation,
                HasSubstr("append"))
        << function;
  }
}

TEST(RedisHistories, AreTheSameForASeed) {
  const auto library = LuaLibrary::Load(RedisFunctionLibrary());
  ASSERT_TRUE(library.ok());
  const HistoryResult one = RunHistory(**library, 7, /*tracing=*/true);
  EXPECT_FALSE(one.trace.empty());
  EXPECT_EQ(one.trace, RunHistory(**library, 7, /*tracing=*/true).trace);
  EXPECT_NE(one.trace, RunHistory(**library, 8, /*tracing=*/true).trace);
}

TEST(WithoutFences, NeedsTheFence) {
  EXPECT_FALSE(WithoutFences(RedisFunctionLibrary(), {"moat"}).ok());
}

TEST(LuaLibrary, SaysWhatIsWrong) {
  EXPECT_FALSE(LuaLibrary::Load("this is not Lua").ok());
  const auto library = LuaLibrary::Load(
      "#!lua name=x\n"
      "redis.register_function('f', function(keys, args)\n"
      "  return redis.call('KEYS', args[1]) end)");
  ASSERT_TRUE(library.ok()) << library.status();
  RedisMap store;
  const auto answer = (*library)->Call(&store, "f", "k", {"*"});
  EXPECT_THAT(std::string(answer.status().message()), HasSubstr("KEYS"));
  EXPECT_FALSE((*library)->Call(&store, "g", "k", {}).ok());
}

}  // namespace
}  // namespace txl::history
