#include "server/api/request_digest.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "absl/strings/escaping.h"
#include "tests/server/api/convert_fixture.h"
#include "txl/v1/generation_service.pb.h"
#include "txl/v1/session_service.pb.h"

namespace txl {
namespace {

std::string Digest(const std::string& text) {
  return RequestDigest(FromText<v1::GenerateRequest>(text));
}

TEST(RequestDigest, IsEqualForEqualRequests) {
  EXPECT_EQ(Digest("text: 'a' request_id: 'r'"),
            Digest("request_id: 'r' text: 'a'"));
  EXPECT_EQ(Digest("text: 'a'").size(), 32u);
}

TEST(RequestDigest, DoesNotDependOnTheOrderOfAMap) {
  std::string forth, back;
  for (int id = 0; id < 50; ++id) {
    const std::string entry =
        " logit_bias { key: " + std::to_string(id) + " value: 1 }";
    forth += entry;
    back = entry + back;
  }
  EXPECT_EQ(Digest("sampling {" + forth + " }"),
            Digest("sampling {" + back + " }"));
}

TEST(RequestDigest, DiffersByEveryFieldThatIsSaid) {
  const std::set<std::string> digests = {
      Digest(""),
      Digest("text: 'a'"),
      Digest("text: 'b'"),
      Digest("tokens { ids: 97 }"),
      Digest("session_id: 'a'"),
      Digest("request_id: 'a'"),
      Digest("expected_position: 0"),
      Digest("expected_position: 1"),
      Digest("sampling { temperature: 0 }"),
      Digest("sampling { seed: 0 }"),
      Digest("stop { max_tokens: 1 }"),
      Digest("output { logprobs: 1 }"),
      Digest("unknown: UNKNOWN_TEXT_SKIP"),
      Digest("unknown: UNKNOWN_TEXT_SYMBOL"),
  };
  EXPECT_EQ(digests.size(), 14u);
}

TEST(RequestDigest, IsTheSameWhateverWasReceived) {
  EXPECT_EQ(Digest("text: 'a' received { seed: 1 token_ids: 2 }"),
            Digest("text: 'a'"));
  EXPECT_EQ(Digest("text: 'a' received {}"), Digest("text: 'a'"));
  EXPECT_NE(Digest("text: 'b' received { seed: 1 token_ids: 2 }"),
            Digest("text: 'a'"));
}

// SHA-256 of the type's name, a zero and the bytes 12 01 61, computed
// elsewhere: a store keeps digests longer than a server lives, and fields that
// are not set must not change them.
TEST(RequestDigest, IsTheHashOfTheNameAndTheBytes) {
  constexpr char kDigest[] =
      "ce57c221714b502ffed4ea362b6495160ef8d22ebab36b1d4bbaa9c09cb7f286";
  EXPECT_EQ(absl::BytesToHexString(Digest("text: 'a'")), kDigest);
  EXPECT_EQ(absl::BytesToHexString(
                Digest("text: 'a' unknown: UNKNOWN_TEXT_UNSPECIFIED")),
            kDigest);
}

TEST(RequestDigest, DiffersByMethod) {
  EXPECT_NE(RequestDigest(v1::GenerateRequest()),
            RequestDigest(v1::AppendTokensRequest()));
}

}  // namespace
}  // namespace txl
