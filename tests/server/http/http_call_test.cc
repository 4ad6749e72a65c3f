#include "server/http/http_call.h"

#include <gtest/gtest.h>

#include "server/base/error.h"

namespace txl {
namespace {

TEST(NamedSession, IsThatOfTheBodyOrOfAHeader) {
  HttpRequest http;
  EXPECT_EQ(*NamedSession(std::nullopt, http), "");
  EXPECT_EQ(*NamedSession("a", http), "a");
  http.headers["x-session-id"] = "b";
  EXPECT_EQ(*NamedSession(std::nullopt, http), "b");
  EXPECT_EQ(*NamedSession("", http), "b");
  EXPECT_EQ(*NamedSession("b", http), "b");
  EXPECT_EQ(GetErrorDetails(NamedSession("a", http).status()).field,
            "session_id");
}

}  // namespace

}  // namespace txl
