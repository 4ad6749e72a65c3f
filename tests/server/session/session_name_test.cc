#include "server/session/session_name.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <type_traits>

#include "tests/server/session/store_fixture.h"

namespace txl {
namespace {

TEST(SessionName, OfALiteralIsOfTheDefaultTenant) {
  const SessionName name = "verona";
  EXPECT_EQ(name.tenant(), "default");
  EXPECT_EQ(name.id(), "verona");
  EXPECT_EQ(name, SessionName("default", "verona"));
  EXPECT_EQ(name, SessionName::OfDefaultTenant("verona"));
}

// What a client sent cannot become a session without whose it is.
TEST(SessionName, IsNotMadeOfATextAlone) {
  EXPECT_FALSE((std::is_constructible_v<SessionName, std::string>));
  EXPECT_FALSE((std::is_convertible_v<std::string, SessionName>));
}

TEST(SessionName, IsAnothersWhereTheTenantIsAnother) {
  EXPECT_NE(SessionName("alice", "s"), SessionName("bob", "s"));
  EXPECT_LT(SessionName("alice", "z"), SessionName("bob", "a"));
  EXPECT_LT(SessionName("alice", "a"), SessionName("alice", "b"));
}

TEST(SessionName, IsReadFromItsText) {
  EXPECT_EQ(SessionName("verona").text(), "verona") << "as stores have it";
  EXPECT_EQ(SessionName("alice", "verona").text(), "alice/verona");
  for (const SessionName& name :
       {SessionName("verona"), SessionName("alice", "verona"), SessionName(),
        SessionName("alice", "")}) {
    EXPECT_EQ(SessionName::OfText(name.text()), name);
  }
}

TEST(SessionName, WithoutAnIdIsOfNoSession) {
  EXPECT_TRUE(SessionName().empty());
  EXPECT_TRUE(SessionName("alice", "").empty());
  EXPECT_FALSE(SessionName("verona").empty());
}

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

TEST(SessionIdTest, OtherIdsAreRefusedByTheirOwnField) {
  const absl::Status status = ValidateId("request_id", "two words");
  EXPECT_EQ(Refusal(status), "INVALID_ARGUMENT FIELD_INVALID request_id");
  EXPECT_EQ(status.message(), "must be 1 to 64 characters of A-Z a-z 0-9 _ -");
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

TEST(PageTokenTest, LeadsBackToItsId) {
  for (const std::string& id :
       {std::string("a"), std::string("A-z_09"), std::string(64, 'x')}) {
    const absl::StatusOr<std::string> back =
        DecodePageToken(EncodePageToken(id));
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(*back, id);
  }
}

TEST(PageTokenTest, DoesNotShowItsId) {
  EXPECT_EQ(EncodePageToken("patient-file").find("patient"), std::string::npos);
}

TEST(PageTokenTest, AnythingElseIsRefused) {
  const std::string good = EncodePageToken("session");
  const std::string bad[] = {"",
                             "session",
                             "!",
                             good + "=",
                             good + "A",
                             good.substr(1),
                             "\xff\xfe",
                             EncodePageToken(""),
                             good + "\n",
                             EncodePageToken("not an id"),
                             std::string(1 << 16, 'A'),
                             EncodePageToken(std::string(65, 'x'))};
  for (const std::string& token : bad) {
    EXPECT_EQ(Refusal(DecodePageToken(token)),
              "INVALID_ARGUMENT FIELD_INVALID page_token")
        << token.substr(0, 80);
  }
}

}  // namespace

}  // namespace txl
