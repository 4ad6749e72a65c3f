#include <gtest/gtest.h>
#include <sys/resource.h>

#include "server/memory_budgets.h"

namespace txl {
namespace {

TEST(RaiseOpenFilesTest, MakesTheHardLimitTheSoftOne) {
  rlimit first = {};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &first), 0);
  rlimit low = first;
  low.rlim_cur = 64;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
  const OpenFiles files = RaiseOpenFiles();
  rlimit raised = {};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &raised), 0);
  EXPECT_EQ(files.before, 64);
  EXPECT_EQ(raised.rlim_cur, first.rlim_max);
  if (first.rlim_max != RLIM_INFINITY) {
    EXPECT_EQ(files.now, static_cast<int64_t>(first.rlim_max));
  }
  EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &first), 0);
}

}  // namespace
}  // namespace txl
