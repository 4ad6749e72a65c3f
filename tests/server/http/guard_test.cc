#include "server/http/guard.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"

namespace txl {
namespace {

using Fields = std::vector<std::pair<std::string, std::string>>;
using Json = nlohmann::json;

// "403 PERMISSION_DENIED", "passes".
std::string Verdict(const RequestHead& head, const HttpOptions& options = {}) {
  const std::optional<HttpReply> refusal = CheckHead(head, options);
  if (!refusal.has_value()) return "passes";
  const Json error = Json::parse(refusal->body)["error"];
  return absl::StrCat(refusal->status, " ", error["code"].get<std::string>());
}

RequestHead Get(Fields fields) { return {"GET", "/health", std::move(fields)}; }

RequestHead Post(Fields fields) {
  fields.insert(fields.begin(), {"host", "localhost"});
  return {"POST", "/v1/completions", std::move(fields)};
}

TEST(IsOwnHost, KnowsLoopbacksNamesWithAnyPort) {
  for (const char* host : {"localhost", "LocalHost", "localhost:8000",
                           "127.0.0.1", "127.0.0.1:1", "[::1]", "[::1]:8000"}) {
    EXPECT_TRUE(IsOwnHost(host, {})) << host;
  }
}

TEST(IsOwnHost, KnowsNoOtherName) {
  for (const char* host :
       {"", ":", ":8000", "evil.example", "localhost.evil.example",
        "127.0.0.1.evil.example", "evil.example:127.0.0.1", "127.0.0.2",
        "0.0.0.0", "printer.local", "192.168.0.1", "[::2]", "[]",
        "localhost@evil.example", " localhost", "[::1"}) {
    // Brackets that stay open hold an address all the same.
    EXPECT_EQ(IsOwnHost(host, {}), std::string(host) == "[::1") << host;
  }
}

TEST(IsOwnHost, KnowsListedNamesWithAnyPortOrTheirs) {
  const std::vector<std::string> hosts = {"txl.example", "b.example:81"};
  EXPECT_TRUE(IsOwnHost("txl.example", hosts));
  EXPECT_TRUE(IsOwnHost("TXL.example:9000", hosts));
  EXPECT_TRUE(IsOwnHost("b.example:81", hosts));
  EXPECT_FALSE(IsOwnHost("b.example:82", hosts));
  EXPECT_FALSE(IsOwnHost("a.txl.example", hosts));
}

TEST(CheckHead, TakesARequestForThisServer) {
  EXPECT_EQ(Verdict(Get({{"host", "localhost:8000"}})), "passes");
  EXPECT_EQ(Verdict(Post({{"content-length", "2"},
                          {"content-type", "application/json"}})),
            "passes");
}

TEST(CheckHead, WantsOneHost) {
  EXPECT_EQ(Verdict(Get({})), "403 PERMISSION_DENIED");
  EXPECT_EQ(Verdict(Get({{"host", "localhost"}, {"host", "localhost"}})),
            "403 PERMISSION_DENIED");
  EXPECT_EQ(Verdict(Get({{"host", "evil.example"}})), "403 PERMISSION_DENIED");
}

TEST(CheckHead, TakesOurOwnOriginAndListedOnes) {
  HttpOptions options;
  options.origins = {"https://chat.example"};
  const auto from = [&](const std::string& origin) {
    return Verdict(Get({{"host", "localhost:8000"}, {"origin", origin}}),
                   options);
  };
  EXPECT_EQ(from("http://localhost:8000"), "passes");
  EXPECT_EQ(from("https://chat.example"), "passes");
  for (const char* other :
       {"http://localhost:8001", "http://evil.example", "null", "",
        "localhost:8000", "http://chat.example", "https://chat.example.evil",
        "http://127.0.0.1:8000", "http://localhost:8000.evil.example"}) {
    EXPECT_EQ(from(other), "403 PERMISSION_DENIED") << other;
  }
}

TEST(CheckHead, LooksAtEveryMethodAndPath) {
  for (const char* method : {"GET", "HEAD", "POST", "DELETE", "OPTIONS"}) {
    RequestHead head = Get({{"host", "evil.example"}});
    head.method = method;
    EXPECT_EQ(Verdict(head), "403 PERMISSION_DENIED") << method;
  }
}

TEST(CheckHead, AnyHostMeansAnyPageToo) {
  HttpOptions options;
  options.any_host = true;
  EXPECT_EQ(Verdict(Get({}), options), "passes");
  EXPECT_EQ(Verdict(Get({{"host", "a"}, {"origin", "http://b"}}), options),
            "passes");
  EXPECT_EQ(Verdict(Get({{"transfer-encoding", "gzip"}}), options),
            "501 UNSUPPORTED_TRANSFER_ENCODING");
}

TEST(CheckHead, KnowsTheAddressThatItListensOnAndTheOneThatItWasReachedAt) {
  HttpOptions options;
  options.listen = "txl.local:8000";
  const auto from = [&](const std::string& host) {
    RequestHead head = Get({{"host", host}});
    head.local_address = "192.168.0.7";
    return Verdict(head, options);
  };
  for (const char* own : {"txl.local", "TXL.local:8000", "txl.local:1",
                          "192.168.0.7", "192.168.0.7:8000"}) {
    EXPECT_EQ(from(own), "passes") << own;
  }
  for (const char* other : {"192.168.0.8", "local", "a.txl.local",
                            "192.168.0.7.evil.example", "0.0.0.0"}) {
    EXPECT_EQ(from(other), "403 PERMISSION_DENIED") << other;
  }
}

TEST(CheckHead, KnowsAnAddressInEverySpelling) {
  HttpOptions options;
  options.listen = "[fd00::1]:8000";
  const auto from = [&](const std::string& host, const std::string& local) {
    RequestHead head = Get({{"host", host}});
    head.local_address = local;
    return Verdict(head, options);
  };
  EXPECT_EQ(from("[FD00:0:0:0::1]:8000", "fd00::1"), "passes");
  EXPECT_EQ(from("[0:0:0:0:0:0:0:1]", "::1"), "passes");
  EXPECT_EQ(from("127.0.0.2:8000", "::ffff:127.0.0.2"), "passes");
  EXPECT_EQ(from("[fe80::7]", "fe80::7%eth0"), "passes");
  EXPECT_EQ(from("[fd00::2]", "fd00::1"), "403 PERMISSION_DENIED");
}

TEST(CheckHead, AnAbsoluteTargetsAuthorityGoesBeforeHost) {
  const auto ask = [](const std::string& target, Fields fields) {
    RequestHead head = Get(std::move(fields));
    head.target = target;
    return Verdict(head);
  };
  const Fields own = {{"host", "localhost"}};
  EXPECT_EQ(ask("http://localhost:80/health", own), "passes");
  EXPECT_EQ(ask("HTTP://127.0.0.1", own), "passes");
  EXPECT_EQ(ask("http://localhost/", {{"host", "evil.example"}}), "passes");
  EXPECT_EQ(ask("http://evil.example/health", own), "403 PERMISSION_DENIED");
  EXPECT_EQ(ask("http:///health", own), "403 PERMISSION_DENIED");
  EXPECT_EQ(ask("http://localhost/health", {}), "403 PERMISSION_DENIED");
  EXPECT_EQ(ask("http://localhost:80/",
                {{"host", "evil.example"}, {"origin", "http://evil.example"}}),
            "403 PERMISSION_DENIED");
}

TEST(CheckHead, AClientOfHttp10NeedNotSayAHost) {
  RequestHead head = Get({});
  head.http_1_0 = true;
  EXPECT_EQ(Verdict(head), "passes");
  head.fields = {{"host", "evil.example"}};
  EXPECT_EQ(Verdict(head), "403 PERMISSION_DENIED");
  head.fields = {{"origin", "http://evil.example"}};
  EXPECT_EQ(Verdict(head), "403 PERMISSION_DENIED");
}

TEST(CheckHead, WantsTheEndOfABodySaidInOneWay) {
  const std::pair<std::string, std::string> json = {"content-type",
                                                    "application/json"};
  const auto coded = [&](const std::string& coding) {
    return Post({json, {"transfer-encoding", coding}});
  };
  EXPECT_EQ(Verdict(coded("chunked")), "passes");
  EXPECT_EQ(Verdict(coded("Chunked")), "passes");
  RequestHead old = coded("chunked");
  old.http_1_0 = true;
  EXPECT_EQ(Verdict(old), "400 MALFORMED_MESSAGE");
  for (const char* other : {"identity", "gzip, chunked", "chunked, chunked",
                            "chunked;q=1", "xchunked", ""}) {
    EXPECT_EQ(Verdict(coded(other)), "501 UNSUPPORTED_TRANSFER_ENCODING")
        << other;
  }
  for (const char* coding : {"identity", "chunked"}) {
    EXPECT_EQ(
        Verdict(Post(
            {json, {"transfer-encoding", coding}, {"content-length", "2"}})),
        "400 MALFORMED_MESSAGE");
  }
  EXPECT_EQ(Verdict(Post({json,
                          {"transfer-encoding", "chunked"},
                          {"transfer-encoding", "chunked"}})),
            "400 MALFORMED_MESSAGE");
  EXPECT_EQ(
      Verdict(Post({json, {"content-length", "2"}, {"content-length", "2"}})),
      "400 MALFORMED_MESSAGE");
  EXPECT_EQ(Verdict(Post({json})), "411 LENGTH_REQUIRED");
  for (const char* none :
       {"-1", "2x", "0x2", "1e3", "99999999999999999999999"}) {
    EXPECT_EQ(Verdict(Post({json, {"content-length", none}})),
              "400 MALFORMED_MESSAGE")
        << none;
  }
}

TEST(CheckHead, BoundsABodyByWhatItsLengthSays) {
  HttpOptions options;
  options.body_bytes = 10;
  const auto of = [&](const std::string& length) {
    return Verdict(Post({{"content-length", length},
                         {"content-type", "application/json"}}),
                   options);
  };
  EXPECT_EQ(of("10"), "passes");
  EXPECT_EQ(of("11"), "413 BODY_TOO_LARGE");
  EXPECT_EQ(of("18446744073709551615"), "413 BODY_TOO_LARGE");
}

TEST(CheckHead, TakesABodyAsJsonOnly) {
  const auto as = [](const std::string& type) {
    return Verdict(Post({{"content-length", "2"}, {"content-type", type}}));
  };
  for (const char* json : {"application/json", "Application/JSON",
                           "application/json; charset=utf-8",
                           " application/json ;charset=utf-8"}) {
    EXPECT_EQ(as(json), "passes") << json;
  }
  // What a page's form can send without asking.
  for (const char* other :
       {"", "text/plain", "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=b", "text/plain; application/json",
        "application/jsonp", "application/json-seq"}) {
    EXPECT_EQ(as(other), "415 UNSUPPORTED_MEDIA_TYPE") << other;
  }
}

TEST(CheckHead, TakesABodyAsItIsOnly) {
  const auto coded = [](const std::string& coding) {
    return Post({{"content-length", "2"},
                 {"content-type", "application/json"},
                 {"content-encoding", coding}});
  };
  EXPECT_EQ(Verdict(coded("identity")), "passes");
  for (const char* coding : {"gzip", "deflate", "br", "gzip, identity"}) {
    EXPECT_EQ(Verdict(coded(coding)), "415 UNSUPPORTED_MEDIA_TYPE") << coding;
    const auto refusal = CheckHead(coded(coding), {});
    const Fields wanted = {{"accept-encoding", "identity"}};
    EXPECT_EQ(refusal->headers, wanted);
  }
}

TEST(ParseTarget, SplitsPathAndQuery) {
  HttpRequest request;
  ASSERT_TRUE(ParseTarget("/a%20b/c?x=1&y=%26+z&flag&x=2&=&", &request));
  EXPECT_EQ(request.path, "/a b/c");
  const Fields query = {
      {"x", "1"}, {"y", "& z"}, {"flag", ""}, {"x", "2"}, {"", ""}};
  EXPECT_EQ(request.query, query);
}

TEST(ParseTarget, OfAnAbsoluteOneThePathIsBehindTheAuthority) {
  const std::pair<const char*, const char*> paths[] = {
      {"http://localhost:80/a/b?x=1", "/a/b"},
      {"https://localhost", "/"},
      {"HTTP://localhost?x=1", "/"},
      {"http://localhost/", "/"},
      {"*", "*"}};
  for (const auto& [target, path] : paths) {
    HttpRequest request;
    EXPECT_TRUE(ParseTarget(target, &request)) << target;
    EXPECT_EQ(request.path, path) << target;
  }
  for (const char* none : {"ftp://localhost/", "localhost:80", "http:/a", "",
                           "http://user:word@localhost/", "?x=1", "**"}) {
    HttpRequest request;
    EXPECT_FALSE(ParseTarget(none, &request)) << none;
  }
}

TEST(ParseTarget, APlusIsOneInAPath) {
  HttpRequest request;
  ASSERT_TRUE(ParseTarget("/a+b", &request));
  EXPECT_EQ(request.path, "/a+b");
}

TEST(ParseTarget, RefusesWhatIsNoPath) {
  for (const char* target :
       {"", "a", "/%", "/%2", "/%zz", "/%2f", "/a%2Fb", "/%00",
        "/%0d%0aset-cookie:x", "/%7f", "/%1F", "/?a=%", "/?%0a=1", "/?a=%g0"}) {
    HttpRequest request;
    EXPECT_FALSE(ParseTarget(target, &request)) << target;
  }
}

TEST(ParseTarget, AnEscapedEscapeIsDecodedOnce) {
  HttpRequest request;
  ASSERT_TRUE(ParseTarget("/%252f", &request));
  EXPECT_EQ(request.path, "/%2f");
}

}  // namespace
}  // namespace txl
