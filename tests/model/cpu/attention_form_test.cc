#include "model/cpu/attention_form.h"

#include <gtest/gtest.h>

namespace txl {
namespace {

TEST(AttentionForm, NamesAreFoundAgain) {
  for (const NamedForm& named : kForms) {
    EXPECT_STREQ(FormName(named.form), named.name);
    EXPECT_EQ(FindForm(named.name), named.form);
  }
  EXPECT_EQ(FindForm("auto"), std::nullopt);
}

AttentionWork Work(int64_t heads, int64_t head_width, NumberFormat rows) {
  return {18, 1600, heads, head_width, heads * head_width, rows, rows};
}

// M = 1600, H = 16, D = 64, float32: 2 * 1600 * 1024 * 4 bytes projected, with
// 4 * 1600 * 1024 operations far below; absorbed half the bytes, but 16 times
// the operations, 4 * 1600 * 16 * 1024 / 4.
TEST(AttentionCost, IsTheLargerOfBytesAndOperations) {
  const AttentionWork work = Work(16, 64, NumberFormat::kF32);
  EXPECT_DOUBLE_EQ(AttentionCost(work, AttentionForm::kProjected), 13107200);
  EXPECT_DOUBLE_EQ(AttentionCost(work, AttentionForm::kAbsorbed),
                   104857600 / 4.0);
}

// Few heads read half of the bytes for little more work: up to H = 8 in
// float32 and 4 in half precision.
TEST(ChooseForm, IsAbsorbedWhereFewHeadsShareARow) {
  EXPECT_EQ(ChooseForm(Work(7, 64, NumberFormat::kF32)),
            AttentionForm::kAbsorbed);
  EXPECT_EQ(ChooseForm(Work(8, 64, NumberFormat::kF32)),
            AttentionForm::kProjected);
  EXPECT_EQ(ChooseForm(Work(3, 128, NumberFormat::kF16)),
            AttentionForm::kAbsorbed);
  EXPECT_EQ(ChooseForm(Work(4, 128, NumberFormat::kBF16)),
            AttentionForm::kProjected);
}

// Up to H = 3, as 1.9 times as many operations go with one byte.
TEST(ChooseForm, IsAbsorbedWhereThreeHeadsShareAnInt8Row) {
  EXPECT_EQ(ChooseForm(Work(3, 128, NumberFormat::kInt8)),
            AttentionForm::kAbsorbed);
  EXPECT_EQ(ChooseForm(Work(4, 128, NumberFormat::kInt8)),
            AttentionForm::kProjected);
  AttentionWork widened = Work(4, 128, NumberFormat::kInt8);
  widened.derived = NumberFormat::kF16;  // floats: no gain
  EXPECT_EQ(ChooseForm(widened), AttentionForm::kProjected);
}

TEST(ChooseForm, CountsTheBytesOfEachKindOfRow) {
  AttentionWork work = Work(6, 64, NumberFormat::kF32);
  EXPECT_EQ(ChooseForm(work), AttentionForm::kAbsorbed);
  work.derived = NumberFormat::kF16;  // projected rows as wide as stored ones
  EXPECT_EQ(ChooseForm(work), AttentionForm::kProjected);
}

// What caches hold is read so fast that the arithmetic of 4 heads costs more.
TEST(ChooseForm, KeepsKeysAndValuesOfSmallModels) {
  AttentionWork work = {
      5, 255, 4, 64, 256, NumberFormat::kF32, NumberFormat::kF32};
  EXPECT_EQ(ChooseForm(work), AttentionForm::kProjected);
  work.mem_len = 2550;
  EXPECT_EQ(ChooseForm(work), AttentionForm::kAbsorbed);
}

// One narrow head: keys and values together are narrower than the row.
TEST(ChooseForm, KeepsKeysAndValuesThatAreNarrowerThanRows) {
  EXPECT_EQ(ChooseForm({12, 10000, 1, 16, 512, NumberFormat::kF32,
                        NumberFormat::kF32}),
            AttentionForm::kProjected);
}

TEST(ChooseForm, WithoutMemoryIsProjected) {
  AttentionWork work = Work(8, 64, NumberFormat::kF32);
  work.mem_len = 0;
  EXPECT_EQ(ChooseForm(work), AttentionForm::kProjected);
}

}  // namespace
}  // namespace txl
