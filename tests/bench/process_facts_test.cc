#include "tests/bench/process_facts.h"

#include <gtest/gtest.h>

namespace txl {
namespace {

TEST(ProcessorSecondsTest, GoOnWhileTheProcessWorks) {
  const double before = ProcessorSeconds();
  // Ends as soon as the clock has moved.
  while (ProcessorSeconds() == before) {
  }
  EXPECT_GT(ProcessorSeconds(), before);
}

}  // namespace
}  // namespace txl
