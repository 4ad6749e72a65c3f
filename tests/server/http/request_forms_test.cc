// Forms of requests that everyday clients send: bodies in chunks, absolute
// targets, HTTP/1.0 that stays, and what every answer says.

#include <gmock/gmock.h>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tests/server/http/http_world.h"

namespace txl {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

const Json kBody = {{"prompt", "ab"}, {"max_tokens", 2}, {"seed", 1}};

// The head of a request whose body comes in chunks.
std::string ChunkedHead(const std::string& fields = "") {
  return absl::StrCat(
      "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n",
      "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n",
      fields, "\r\n");
}

std::string Chunk(const std::string& bytes, const std::string& extension = "") {
  return absl::StrCat(absl::Hex(bytes.size()), extension, "\r\n", bytes,
                      "\r\n");
}

// `bytes` in chunks of so many.
std::string Chunks(const std::string& bytes, size_t size) {
  std::string chunks;
  for (size_t i = 0; i < bytes.size(); i += size) {
    chunks += Chunk(bytes.substr(i, size));
  }
  return chunks + "0\r\n\r\n";
}

TEST(ChunkedBody, IsReadAsOneWithALength) {
  HttpWorld world;
  const Json expected = world.Complete(kBody).json()["choices"];
  const std::string body = kBody.dump();
  RawClient client(world.address());
  for (const size_t size : {size_t{1}, size_t{7}, body.size()}) {
    client.Send(ChunkedHead() + Chunks(body, size));
    EXPECT_EQ(client.ReadAnswer().json()["choices"], expected) << size;
  }
  // The connection goes on behind it.
  client.Send(RequestBytes("GET", "/health"));
  EXPECT_EQ(client.ReadAnswer().outcome(), "200");
}

TEST(ChunkedBody, MayComeInAnyPieces) {
  HttpWorld world;
  const std::string all =
      ChunkedHead() + Chunk("{\"prompt\":\"ab\",", ";name=value") +
      Chunk("\"max_tokens\":2}", ";a;b=\"c\"") + "0\r\nX-Trailer: a\r\n\r\n";
  for (size_t cut = 1; cut < all.size(); cut += 3) {
    RawClient client(world.address());
    client.Send(all.substr(0, cut));
    client.Send(all.substr(cut));
    ASSERT_EQ(client.ReadAnswer().outcome(), "200") << cut;
  }
}

TEST(ChunkedBody, ATrailerIsNoHeader) {
  HttpWorld world;
  world.rpc.MakeSession("s", {1});
  RawClient client(world.address());
  client.Send(ChunkedHead() + Chunk(kBody.dump()) +
              "0\r\nx-txl-session: s\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(client.ReadAnswer().outcome(), "200");
  EXPECT_EQ(world.rpc.GetSession("s").position(), 1);
  client.Send(RequestBytes("GET", "/health"));
  EXPECT_EQ(client.ReadAnswer().outcome(), "200");
}

TEST(ChunkedBody, IsAwaitedByAClientThatAsksFirst) {
  HttpWorld world;
  RawClient client(world.address());
  client.Send(ChunkedHead("Expect: 100-continue\r\n"));
  EXPECT_EQ(client.ReceiveUntil("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  client.Send(Chunks(kBody.dump(), 5));
  EXPECT_EQ(client.ReadAnswer().outcome(), "200");
}

TEST(ChunkedBody, HasTheLimitOfAnyBody) {
  HttpWorldOptions options;
  options.http.body_bytes = 1000;
  HttpWorld world(options);
  const auto send = [&](const std::string& chunks) {
    RawClient client(world.address());
    client.Send(ChunkedHead() + chunks);
    return client.ReadAnswer().outcome();
  };
  const std::string body = kBody.dump();
  const std::string filled = body + std::string(1000 - body.size(), ' ');
  EXPECT_EQ(send(Chunks(filled, 400)), "200");
  EXPECT_EQ(send(Chunks(filled + " ", 400)), "413 BODY_TOO_LARGE");
  EXPECT_EQ(send("3e9\r\n"), "413 BODY_TOO_LARGE");
  EXPECT_EQ(send("ffffffffffffffff\r\n"), "413 BODY_TOO_LARGE");
  // What stands around tiny chunks has a limit, too.
  EXPECT_EQ(send(Chunks(filled, 1)), "413 BODY_TOO_LARGE");
  EXPECT_EQ(send(Chunks(body, 1)), "200");
}

TEST(ChunkedBody, ThatIsBrokenIsRefused) {
  HttpWorld world;
  for (const std::string& chunks : std::vector<std::string>{
           "x\r\n", "-1\r\n", "\r\n", "2\r\n{}x\r\n0\r\n\r\n",
           "0x2\r\n{}\r\n0\r\n\r\n", "10000000000000002\r\n",
           "2 2\r\n{}\r\n0\r\n\r\n",
           "2\r\n{}\r\n0\r\nContent-Length: 2\r\n\r\n",
           "2;" + std::string(80 << 10, 'a')}) {
    RawClient client(world.address());
    client.Send(ChunkedHead() + chunks);
    EXPECT_EQ(client.ReadAnswer().outcome(), "400 MALFORMED_MESSAGE")
        << chunks.substr(0, 60);
  }
}

TEST(ChunkedBody, ThatDoesNotArriveIsATimeout) {
  HttpWorldOptions options;
  options.http.body_timeout = absl::Milliseconds(50);
  HttpWorld world(options);
  RawClient client(world.address());
  client.Send(ChunkedHead() + Chunk("{"));
  EXPECT_EQ(client.ReadAnswer().outcome(), "408 REQUEST_TIMEOUT");
}

TEST(ChunkedBody, TakesRoomAsItComesAndGivesBackWhatItDoesNotNeed) {
  ByteBudget requests(2 << 20);
  HttpWorldOptions options;
  options.rpc.requests = &requests;
  HttpWorld world(options);
  world.rpc.runner.Hold();
  RawClient client(world.address());
  const std::string body = kBody.dump() + std::string(100 << 10, ' ');
  client.Send(ChunkedHead() + Chunks(body, 10 << 10));
  ASSERT_TRUE(Eventually([&] { return world.rpc.store->counts().busy == 1; }));
  // Those of the body, and those of the call that it makes.
  EXPECT_LT(requests.used(), kMessageExpansion * 101 * 1024 + 4 * kCallBytes);
  world.rpc.runner.Release();
  EXPECT_EQ(client.ReadAnswer().outcome(), "200");
  // Beside another request it would be one too many, not too large.
  ASSERT_TRUE(Eventually([&] { return requests.used() == 0; }));
  RawClient large(world.address());
  large.Send(ChunkedHead() + Chunks(std::string(1 << 20, ' '), 10 << 10));
  EXPECT_EQ(large.ReadAnswer().outcome(), "400 OVER_LIMIT");
  EXPECT_TRUE(Eventually([&] { return requests.used() == 0; }));
}

TEST(AbsoluteTarget, IsServedAsItsPath) {
  HttpWorld world;
  RawClient client(world.address());
  client.Send(absl::StrCat("GET http://", world.address(),
                           "/health HTTP/1.1\r\nHost: other.example\r\n\r\n"));
  EXPECT_EQ(client.ReadAnswer().outcome(), "200");
}

TEST(OldClient, StaysWhereItAsksToAndIsTold) {
  HttpWorld world;
  RawClient client(world.address());
  // As ApacheBench asks.
  for (int i = 0; i < 3; ++i) {
    client.Send(
        "GET /health HTTP/1.0\r\nConnection: Keep-Alive\r\n"
        "Host: localhost\r\n\r\n");
    const HttpAnswer answer = client.ReadAnswer();
    EXPECT_EQ(answer.outcome(), "200");
    EXPECT_EQ(answer.header("connection"), "keep-alive");
  }
}

TEST(OldClient, IsNotToldToStayWhereItsAnswerHasNoLength) {
  HttpWorld world;
  RawClient client(world.address());
  Json body = kBody;
  body["stream"] = true;
  client.Send(
      absl::StrCat("POST /v1/completions HTTP/1.0\r\nConnection: keep-alive\r\n"
                   "Content-Type: application/json\r\nContent-Length: ",
                   body.dump().size(), "\r\n\r\n", body.dump()));
  bool ended = false;
  const std::string all = client.ReceiveAll(&ended);
  EXPECT_TRUE(ended);
  EXPECT_THAT(all, HasSubstr("Connection: close"));
}

TEST(EveryAnswer, SaysItsDate) {
  HttpWorldOptions options;
  options.http.connections = 1;
  HttpWorld world(options);
  RawClient client(world.address());
  const absl::Time before = absl::Now() - absl::Seconds(1);
  const auto expect = [&](const HttpAnswer& answer) {
    absl::Time date;
    std::string error;
    EXPECT_TRUE(absl::ParseTime("%a, %d %b %Y %H:%M:%S GMT",
                                answer.header("date"), &date, &error))
        << answer.status << " " << error;
    EXPECT_GE(date, before);
    EXPECT_LE(date, absl::Now());
  };
  client.Send(RequestBytes("GET", "/health"));
  expect(client.ReadAnswer());
  RawClient one_too_many(world.address());
  const HttpAnswer turned_away = one_too_many.ReadAnswer();
  EXPECT_EQ(turned_away.status, 429);
  expect(turned_away);
  client.Send("nonsense\r\n\r\n");
  expect(client.ReadAnswer());
}

TEST(HttpDateTest, IsAsTheStandardWritesIt) {
  EXPECT_EQ(HttpDate(absl::FromUnixSeconds(784111777)),
            "Sun, 06 Nov 1994 08:49:37 GMT");
}

}  // namespace
}  // namespace txl
