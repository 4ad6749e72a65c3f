#pragma once

// What each family's file offers to the table in choose_family.cc; the
// contracts are those of Family::matches and Family::plan.

#include "model/convert/family/family.h"

namespace txl {

bool MatchesKimiyoung(const NativeCheckpoint& checkpoint);
absl::StatusOr<ConversionPlan> PlanKimiyoung(const PlanInput& input);

bool MatchesHuggingFace(const NativeCheckpoint& checkpoint);
absl::StatusOr<ConversionPlan> PlanHuggingFace(const PlanInput& input);

bool MatchesNvidia(const NativeCheckpoint& checkpoint);
absl::StatusOr<ConversionPlan> PlanNvidia(const PlanInput& input);

bool MatchesPtbArticle(const NativeCheckpoint& checkpoint);
absl::StatusOr<ConversionPlan> PlanPtbArticle(const PlanInput& input);

bool MatchesCompoundWord(const NativeCheckpoint& checkpoint);
absl::StatusOr<ConversionPlan> PlanCompoundWord(const PlanInput& input);

bool MatchesSorter(const NativeCheckpoint& checkpoint);
absl::StatusOr<ConversionPlan> PlanSorter(const PlanInput& input);

bool MatchesLabml(const NativeCheckpoint& checkpoint);
absl::StatusOr<ConversionPlan> PlanLabml(const PlanInput& input);

bool MatchesMegatron(const NativeCheckpoint& checkpoint);
absl::StatusOr<ConversionPlan> PlanMegatron(const PlanInput& input);

bool MatchesFastai(const NativeCheckpoint& checkpoint);
absl::StatusOr<ConversionPlan> PlanFastai(const PlanInput& input);

bool MatchesTensorFlow(const NativeCheckpoint& checkpoint);
absl::StatusOr<ConversionPlan> PlanTensorFlow(const PlanInput& input);

bool MatchesRemi(const NativeCheckpoint& checkpoint);
absl::StatusOr<ConversionPlan> PlanRemi(const PlanInput& input);

}  // namespace txl
