#include "model/cuda/step/step_input.h"

#include <gtest/gtest.h>

#include <vector>

namespace txl::cuda {
namespace {

template <typename Number>
std::vector<Number> Fetch(const Number* from, int64_t count) {
  std::vector<Number> numbers(count);
  Stream stream;
  stream.Copy(numbers.data(), from, count * sizeof(Number));
  stream.Wait();
  return numbers;
}

TEST(StepInputTest, EveryArrayArrivesAsOneCopy) {
  constexpr int64_t kRows = 48;
  StepInput input(kRows);
  std::vector<int64_t> positions;
  std::vector<int32_t> slots, tokens, wanted;
  for (int32_t r = 0; r < kRows; ++r) {
    positions.push_back((int64_t{1} << 33) + r);
    slots.push_back(r - 1);
    tokens.push_back(1000 + r);
    wanted.push_back(2000 + r);
  }
  std::copy(positions.begin(), positions.end(), input.positions());
  std::copy(slots.begin(), slots.end(), input.slots());
  std::copy(tokens.begin(), tokens.end(), input.tokens());
  std::copy(wanted.begin(), wanted.end(), input.wanted());
  Stream stream;
  input.QueueCopy(stream);
  stream.Wait();
  const StepRows rows = input.Rows(5);
  EXPECT_EQ(rows.count, 5);
  EXPECT_EQ(Fetch(rows.position, kRows), positions);
  EXPECT_EQ(Fetch(rows.slot, kRows), slots);
  EXPECT_EQ(Fetch(input.device_tokens(), kRows), tokens);
  EXPECT_EQ(Fetch(input.device_wanted(), kRows), wanted);
}

}  // namespace
}  // namespace txl::cuda
