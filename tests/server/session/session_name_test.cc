#include "server/session/session_name.h"

#include <gtest/gtest.h>

#include <string>
#include <type_traits>

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

}  // namespace
}  // namespace txl
