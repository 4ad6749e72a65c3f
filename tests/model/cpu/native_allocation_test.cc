// A step of the native engine takes no memory: after the first steps of a
// batch's size, operator new is not called again.

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <string>
#include <vector>

#include "model/base/number_format.h"
#include "model/cpu/attention_form.h"
#include "tests/model/cpu/native_driver.h"

namespace {

std::atomic<int64_t> g_allocations{0};

void* Count(size_t bytes, size_t alignment) {
  g_allocations.fetch_add(1);
  void* memory = nullptr;
  if (posix_memalign(&memory, alignment, bytes) != 0) throw std::bad_alloc();
  return memory;
}

}  // namespace

// Not inlined: the compiler would warn of new and free that do not fit.
[[gnu::noinline]] void* operator new(size_t bytes) {
  return Count(bytes, alignof(max_align_t));
}
[[gnu::noinline]] void* operator new(size_t bytes, std::align_val_t alignment) {
  return Count(bytes, static_cast<size_t>(alignment));
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory,
                                       std::align_val_t) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, size_t,
                                       std::align_val_t) noexcept {
  std::free(memory);
}

namespace txl {
namespace {

constexpr int32_t kSessions = 5;

// One row of each session, all distributions wanted, all clusters looked at.
void RunStep(ModelStep& step, const GoldenCase& golden, int64_t position) {
  static const std::vector<int32_t> wanted = {0};
  StepSegment segments[kSessions];
  for (int32_t slot = 0; slot < kSessions; ++slot) {
    segments[slot] = {slot, position,
                      absl::MakeSpan(golden.tokens).subspan(position, 1),
                      wanted};
  }
  for (NextTokenDistribution* row : step.Run(segments)) {
    for (size_t c = 0; c < row->bins().clusters(); ++c) row->ClusterWords(c);
  }
}

class NativeAllocationTest : public testing::TestWithParam<AttentionForm> {};

TEST_P(NativeAllocationTest, AStepTakesNoMemory) {
  const GoldenCase golden = LoadGoldenCase("kimi-adaptive-div2", at::kFloat);
  for (const int threads : {1, 2, 3}) {
    NativeStepOptions options;
    options.slots = kSessions;
    options.threads = threads;
    options.formats.form = GetParam();
    options.formats.derived = NumberFormat::kF16;
    if (threads > 1) {
      options.formats = {
          threads == 2 ? NumberFormat::kInt8 : NumberFormat::kInt4,
          Products::kInteger, NumberFormat::kInt8, NumberFormat::kInt8,
          GetParam()};
    }
    auto step = MakeNativeStep(golden, options);
    // Ids of every bin have been seen by then.
    for (int64_t t = 0; t < 40; ++t) RunStep(*step, golden, t);
    const int64_t before = g_allocations.load();
    for (int64_t t = 40; t < 60; ++t) RunStep(*step, golden, t);
    EXPECT_EQ(g_allocations.load(), before) << threads << " threads";
  }
}

TEST(CountAllocations, CountsWhatIsAllocated) {
  const int64_t before = g_allocations.load();
  const std::vector<int> numbers(100);
  EXPECT_EQ(g_allocations.load(), before + 1) << numbers.size();
}

INSTANTIATE_TEST_SUITE_P(Forms, NativeAllocationTest,
                         testing::Values(AttentionForm::kProjected,
                                         AttentionForm::kAbsorbed),
                         [](const testing::TestParamInfo<AttentionForm>& info) {
                           return std::string(FormName(info.param));
                         });

}  // namespace
}  // namespace txl
