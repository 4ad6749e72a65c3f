#include "client/fleet/image_link.h"

#include <gtest/gtest.h>

namespace txl::fleet {
namespace {

TEST(ImageLink, MovesOneImageAfterTheOther) {
  ImageLink link(100);
  EXPECT_DOUBLE_EQ(link.Transfer(50, 10), 10.5);
  // Asked for at once, it waits for the first.
  EXPECT_DOUBLE_EQ(link.Transfer(200, 10), 12.5);
  // Nothing is on its way any more.
  EXPECT_DOUBLE_EQ(link.Transfer(100, 20), 21);
  EXPECT_DOUBLE_EQ(link.busy_seconds(), 3.5);
}

TEST(ImageLink, MovesNothingInNoTime) {
  ImageLink link(100);
  EXPECT_DOUBLE_EQ(link.Transfer(0, 3), 3);
  EXPECT_DOUBLE_EQ(link.busy_seconds(), 0);
}

}  // namespace
}  // namespace txl::fleet
