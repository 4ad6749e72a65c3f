#include "model/base/status_macros.h"

#include <memory>
#include <utility>

#include "gtest/gtest.h"

namespace txl {
namespace {

absl::Status ReturnIfError(const absl::Status& status, bool& reached) {
  TXL_RETURN_IF_ERROR(status);
  reached = true;
  return absl::OkStatus();
}

absl::StatusOr<int> Sum(absl::StatusOr<int> a, absl::StatusOr<int> b) {
  TXL_ASSIGN_OR_RETURN(const int x, std::move(a));
  TXL_ASSIGN_OR_RETURN(const int y, std::move(b));
  return x + y;
}

absl::StatusOr<std::unique_ptr<int>> Pass(
    absl::StatusOr<std::unique_ptr<int>> value) {
  TXL_ASSIGN_OR_RETURN(std::unique_ptr<int> kept, std::move(value));
  return kept;
}

absl::Status CountEvaluations(int& count) {
  const auto once = [&] {
    ++count;
    return absl::OkStatus();
  };
  TXL_RETURN_IF_ERROR(once());
  return absl::OkStatus();
}

TEST(StatusMacros, AnOkStatusLetsTheFunctionGoOn) {
  bool reached = false;
  EXPECT_TRUE(ReturnIfError(absl::OkStatus(), reached).ok());
  EXPECT_TRUE(reached);
}

TEST(StatusMacros, AnErrorLeavesTheFunctionUnchanged) {
  bool reached = false;
  const absl::Status status =
      ReturnIfError(absl::NotFoundError("no such thing"), reached);
  EXPECT_EQ(status, absl::NotFoundError("no such thing"));
  EXPECT_FALSE(reached);
}

TEST(StatusMacros, AssignGivesTheValue) {
  const absl::StatusOr<int> sum = Sum(2, 3);
  ASSERT_TRUE(sum.ok());
  EXPECT_EQ(*sum, 5);
}

TEST(StatusMacros, AssignReturnsTheFirstError) {
  EXPECT_EQ(Sum(absl::DataLossError("a"), absl::AbortedError("b")).status(),
            absl::DataLossError("a"));
  EXPECT_EQ(Sum(2, absl::AbortedError("b")).status(), absl::AbortedError("b"));
}

TEST(StatusMacros, AssignMovesWhatCannotBeCopied) {
  const absl::StatusOr<std::unique_ptr<int>> seven =
      Pass(std::make_unique<int>(7));
  ASSERT_TRUE(seven.ok());
  EXPECT_EQ(**seven, 7);
}

TEST(StatusMacros, TheExpressionIsEvaluatedOnce) {
  int count = 0;
  EXPECT_TRUE(CountEvaluations(count).ok());
  EXPECT_EQ(count, 1);
}

}  // namespace
}  // namespace txl
