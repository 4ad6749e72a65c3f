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

constexpr int64_t kInputRows = 48;

// Number r of a column of a buffer.
int32_t Number(InputColumn column, int buffer, int32_t r) {
  return 1000 * static_cast<int32_t>(column) + 100 * buffer + r;
}
int64_t Position(int buffer, int32_t r) {
  return (int64_t{1} << 33) + 100 * buffer + r;
}

void Fill(StepInput& input, int columns, int buffer) {
  for (int32_t r = 0; r < kInputRows; ++r) {
    input.positions(buffer)[r] = Position(buffer, r);
    for (int c = 0; c < columns; ++c) {
      const auto column = static_cast<InputColumn>(c);
      input.column(column, buffer)[r] = Number(column, buffer, r);
    }
  }
}

TEST(StepInputTest, EveryArrayOfABufferArrivesAsOneCopy) {
  for (const int columns : {kPlainColumns, kSamplingColumns}) {
    StepInput input(kInputRows, columns, 2);
    for (const int buffer : {0, 1}) Fill(input, columns, buffer);
    for (const int buffer : {1, 0}) {
      Stream stream;
      input.QueueCopy(buffer, /*with_named=*/true, stream);
      stream.Wait();
      const StepRows rows = input.Rows(5);
      EXPECT_EQ(rows.count, 5);
      EXPECT_EQ(rows.slot, input.device_column(InputColumn::kSlot));
      for (int32_t r = 0; r < kInputRows; ++r) {
        EXPECT_EQ(Fetch(rows.position, kInputRows)[r], Position(buffer, r));
        for (int c = 0; c < columns; ++c) {
          const auto column = static_cast<InputColumn>(c);
          EXPECT_EQ(Fetch(input.device_column(column), kInputRows)[r],
                    Number(column, buffer, r));
        }
      }
    }
  }
}

TEST(StepInputTest, NamedIdsTravelWhenTheyAreWanted) {
  StepInput input(kInputRows, kSamplingColumns, 1);
  Stream stream;
  Fill(input, kSamplingColumns, 0);
  input.QueueCopy(0, /*with_named=*/true, stream);
  stream.Wait();
  const auto number = [&](InputColumn column) {
    return Fetch(input.device_column(column), kInputRows)[3];
  };
  input.column(InputColumn::kTopCount, 0)[3] = 7;
  input.column(InputColumn::kNamed, 0)[3] = 7;
  input.QueueCopy(0, /*with_named=*/false, stream);
  stream.Wait();
  EXPECT_EQ(number(InputColumn::kTopCount), 7);
  EXPECT_EQ(number(InputColumn::kNamed), Number(InputColumn::kNamed, 0, 3));
}

}  // namespace
}  // namespace txl::cuda
