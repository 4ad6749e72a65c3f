// Booking steps and tokens takes no memory: it happens for each of them.

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <string>

#include "server/scheduler/step_ledger.h"

namespace {

std::atomic<int64_t> g_allocations{0};

}  // namespace

// Not inlined: the compiler would warn of new and free that do not fit.
[[gnu::noinline]] void* operator new(size_t bytes) {
  g_allocations.fetch_add(1);
  if (void* memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept {
  std::free(memory);
}

namespace txl {
namespace {

TEST(StepLedgerAllocation, BookingAStepAndItsTokensTakesNoMemory) {
  Metrics metrics;
  StepLedger ledger(&metrics);
  RowCounts row;
  row.Add(RowKind::kDecode);
  const absl::Time now = absl::UnixEpoch();
  StepResult result;
  result.device_seconds = 0.001;
  // As many clusters as any published model has.
  result.softmax_tails = {{1, 2}, {3, 0}, {0, 3}};
  const int64_t before = g_allocations.load();
  for (int i = 0; i < 100; ++i) {
    ledger.Step({.decode = true, .streams = true, .turns = 3, .tokens = 3},
                &result, now);
    ledger.KeptToken(row, {.first = i == 0, .seconds = 0.01});
    ledger.KeptInput(row, 1, 0);
    ledger.Discarded(row, 1);
  }
  EXPECT_EQ(g_allocations.load(), before);
  EXPECT_EQ(metrics.Get().tokens_delivered, 100);
  EXPECT_EQ(metrics.Get().softmax_tails[2].skipped, 300);
}

TEST(StepLedgerAllocation, AChangeOfAnySizeTakesNoMemory) {
  Metrics metrics;
  int64_t a = 1;
  int64_t b = 2;
  int64_t c = 3;
  const int64_t before = g_allocations.load();
  // More than a std::function keeps in itself.
  metrics.Update([a, b, c, &before](Snapshot& s) {
    s.steps += a + b + c + (before < 0 ? 1 : 0);
  });
  EXPECT_EQ(g_allocations.load(), before);
  EXPECT_EQ(metrics.Get().steps, 6);
}

TEST(CountAllocations, CountsWhatIsAllocated) {
  const int64_t before = g_allocations.load();
  const std::string text(100, 'x');
  EXPECT_EQ(g_allocations.load(), before + 1) << text;
}

}  // namespace
}  // namespace txl
