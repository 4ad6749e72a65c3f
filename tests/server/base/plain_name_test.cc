#include "server/base/plain_name.h"

#include <string>

#include "gtest/gtest.h"

namespace txl {
namespace {

TEST(PlainName, IsOneTo64LettersDigitsDashesAndUnderscores) {
  for (const std::string& name : {std::string("a"), std::string("A-z_09"),
                                  std::string("-"), std::string(64, 'x')}) {
    EXPECT_TRUE(IsPlainName(name)) << name;
  }
  for (const std::string& name :
       {std::string(), std::string(65, 'x'), std::string("a b"),
        std::string("a/b"), std::string("a.b"), std::string("ä"),
        std::string("a\0b", 3), std::string("a\n")}) {
    EXPECT_FALSE(IsPlainName(name)) << name;
  }
}

}  // namespace
}  // namespace txl
