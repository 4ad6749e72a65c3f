#include "server/session/page_token.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/server/session/store_fixture.h"

namespace txl {
namespace {

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
