#include "model/cpu/attention_form.h"

#include <gtest/gtest.h>

namespace txl {
namespace {

AttentionShape Shape(int64_t heads, int64_t head_width, NumberFormat rows) {
  return {1600, heads, head_width, heads * head_width, rows, rows};
}

// M = 1600, H = 16, D = 64, float32: 2 * 1600 * 1024 * 4 bytes projected, with
// 4 * 1600 * 1024 operations far below; absorbed half the bytes, but 16 times
// the operations, 4 * 1600 * 16 * 1024 / 7.
TEST(AttentionCost, IsTheLargerOfBytesAndOperations) {
  const AttentionShape shape = Shape(16, 64, NumberFormat::kF32);
  EXPECT_DOUBLE_EQ(AttentionCost(shape, AttentionForm::kProjected), 13107200);
  EXPECT_DOUBLE_EQ(AttentionCost(shape, AttentionForm::kAbsorbed),
                   104857600 / 7.0);
}

// Few heads read half of the bytes for little more work: up to H = 14 in
// float32 and 7 in half precision.
TEST(ChooseForm, IsAbsorbedWhereFewHeadsShareARow) {
  EXPECT_EQ(ChooseForm(Shape(13, 64, NumberFormat::kF32)),
            AttentionForm::kAbsorbed);
  EXPECT_EQ(ChooseForm(Shape(14, 64, NumberFormat::kF32)),
            AttentionForm::kProjected);
  EXPECT_EQ(ChooseForm(Shape(6, 64, NumberFormat::kF16)),
            AttentionForm::kAbsorbed);
  EXPECT_EQ(ChooseForm(Shape(7, 64, NumberFormat::kBF16)),
            AttentionForm::kProjected);
}

TEST(ChooseForm, CountsTheBytesOfEachKindOfRow) {
  AttentionShape shape = Shape(8, 64, NumberFormat::kF32);
  EXPECT_EQ(ChooseForm(shape), AttentionForm::kAbsorbed);
  shape.derived = NumberFormat::kF16;  // projected rows as wide as stored ones
  EXPECT_EQ(ChooseForm(shape), AttentionForm::kProjected);
}

// One narrow head: keys and values together are narrower than the row.
TEST(ChooseForm, KeepsKeysAndValuesThatAreNarrowerThanRows) {
  AttentionShape shape;
  shape.mem_len = 100;
  shape.heads = 1;
  shape.head_width = 16;
  shape.model_width = 512;
  EXPECT_EQ(ChooseForm(shape), AttentionForm::kProjected);
}

TEST(ChooseForm, WithoutMemoryIsProjected) {
  AttentionShape shape = Shape(8, 64, NumberFormat::kF32);
  shape.mem_len = 0;
  EXPECT_EQ(ChooseForm(shape), AttentionForm::kProjected);
}

}  // namespace
}  // namespace txl
