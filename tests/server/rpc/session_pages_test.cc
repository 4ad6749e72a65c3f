// GetSession's tokens and text by page and since a position.

#include <gmock/gmock.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/server/rpc/rpc_world.h"

namespace txl {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

grpc::Status Get(RpcWorld& world, const std::string& request,
                 v1::GetSessionResponse* response) {
  grpc::ClientContext client;
  return world.sessions->GetSession(
      &client, Proto<v1::GetSessionRequest>(request), response);
}

// A text whose characters are of one to four bytes: every page border falls
// into one of them.
TEST(GetSession, GivesTokensAndTextPageByPage) {
  RpcWorld world;
  const std::string text = "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x8c\xb3z";
  std::vector<int32_t> ids;
  for (const char c : text) ids.push_back(static_cast<unsigned char>(c));
  world.MakeSession("s", ids);
  for (int page_size = 1; page_size <= 12; ++page_size) {
    std::vector<int32_t> got;
    std::string got_text;
    std::string token;
    int pages = 0;
    do {
      v1::GetSessionResponse page;
      ASSERT_EQ(
          Outcome(Get(world,
                      absl::StrCat("session_id: 's' include_tokens: "
                                   "true page_size: ",
                                   page_size, " page_token: '", token, "'"),
                      &page)),
          "OK");
      EXPECT_EQ(page.start_position(), static_cast<int64_t>(got.size()));
      got.insert(got.end(), page.token_ids().begin(), page.token_ids().end());
      got_text += page.text();
      token = page.next_page_token();
      ++pages;
    } while (!token.empty());
    EXPECT_EQ(pages,
              (static_cast<int>(ids.size()) + page_size - 1) / page_size);
    EXPECT_EQ(got, ids);
    EXPECT_EQ(got_text, text);
  }
}

TEST(GetSession, GivesWhatCameSinceAPosition) {
  RpcWorld world;
  world.MakeSession("s", {'a', 'b', 'c', 0xc3});
  v1::GetSessionResponse since;
  EXPECT_EQ(Outcome(Get(
                world, "session_id: 's' include_tokens: true start_position: 2",
                &since)),
            "OK");
  EXPECT_THAT(since.token_ids(), ElementsAre('c', 0xc3));
  EXPECT_EQ(since.text(), "c\xef\xbf\xbd");
  EXPECT_EQ(since.start_position(), 2);
  EXPECT_EQ(since.next_page_token(), "");
  EXPECT_EQ(Outcome(Get(
                world, "session_id: 's' include_tokens: true start_position: 9",
                &since)),
            "OK");
  EXPECT_THAT(since.token_ids(), IsEmpty());
  EXPECT_EQ(since.text(), "");
  EXPECT_EQ(since.session().position(), 4);
}

TEST(GetSession, RefusesAPageThatIsNone) {
  RpcWorld world;
  world.MakeSession("s", {1});
  for (const auto& [page, field] :
       std::vector<std::pair<const char*, const char*>>{
           {"page_size: -1", "page_size"},
           {"start_position: -1", "start_position"},
           {"page_token: '1'", "page_token"},
           {"page_token: 'p'", "page_token"},
           {"page_token: 'p-1'", "page_token"},
           {"page_token: 'p99999999999999999999'", "page_token"},
           {"page_token: 'p1' start_position: 1", "page_token"}}) {
    v1::GetSessionResponse response;
    EXPECT_EQ(
        Outcome(Get(world,
                    absl::StrCat("session_id: 's' include_tokens: true ", page),
                    &response)),
        absl::StrCat("INVALID_ARGUMENT FIELD_INVALID ", field));
  }
}

}  // namespace
}  // namespace txl
