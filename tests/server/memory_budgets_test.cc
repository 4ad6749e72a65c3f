#include "server/memory_budgets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "model/text/ngram_table.h"
#include "server/base/log.h"
#include "tests/server/engine/tiny_config.h"

namespace txl {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kGiB = int64_t{1} << 30;

TEST(DivideMemoryForTest, TakesTheFlagsAndSetsTheEnginesPart) {
  const LogCapture log;
  ServerFlags flags;
  flags.memory_limit = kGiB;
  flags.session_memory = 100 * kMiB;
  flags.replay_memory = 10 * kMiB;
  flags.prefix_cache = 20 * kMiB;
  const auto memory = DivideMemoryFor(TinyConfig(), &flags);
  ASSERT_TRUE(memory.ok()) << memory.status();
  EXPECT_EQ(memory->limit, kGiB);
  EXPECT_EQ(memory->images, 100 * kMiB);
  EXPECT_EQ(memory->records, 10 * kMiB);
  EXPECT_EQ(memory->prefixes, 20 * kMiB);
  EXPECT_EQ(flags.scheduler.prefix_cache_bytes, 20 * kMiB);
  EXPECT_GT(memory->slots, 0);
  EXPECT_EQ(flags.runner.slot_bytes, memory->slots);
  ASSERT_EQ(log.lines().size(), 1u);
  const auto line = nlohmann::json::parse(log.lines()[0]);
  EXPECT_EQ(line["event"], "memory");
  EXPECT_EQ(line["fields"]["limit"], kGiB);
  EXPECT_EQ(line["fields"]["reserve"], memory->reserve);
  EXPECT_EQ(line["fields"]["prefixes"], 20 * kMiB);
}

TEST(DivideMemoryForTest, ThePrefixCacheIsOnUnlessTurnedOff) {
  ServerFlags flags;
  flags.memory_limit = kGiB;
  EXPECT_GT(DivideMemoryFor(TinyConfig(), &flags)->prefixes, 0);
  EXPECT_GT(flags.scheduler.prefix_cache_bytes, 0);
  flags.prefix_cache = 0;
  EXPECT_EQ(DivideMemoryFor(TinyConfig(), &flags)->prefixes, 0);
  EXPECT_EQ(flags.scheduler.prefix_cache_bytes, 0);
}

TEST(DivideMemoryForTest, TheTableOfNgramsIsCounted) {
  ServerFlags flags;
  flags.memory_limit = kGiB;
  flags.model = ::testing::TempDir() + "/counted_table";
  std::filesystem::create_directories(flags.model);
  const std::string path = flags.model + "/" + kNgramsName;
  ASSERT_TRUE(NgramTable(2, 0, 1 << 20).Write(path).ok());
  const auto file = static_cast<int64_t>(std::filesystem::file_size(path));
  EXPECT_GT(file, 8 * kMiB);
  const int64_t weights = DivideMemoryFor(TinyConfig(), &flags)->weights;
  flags.speculate = "auto";
  const LogCapture log;
  EXPECT_EQ(DivideMemoryFor(TinyConfig(), &flags)->weights, weights + file);
  const auto line = nlohmann::json::parse(log.lines().at(0));
  EXPECT_EQ(line["fields"]["guesses"], file);
  std::filesystem::remove(path);
  EXPECT_EQ(DivideMemoryFor(TinyConfig(), &flags)->weights, weights);
}

TEST(DivideMemoryForTest, WithoutALimitTakesWhatTheMachineHas) {
  ServerFlags flags;
  const auto memory = DivideMemoryFor(TinyConfig(), &flags);
  ASSERT_TRUE(memory.ok()) << memory.status();
  EXPECT_GT(memory->limit, 256 * kMiB);
}

TEST(DivideMemoryForTest, ALimitThatIsTooSmallIsAnError) {
  ServerFlags flags;
  flags.memory_limit = 100 * kMiB;
  EXPECT_THAT(DivideMemoryFor(TinyConfig(), &flags).status().message(),
              ::testing::HasSubstr("--memory-limit"));
}

TEST(MemoryBudgetsTest, MethodsAndTheStoreGetTheirParts) {
  MemoryDivision memory;
  memory.limit = kGiB;
  memory.images = 5;
  memory.ids = 4;
  memory.records = 6;
  memory.requests = 7;
  memory.streams = 8;
  SessionStoreOptions sessions;
  SetMemory(memory, &sessions);
  EXPECT_EQ(sessions.image_bytes, 5);
  EXPECT_EQ(sessions.id_bytes, 4);
  EXPECT_EQ(sessions.turn_record_bytes, 6);
  const auto budgets = MakeMemoryBudgets(memory);
  ServiceContext context;
  budgets->SetIn(&context);
  EXPECT_EQ(context.memory.division.limit, kGiB);
  EXPECT_EQ(context.memory.requests->limit(), 7);
  EXPECT_EQ(context.memory.streams->limit(), 8);
  EXPECT_EQ(context.memory.guard->limit(), kGiB);
  EXPECT_EQ(MakeMemoryBudgets(std::nullopt), nullptr);
}

}  // namespace
}  // namespace txl
