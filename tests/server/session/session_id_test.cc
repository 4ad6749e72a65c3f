#include "server/session/session_id.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "tests/server/session/store_fixture.h"

namespace txl {
namespace {

TEST(SessionIdTest, LettersDigitsUnderscoreAndHyphenAreAllowed) {
  for (const std::string& id :
       {std::string("a"), std::string("Z"), std::string("0"), std::string("-"),
        std::string("_"), std::string("user-7_Chat"), std::string(64, 'x')}) {
    EXPECT_TRUE(ValidateSessionId(id).ok()) << id;
  }
}

TEST(SessionIdTest, NoOtherByteIsAllowed) {
  const std::string allowed =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
  for (int byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    const std::string id = std::string("a") + c + "b";
    EXPECT_EQ(ValidateSessionId(id).ok(), allowed.find(c) != std::string::npos)
        << byte;
  }
}

TEST(SessionIdTest, EmptyAndTooLongAreRefusedByName) {
  for (const std::string& id :
       {std::string(), std::string(65, 'x'), std::string(1 << 20, 'x')}) {
    const absl::Status status = ValidateSessionId(id);
    EXPECT_EQ(Refusal(status), "INVALID_ARGUMENT FIELD_INVALID session_id");
    EXPECT_LT(status.message().size(), 200u);
  }
}

TEST(SessionIdTest, TheMessageDoesNotRepeatTheId) {
  EXPECT_EQ(ValidateSessionId("secret!").message().find("secret"),
            absl::string_view::npos);
}

TEST(SessionIdTest, RandomIdsAreValidAndHold128Bits) {
  const absl::StatusOr<std::string> id = RandomSessionId();
  ASSERT_TRUE(id.ok()) << id.status();
  EXPECT_TRUE(ValidateSessionId(*id).ok());
  EXPECT_EQ(id->size(), 32u);  // 4 bits a digit
  EXPECT_EQ(id->find_first_not_of("0123456789abcdef"), std::string::npos);
}

// Among 2000 ids of 128 random bits every one of the 32 digits takes all 16
// values: the chance that one is missing is 32 * 16 * (15/16)^2000 < 1e-53.
TEST(SessionIdTest, RandomIdsDifferInEveryDigit) {
  std::set<std::string> ids;
  std::set<char> values[32];
  for (int i = 0; i < 2000; ++i) {
    const std::string id = *RandomSessionId();
    EXPECT_TRUE(ids.insert(id).second);
    for (int digit = 0; digit < 32; ++digit) values[digit].insert(id[digit]);
  }
  for (const std::set<char>& seen : values) EXPECT_EQ(seen.size(), 16u);
}

}  // namespace
}  // namespace txl
