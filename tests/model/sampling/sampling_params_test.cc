#include "model/sampling/sampling_params.h"

#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace txl {
namespace {

using ::testing::ElementsAre;
using ::testing::StartsWith;

constexpr int64_t kVocabSize = 1000;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

// The numbers next to 0 and 1.
const double kAboveZero = std::nextafter(0.0, 1.0);
const double kAboveOne = std::nextafter(1.0, 2.0);

struct RealField {
  std::string name;
  double SamplingParams::*field;
  std::vector<double> accepted;
  std::vector<double> refused;
};

std::vector<RealField> RealFields() {
  return {
      {"temperature",
       &SamplingParams::temperature,
       {0, kAboveZero, 1, 100},
       {-kAboveZero, -1, std::nextafter(100.0, 101.0)}},
      {"top_p",
       &SamplingParams::top_p,
       {kAboveZero, 0.5, 1},
       {0, -0.1, kAboveOne}},
      {"min_p", &SamplingParams::min_p, {0, 0.5, 1}, {-0.1, kAboveOne}},
      {"typical_p",
       &SamplingParams::typical_p,
       {kAboveZero, 0.5, 1},
       {0, -0.1, kAboveOne}},
      {"repetition_penalty",
       &SamplingParams::repetition_penalty,
       {kAboveZero, 1, 10},
       {0, -1, std::nextafter(10.0, 11.0)}},
      {"presence_penalty",
       &SamplingParams::presence_penalty,
       {-2, 0, 2},
       {-2.01, 2.01}},
      {"frequency_penalty",
       &SamplingParams::frequency_penalty,
       {-2, 0, 2},
       {-2.01, 2.01}},
  };
}

void ExpectRefused(const SamplingParams& params, const std::string& field) {
  const absl::Status status = ValidateSamplingParams(params, kVocabSize);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << field;
  EXPECT_THAT(std::string(status.message()), StartsWith(field + ": "));
}

TEST(ValidateSamplingParams, AcceptsTheDefaults) {
  EXPECT_TRUE(ValidateSamplingParams(SamplingParams(), kVocabSize).ok());
  EXPECT_TRUE(ValidateSamplingParams(SamplingParams(), 1).ok());
}

TEST(ValidateSamplingParams, AcceptsRealFieldsUpToTheirBorders) {
  for (const RealField& field : RealFields()) {
    for (const double value : field.accepted) {
      SamplingParams params;
      params.*field.field = value;
      EXPECT_TRUE(ValidateSamplingParams(params, kVocabSize).ok())
          << field.name << " " << value;
    }
  }
}

TEST(ValidateSamplingParams, RefusesRealFieldsOutsideNamingTheField) {
  for (RealField& field : RealFields()) {
    for (const double value : {kNan, -kNan, kInf, -kInf}) {
      field.refused.push_back(value);
    }
    for (const double value : field.refused) {
      SamplingParams params;
      params.*field.field = value;
      SCOPED_TRACE(absl::StrCat(field.name, " ", value));
      ExpectRefused(params, field.name);
    }
  }
}

TEST(ValidateSamplingParams, TopKIsAtMostTheVocabulary) {
  SamplingParams params;
  for (const int64_t value : {int64_t{0}, int64_t{1}, kVocabSize}) {
    params.top_k = value;
    EXPECT_TRUE(ValidateSamplingParams(params, kVocabSize).ok()) << value;
  }
  for (const int64_t value :
       {int64_t{-1}, kVocabSize + 1, std::numeric_limits<int64_t>::max(),
        std::numeric_limits<int64_t>::min()}) {
    params.top_k = value;
    ExpectRefused(params, "top_k");
  }
}

TEST(ValidateSamplingParams, PenaltyWindowIsAtMost4096) {
  SamplingParams params;
  for (const int32_t value : {0, 1, 4096}) {
    params.penalty_window = value;
    EXPECT_TRUE(ValidateSamplingParams(params, kVocabSize).ok()) << value;
  }
  for (const int32_t value : {-1, 4097}) {
    params.penalty_window = value;
    ExpectRefused(params, "penalty_window");
  }
}

TEST(ValidateSamplingParams, MinTokensIsNotNegative) {
  SamplingParams params;
  params.min_tokens = 4096;
  EXPECT_TRUE(ValidateSamplingParams(params, kVocabSize).ok());
  params.min_tokens = -1;
  ExpectRefused(params, "min_tokens");
}

TEST(ValidateSamplingParams, LogitBiasIdsAreInTheVocabulary) {
  SamplingParams params;
  params.logit_bias = {{0, 1.0}, {kVocabSize - 1, -1.0}};
  EXPECT_TRUE(ValidateSamplingParams(params, kVocabSize).ok());
  for (const int32_t id : {-1, static_cast<int32_t>(kVocabSize)}) {
    params.logit_bias = {{id, 1.0}};
    ExpectRefused(params, "logit_bias");
  }
}

TEST(ValidateSamplingParams, LogitBiasIsAtMost100EitherWay) {
  SamplingParams params;
  params.logit_bias = {{1, 100}, {2, -100}, {3, 0}};
  EXPECT_TRUE(ValidateSamplingParams(params, kVocabSize).ok());
  for (const double bias : {100.1, -100.1, kNan, kInf, -kInf}) {
    params.logit_bias = {{1, bias}};
    ExpectRefused(params, "logit_bias");
  }
}

TEST(ValidateSamplingParams, LogitBiasHasAtMost1024Entries) {
  SamplingParams params;
  for (int32_t id = 0; id < 1024; ++id) params.logit_bias[id] = 1;
  EXPECT_TRUE(ValidateSamplingParams(params, 2000).ok());
  params.logit_bias[1024] = 1;
  const absl::Status status = ValidateSamplingParams(params, 2000);
  EXPECT_THAT(std::string(status.message()), StartsWith("logit_bias: "));
}

TEST(ValidateSamplingParams, AllowedIdsAreInTheVocabularyAtMost1024) {
  SamplingParams params;
  params.allowed_token_ids = {0, kVocabSize - 1};
  EXPECT_TRUE(ValidateSamplingParams(params, kVocabSize).ok());
  for (const int32_t id : {int32_t{-1}, static_cast<int32_t>(kVocabSize)}) {
    params.allowed_token_ids = {0, id};
    ExpectRefused(params, "allowed_token_ids");
  }
  params.allowed_token_ids = std::vector<int32_t>(1024, 5);
  EXPECT_TRUE(ValidateSamplingParams(params, kVocabSize).ok());
  params.allowed_token_ids.push_back(5);
  ExpectRefused(params, "allowed_token_ids");
}

TEST(ValidateSamplingParams, KindsAreFollowedWhereTheModelHasThem) {
  SamplingParams params;
  EXPECT_TRUE(ValidateSamplingParams(params, kVocabSize, false).ok());
  params.follow_kinds = true;
  EXPECT_TRUE(ValidateSamplingParams(params, kVocabSize, true).ok());
  const absl::Status status =
      ValidateSamplingParams(params, kVocabSize, /*has_kinds=*/false);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), StartsWith("follow_kinds: "));
}

TEST(ApplyOverrides, KindsAreFollowedAsTheLastOneSays) {
  SamplingParams base;
  SamplingOverrides overrides;
  EXPECT_FALSE(ApplyOverrides(base, overrides).follow_kinds);
  overrides.follow_kinds = true;
  base = ApplyOverrides(base, overrides);
  EXPECT_TRUE(base.follow_kinds);
  EXPECT_TRUE(ApplyOverrides(base, SamplingOverrides()).follow_kinds);
  overrides.follow_kinds = false;
  EXPECT_FALSE(ApplyOverrides(base, overrides).follow_kinds);
}

TEST(ApplyOverrides, AllowedIdsThatAreGivenReplaceTheBase) {
  SamplingParams base;
  base.allowed_token_ids = {1, 2};
  SamplingOverrides overrides;
  EXPECT_THAT(ApplyOverrides(base, overrides).allowed_token_ids,
              ElementsAre(1, 2));
  overrides.allowed_token_ids = {3};
  EXPECT_THAT(ApplyOverrides(base, overrides).allowed_token_ids,
              ElementsAre(3));
}

TEST(ApplyOverrides, LeavesTheBaseWhereNothingIsSaid) {
  SamplingParams base;
  base.temperature = 0.5;
  base.top_k = 40;
  base.logit_bias = {{1, 2.0}};
  base.seed = 7;
  const SamplingParams result = ApplyOverrides(base, SamplingOverrides());
  EXPECT_EQ(result.temperature, 0.5);
  EXPECT_EQ(result.top_k, 40);
  EXPECT_EQ(result.top_p, 1.0);
  EXPECT_EQ(result.logit_bias, base.logit_bias);
  EXPECT_EQ(result.seed, 7u);
}

TEST(ApplyOverrides, PutsEveryPresentFieldInPlace) {
  SamplingOverrides overrides;
  overrides.temperature = 0.7;
  overrides.top_k = 5;
  overrides.top_p = 0.9;
  overrides.min_p = 0.1;
  overrides.typical_p = 0.8;
  overrides.repetition_penalty = 1.2;
  overrides.presence_penalty = 0.3;
  overrides.frequency_penalty = 0.4;
  overrides.penalty_window = 10;
  overrides.logit_bias = {{3, 1.0}};
  overrides.seed = 9;
  overrides.min_tokens = 2;
  SamplingParams base;
  base.logit_bias = {{1, 2.0}};
  const SamplingParams result = ApplyOverrides(base, overrides);
  EXPECT_EQ(result.temperature, 0.7);
  EXPECT_EQ(result.top_k, 5);
  EXPECT_EQ(result.top_p, 0.9);
  EXPECT_EQ(result.min_p, 0.1);
  EXPECT_EQ(result.typical_p, 0.8);
  EXPECT_EQ(result.repetition_penalty, 1.2);
  EXPECT_EQ(result.presence_penalty, 0.3);
  EXPECT_EQ(result.frequency_penalty, 0.4);
  EXPECT_EQ(result.penalty_window, 10);
  EXPECT_EQ(result.logit_bias, overrides.logit_bias);
  EXPECT_EQ(result.seed, 9u);
  EXPECT_EQ(result.min_tokens, 2);
}

TEST(ApplyOverrides, APresentZeroIsZero) {
  SamplingParams base;
  base.top_k = 40;
  SamplingOverrides overrides;
  overrides.temperature = 0;
  overrides.top_k = 0;
  const SamplingParams result = ApplyOverrides(base, overrides);
  EXPECT_EQ(result.temperature, 0);
  EXPECT_EQ(result.top_k, 0);
}

}  // namespace
}  // namespace txl
