#include "server/base/digest.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>

#include "absl/strings/escaping.h"
#include "gtest/gtest.h"

namespace txl {
namespace {

std::string Hmac(absl::string_view key, absl::string_view text) {
  RunningDigest digest = RunningDigest::HmacSha256(key);
  digest.Add(text);
  return absl::BytesToHexString(digest.Finish());
}

// FIPS 180-4's examples.
TEST(Digest, Sha256GivesThePublishedValues) {
  EXPECT_EQ(absl::BytesToHexString(Sha256Of("abc")),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(absl::BytesToHexString(Sha256Of("")),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

// RFC 4231, cases 2 and 6.
TEST(Digest, HmacGivesThePublishedValues) {
  EXPECT_EQ(Hmac("Jefe", "what do ya want for nothing?"),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(Hmac(std::string(131, '\xaa'),
                 "Test Using Larger Than Block-Size Key - Hash Key First"),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST(Digest, PiecesGiveWhatTheWholeGives) {
  const std::string text = "the quick brown fox";
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    RunningDigest digest = RunningDigest::Sha256();
    digest.Add(text.substr(0, cut));
    RunningDigest moved = std::move(digest);
    moved.Add(text.substr(cut));
    EXPECT_EQ(moved.Finish(), Sha256Of(text));
  }
}

TEST(Digest, EqualMeansAllBytes) {
  const std::string digest = Sha256Of("a");
  EXPECT_TRUE(EqualDigests(digest, Sha256Of("a")));
  EXPECT_FALSE(EqualDigests(digest, Sha256Of("b")));
  EXPECT_FALSE(EqualDigests(digest, digest.substr(1)));
}

TEST(RandomBits, NeverRepeatAndReachEveryBit) {
  std::set<uint64_t> seen;
  uint64_t ones = 0;
  uint64_t zeros = 0;
  for (int i = 0; i < 200; ++i) {
    const uint64_t bits = RandomBits();
    EXPECT_TRUE(seen.insert(bits).second);
    ones |= bits;
    zeros |= ~bits;
  }
  EXPECT_EQ(ones, UINT64_MAX);
  EXPECT_EQ(zeros, UINT64_MAX);
}

}  // namespace

}  // namespace txl
