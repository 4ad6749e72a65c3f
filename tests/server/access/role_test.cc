#include "server/access/role.h"

#include <gtest/gtest.h>

namespace txl {
namespace {

TEST(Role, HasANameByWhichItIsFound) {
  for (const Role role : kAllRoles) EXPECT_EQ(ParseRole(RoleName(role)), role);
  EXPECT_STREQ(RoleName(Role::kUser), "user");
  EXPECT_STREQ(RoleName(Role::kScorer), "scorer");
  EXPECT_STREQ(RoleName(Role::kMetrics), "metrics");
  EXPECT_STREQ(RoleName(Role::kAdmin), "admin");
  EXPECT_FALSE(ParseRole("").has_value());
  EXPECT_FALSE(ParseRole("admins").has_value());
  EXPECT_EQ(ParseRole("Admin"), Role::kAdmin);  // in any case
}

TEST(RoleSet, IsNobodyUnlessItSays) {
  for (const Role role : kAllRoles) EXPECT_FALSE(RoleSet().Has(role));
  EXPECT_TRUE(RoleSet().empty());
  EXPECT_FALSE(kUsers.empty());
}

// What each may, written out from the promise to users.
TEST(RoleSet, GivesEachRoleItsOwn) {
  struct Row {
    Role role;
    bool users, scorers, watchers, any_key;
  };
  constexpr Row kRows[] = {{Role::kUser, true, true, true, true},
                           {Role::kScorer, false, true, false, true},
                           {Role::kMetrics, false, false, true, true},
                           {Role::kAdmin, true, true, true, true}};
  for (const Row& row : kRows) {
    SCOPED_TRACE(RoleName(row.role));
    EXPECT_EQ(kUsers.Has(row.role), row.users);
    EXPECT_EQ(kScorers.Has(row.role), row.scorers);
    EXPECT_EQ(kWatchers.Has(row.role), row.watchers);
    EXPECT_EQ(kAnyKey.Has(row.role), row.any_key);
  }
}

}  // namespace
}  // namespace txl
