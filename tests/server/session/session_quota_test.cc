#include "server/session/session_quota.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "server/base/error.h"

namespace txl {
namespace {

constexpr int64_t kQuotaSlot = 1'000'000;

// What users are told of a session's bytes (docs/operating.md), once more.
int64_t ToldQuota(int64_t tokens) {
  int64_t bytes = 2048;
  int64_t pieces = 0;
  for (int64_t left = tokens; left > 0; left -= 4096) {
    int64_t room = 16;
    while (room < std::min<int64_t>(left, 4096)) room *= 2;
    bytes += 4 * room + 32;
    ++pieces;
  }
  int64_t places = pieces > 0 ? 1 : 0;
  while (places < pieces) places *= 2;
  return bytes + 16 * places + (tokens >= 2 ? kQuotaSlot : 0);
}

// "sessions: 2 of 2"; "OK".
std::string QuotaRefusal(const absl::Status& status) {
  if (status.ok()) return "OK";
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  const ErrorDetails details = GetErrorDetails(status);
  EXPECT_EQ(details.reason, "QUOTA");
  EXPECT_FALSE(details.retry.has_value()) << "nobody knows when";
  return details.metadata.at("quota") + ": " + details.metadata.at("held") +
         " of " + details.metadata.at("allowed");
}

class SessionQuotaTest : public testing::Test {
 protected:
  SessionLimits limits_;
  SessionQuota quota_{[this](const std::string& tenant) {
                        return tenant == "a" ? limits_ : SessionLimits();
                      },
                      kQuotaSlot};
};

TEST_F(SessionQuotaTest, ASessionTakesWhatItsPositionSays) {
  for (const int64_t tokens : {0, 1, 2, 16, 17, 4096, 4097, 100'000}) {
    EXPECT_EQ(quota_.BytesOf(tokens), ToldQuota(tokens)) << tokens;
  }
  EXPECT_EQ(quota_.BytesOf(0), 2048);
  EXPECT_EQ(quota_.BytesOf(1), 2160);
  EXPECT_EQ(quota_.BytesOf(1000), 6192 + kQuotaSlot);
}

TEST_F(SessionQuotaTest, SoManySessionsAndNoMore) {
  limits_.sessions = 2;
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(QuotaRefusal(quota_.MayAdd("a", 0)), "OK");
    quota_.Add("a", 0);
  }
  EXPECT_EQ(QuotaRefusal(quota_.MayAdd("a", 0)), "sessions: 2 of 2");
  EXPECT_EQ(QuotaRefusal(quota_.MayGrow("a", 0, 1'000'000)), "OK");
  EXPECT_EQ(quota_.uses().at("a").refused, 1);
  quota_.Remove("a", 0);
  EXPECT_EQ(QuotaRefusal(quota_.MayAdd("a", 0)), "OK");
}

TEST_F(SessionQuotaTest, BytesAreThoseOfAllSessionsTogether) {
  quota_.Add("a", 0);
  quota_.Add("a", 100);
  limits_.bytes = ToldQuota(10) + ToldQuota(100);
  EXPECT_EQ(QuotaRefusal(quota_.MayGrow("a", 0, 10)), "OK");
  EXPECT_EQ(QuotaRefusal(quota_.MayGrow("a", 0, 17)),
            "bytes: " + std::to_string(ToldQuota(0) + ToldQuota(100)) + " of " +
                std::to_string(*limits_.bytes));
  quota_.Change("a", 0, 10);
  EXPECT_EQ(quota_.uses().at("a").bytes, *limits_.bytes);
  // Ids come in pieces: 16 take what 10 do.
  EXPECT_EQ(QuotaRefusal(quota_.MayGrow("a", 10, 16)), "OK");
  EXPECT_NE(QuotaRefusal(quota_.MayAdd("a", 0)), "OK");
  quota_.Remove("a", 100);
  EXPECT_EQ(QuotaRefusal(quota_.MayAdd("a", 100)), "OK");
  EXPECT_EQ(quota_.uses().at("a").bytes, ToldQuota(10));
}

TEST_F(SessionQuotaTest, TheTextSaysWhatIsHeldAskedForAndAllowed) {
  limits_.sessions = 3;
  for (int i = 0; i < 3; ++i) quota_.Add("a", 0);
  EXPECT_EQ(quota_.MayAdd("a", 0).message(),
            "over the tenant's quota sessions = 3: its sessions hold 3, and 1 "
            "more were asked for");
}

TEST_F(SessionQuotaTest, ASmallerLimitKeepsWhatIsThereAndRefusesMore) {
  for (int i = 0; i < 5; ++i) quota_.Add("a", 100);
  limits_.sessions = 3;
  limits_.bytes = ToldQuota(100);
  EXPECT_EQ(QuotaRefusal(quota_.MayAdd("a", 0)), "sessions: 5 of 3");
  EXPECT_NE(QuotaRefusal(quota_.MayGrow("a", 100, 1000)), "OK");
  EXPECT_EQ(QuotaRefusal(quota_.MayGrow("a", 100, 100)), "OK");
  EXPECT_EQ(QuotaRefusal(quota_.MayGrow("a", 100, 50)), "OK");
  EXPECT_EQ(quota_.uses().at("a").sessions, 5);
}

TEST_F(SessionQuotaTest, OneTenantsSessionsAreNotAnothers) {
  limits_.sessions = 1;
  quota_.Add("a", 0);
  quota_.Add("b", 7);
  EXPECT_EQ(QuotaRefusal(quota_.MayAdd("b", 1'000'000)), "OK");
  EXPECT_EQ(QuotaRefusal(quota_.MayAdd("a", 0)), "sessions: 1 of 1");
  EXPECT_EQ(quota_.uses().at("b").bytes, ToldQuota(7));
  EXPECT_EQ(quota_.uses().at("b").refused, 0);
}

TEST(SessionQuota, WithoutLimitsNothingIsCounted) {
  SessionQuota quota(nullptr, kQuotaSlot);
  EXPECT_FALSE(quota.counts());
  EXPECT_TRUE(quota.MayAdd("a", 1 << 30).ok());
  quota.Add("a", 5);
  EXPECT_TRUE(quota.uses().empty());
}

}  // namespace
}  // namespace txl
