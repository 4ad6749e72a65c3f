// When two names are one tensor.

#include "model/convert/family/tied.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>

#include "tests/model/convert/family/kpt_tensors.h"

namespace txl {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(SameElementsTest, ComparesBitsAndNotStorages) {
  const StoredTensor a = CountingTensor({3, 2});
  EXPECT_TRUE(*SameElements(a, CopyOf(a)));
  EXPECT_TRUE(*SameElements(a, Transposed(CopyOf(Transposed(a)))));
  EXPECT_FALSE(*SameElements(a, CountingTensor({3, 2}, 1)));
  EXPECT_FALSE(*SameElements(a, CountingTensor({2, 3})));
  EXPECT_FALSE(
      *SameElements(FloatTensor({1}, {0.f}), FloatTensor({1}, {-0.f})));
}

TEST(SameElementsTest, ComparesEveryRowOfALargeTensor) {
  // 12 MB: more than one piece of reading.
  const StoredTensor a = CountingTensor({3000, 1000});
  std::vector<float> values = FloatsOf(a);
  EXPECT_TRUE(*SameElements(a, FloatTensor({3000, 1000}, values)));
  values.back() = -1;
  EXPECT_FALSE(*SameElements(a, FloatTensor({3000, 1000}, values)));
}

// A builder over "own" and "other".
class IsTiedTest : public testing::Test {
 protected:
  void Set(std::optional<StoredTensor> own) {
    TensorMap tensors = {{"other", other_}};
    if (own.has_value()) tensors["own"] = *own;
    checkpoint_ = StateDict(std::move(tensors));
    builder_ = std::make_unique<PlanBuilder>(
        "test", PlanInput{checkpoint_, json(), json()}, "");
  }
  bool Tied(std::optional<bool> configured) {
    return IsTied(*builder_, "own", "other", configured);
  }

  const StoredTensor other_ = CountingTensor({2, 2});
  NativeCheckpoint checkpoint_;
  std::unique_ptr<PlanBuilder> builder_;
};

TEST_F(IsTiedTest, OneViewIsTiedWhateverIsConfigured) {
  for (const std::optional<bool> configured :
       {std::optional<bool>(), std::optional<bool>(false),
        std::optional<bool>(true)}) {
    Set(other_);
    EXPECT_TRUE(Tied(configured));
    EXPECT_THAT(builder_->plan.oddities, IsEmpty());
    EXPECT_TRUE(builder_->table.Finish().ok()) << builder_->table.Finish();
  }
}

TEST_F(IsTiedTest, AnAbsentTensorIsTiedUnlessConfiguredApart) {
  Set(std::nullopt);
  EXPECT_TRUE(Tied(true));
  EXPECT_THAT(builder_->plan.oddities, IsEmpty());
  EXPECT_FALSE(Tied(false));
  EXPECT_TRUE(Tied(std::nullopt));
  EXPECT_THAT(builder_->plan.oddities, ElementsAre(HasSubstr("own is absent")));
}

TEST_F(IsTiedTest, ACopyIsTiedOnlyWhenConfigured) {
  Set(CopyOf(other_));
  EXPECT_FALSE(Tied(std::nullopt));
  EXPECT_FALSE(Tied(false));
  EXPECT_THAT(builder_->plan.oddities, IsEmpty());
  EXPECT_TRUE(Tied(true));
  EXPECT_THAT(builder_->plan.oddities, ElementsAre(HasSubstr("is a copy")));
}

TEST_F(IsTiedTest, ADifferentTensorCannotBeConfiguredTied) {
  Set(CountingTensor({2, 2}, 5));
  EXPECT_FALSE(Tied(std::nullopt));
  EXPECT_TRUE(builder_->table.status().ok());
  Tied(true);
  EXPECT_THAT(builder_->table.status().message(),
              HasSubstr("tensors own and other differ"));
}

}  // namespace
}  // namespace txl
