#include "server/http/page.h"

#include <gmock/gmock.h>

#include "tests/server/http/http_world.h"

namespace txl {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

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
  for (const char* path :
       {"/ui/main.js", "/ui/api.js", "/ui/style.css", "/ui/favicon.svg",
        "/ui/uPlot.iife.min.js", "/ui/uPlot.min.css", "/favicon.ico"}) {
    EXPECT_EQ(world.Get(path).status, 200) << path;
  }
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
