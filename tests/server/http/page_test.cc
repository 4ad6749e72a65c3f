
#include <gmock/gmock.h>

#include <set>
#include <string>
#include <vector>

#include "tests/server/http/http_world.h"

namespace txl {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// What stands in a text between `before` and the next quotation mark.
std::vector<std::string> Names(const std::string& text,
                               const std::string& before) {
  std::vector<std::string> names;
  for (size_t at = text.find(before); at != std::string::npos;
       at = text.find(before, at)) {
    at += before.size();
    names.push_back(text.substr(at, text.find('"', at) - at));
  }
  return names;
}

TEST(Page, StandsAtTheRootUnderAPolicyThatLetsNothingElseIn) {
  HttpWorld world;
  const HttpAnswer page = world.Get("/");
  EXPECT_EQ(page.status, 200);
  EXPECT_EQ(page.header("content-type"), "text/html; charset=utf-8");
  EXPECT_THAT(page.body, StartsWith("<!doctype html>"));
  EXPECT_THAT(page.header("content-security-policy"),
              StartsWith("default-src 'none'; script-src 'self';"));
  EXPECT_EQ(page.header("x-content-type-options"), "nosniff");
}

// Every file that the page names, and every module that a module imports.
TEST(Page, HasEveryFileThatItAsksFor) {
  HttpWorld world;
  std::vector<std::string> names = Names(world.Get("/").body, "\"ui/");
  ASSERT_THAT(names, Contains("main.js"));
  std::set<std::string> seen(names.begin(), names.end());
  while (!names.empty()) {
    const std::string name = names.back();
    names.pop_back();
    const HttpAnswer file = world.Get("/ui/" + name);
    EXPECT_EQ(file.status, 200) << name;
    for (const std::string& next : Names(file.body, "from \"./")) {
      if (seen.insert(next).second) names.push_back(next);
    }
  }
  EXPECT_GT(seen.size(), 20u);
  EXPECT_EQ(world.Get("/favicon.ico").status, 200);
  EXPECT_EQ(world.Get("/ui/main.js").header("content-type"),
            "text/javascript; charset=utf-8");
  EXPECT_EQ(world.Get("/ui/package.json").status, 404);
  EXPECT_EQ(world.Get("/ui/../main.js").status, 404);
}

TEST(Page, IsPackedForThoseWhoTakeThat) {
  HttpWorld world;
  const HttpAnswer plain = world.Get("/ui/main.js");
  const HttpAnswer packed =
      world.Send("GET", "/ui/main.js", "", {{"Accept-Encoding", "br, gzip"}});
  EXPECT_EQ(plain.header("content-encoding"), "absent");
  EXPECT_THAT(plain.body, HasSubstr("import"));
  EXPECT_EQ(packed.header("content-encoding"), "gzip");
  EXPECT_THAT(packed.body, StartsWith("\x1f\x8b"));
  EXPECT_LT(packed.body.size(), plain.body.size());
}

TEST(Page, IsNotSentAgainToWhoHasIt) {
  HttpWorld world;
  const std::string etag = world.Get("/").header("etag");
  const HttpAnswer again =
      world.Send("GET", "/", "", {{"If-None-Match", etag}});
  EXPECT_EQ(again.status, 304);
  EXPECT_EQ(again.body, "");
}

TEST(Page, OfAnotherOriginMaySendWhatItIsListedFor) {
  HttpWorldOptions options;
  options.http.origins = {"https://chat.example"};
  HttpWorld world(options);
  const auto ask = [&](const std::string& origin) {
    return world.Send(
        "OPTIONS", "/v1/completions", "",
        {{"Origin", origin}, {"Access-Control-Request-Method", "POST"}});
  };
  const HttpAnswer allowed = ask("https://chat.example");
  EXPECT_EQ(allowed.status, 204);
  EXPECT_EQ(allowed.header("access-control-allow-origin"),
            "https://chat.example");
  EXPECT_THAT(allowed.header("access-control-allow-methods"),
              HasSubstr("POST"));
  EXPECT_EQ(ask("https://other.example").status, 403);
}

}  // namespace
}  // namespace txl
