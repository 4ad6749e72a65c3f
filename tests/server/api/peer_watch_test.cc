#include "server/api/peer_watch.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/time/time.h"

namespace txl {
namespace {

const std::string kPeer = "ipv4:127.0.0.1:4711";
const std::string kOther = "ipv4:127.0.0.1:4712";

TEST(PeerWatch, SaysOnceThatAConnectionHasFarMoreThanItsStreams) {
  PeerWatch watch(/*streams=*/3);
  for (int i = 0; i < 3 + kSurplusCalls; ++i) {
    ASSERT_FALSE(watch.Opened(kPeer)) << i;
  }
  EXPECT_TRUE(watch.Opened(kPeer));
  EXPECT_FALSE(watch.Opened(kPeer));
  EXPECT_FALSE(watch.Opened(kOther));
}

TEST(PeerWatch, ForgetsCallsThatHaveEnded) {
  PeerWatch watch(/*streams=*/1);
  for (int i = 0; i < 3 * kSurplusCalls; ++i) {
    ASSERT_FALSE(watch.Opened(kPeer)) << i;
    watch.Closed(kPeer);
  }
}

TEST(PeerWatch, SaysOnceThatAConnectionResetsByTheHundred) {
  PeerWatch watch(100);
  const absl::Duration now = absl::Seconds(7);
  for (int i = 1; i < kMostResets; ++i) {
    ASSERT_FALSE(watch.Reset(kPeer, now)) << i;
    ASSERT_FALSE(watch.Reset(kOther, now)) << i;
  }
  EXPECT_TRUE(watch.Reset(kPeer, now));
  EXPECT_FALSE(watch.Reset(kPeer, now));
}

TEST(PeerWatch, CountsResetsOfASecond) {
  PeerWatch watch(100);
  for (int second = 1; second < 5; ++second) {
    for (int i = 1; i < kMostResets; ++i) {
      ASSERT_FALSE(watch.Reset(kPeer, absl::Seconds(second))) << i;
    }
  }
}

TEST(PeerWatch, LeavesUnixSocketsAlone) {
  PeerWatch watch(/*streams=*/1);
  for (int i = 0; i < 3 * kSurplusCalls; ++i) {
    ASSERT_FALSE(watch.Opened("unix:")) << i;
  }
  watch.Closed("unix:");
  for (int i = 0; i < 2 * kMostResets; ++i) {
    EXPECT_FALSE(watch.Reset("unix:", absl::Seconds(1)));
  }
}

}  // namespace
}  // namespace txl
