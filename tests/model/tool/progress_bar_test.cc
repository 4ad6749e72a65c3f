#include "model/tool/progress_bar.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace txl {
namespace {

TEST(ProgressLine, HasBarShareRateTimeLeftAndNote) {
  EXPECT_EQ(ProgressLine({0.25, 1000, 20, "tokens", "1.6 nats"}),
            "[#####---------------]  25%  50 tokens/s  1:00 left  1.6 nats");
  EXPECT_EQ(ProgressLine({1, 500, 10, "tokens", ""}),
            "[####################] 100%  50 tokens/s  0:00 left");
}

TEST(ProgressLine, HasNoRateBeforeAnythingIsDone) {
  EXPECT_EQ(ProgressLine({0, 0, 3, "tokens", ""}),
            "[--------------------]   0%");
}

TEST(ProgressLine, StaysInItsBounds) {
  EXPECT_EQ(ProgressLine({1.5, 10, 10, "tokens", ""}).substr(0, 27),
            "[####################] 100%");
}

// A test's standard error is no terminal: a line each tenth.
TEST(ProgressBar, WritesALineEachTenthWhereThereIsNoTerminal) {
  testing::internal::CaptureStderr();
  {
    ProgressBar bar("tokens");
    for (int i = 0; i <= 100; ++i) bar.Update(i / 100.0, i, "");
  }
  const std::string text = testing::internal::GetCapturedStderr();
  const auto lines = std::count(text.begin(), text.end(), '\n');
  EXPECT_GE(lines, 9);
  EXPECT_LE(lines, 10);
  EXPECT_EQ(text.find('\r'), std::string::npos);
}

}  // namespace
}  // namespace txl
