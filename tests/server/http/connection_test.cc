// The life of connections: clients that come, are slow, leave, ask for much at
// once, and a server that ends while they are there.

#include "server/http/connection.h"

#include <gmock/gmock.h>

#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tests/server/http/http_world.h"

namespace txl {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using Json = nlohmann::json;

Json LongStream(int tokens = 4000) {
  return {{"prompt", "ab"}, {"max_tokens", tokens}, {"stream", true}};
}

// An answer of a turn, small enough to come in one piece.
const Json kShort = {{"prompt", "ab"}, {"max_tokens", 2}};

TEST(Leaving, OfAQueuedTurnEndsIt) {
  HttpWorldOptions options;
  options.rpc.runner.slots = 1;
  HttpWorld world(options);
  world.rpc.runner.Hold();
  RawClient runs = world.Ask("/v1/completions", LongStream(5));
  ASSERT_TRUE(Eventually([&] { return world.rpc.store->counts().busy == 1; }));
  {
    RawClient waits = world.Ask("/v1/completions", LongStream(5));
    ASSERT_TRUE(
        Eventually([&] { return world.rpc.metrics.Get().turns_started == 2; }));
  }
  // The front's one thread sees that the second has left before it sees this.
  EXPECT_EQ(world.Get("/health").status, 200);
  world.rpc.runner.Release();
  EXPECT_THAT(runs.ReceiveUntil("0\r\n\r\n"), HasSubstr("[DONE]"));
  EXPECT_TRUE(world.ComesToRest());
  EXPECT_EQ(world.rpc.metrics.Get().tokens_delivered, 5);
}

TEST(Leaving, OfAStreamEndsItsTurnAtATokenBorder) {
  HttpWorld world;
  world.rpc.MakeSession("s");
  Json body = LongStream();
  body["session_id"] = "s";
  {
    RawClient client = world.Ask("/v1/completions", body);
    client.ReceiveUntil("data: ");
  }
  EXPECT_TRUE(world.ComesToRest());
  const int64_t position = world.rpc.GetSession("s").position();
  EXPECT_GT(position, 2);
  EXPECT_LT(position, 4002);
}

TEST(Leaving, OfAGatheredAnswerEndsItsTurns) {
  HttpWorld world;
  world.rpc.runner.Hold();
  {
    RawClient client =
        world.Ask("/v1/completions",
                  {{"prompt", {"ab", "cd", "ef"}}, {"max_tokens", 4000}});
    ASSERT_TRUE(
        Eventually([&] { return world.rpc.store->counts().busy == 3; }));
  }
  world.rpc.runner.Release();
  EXPECT_TRUE(world.ComesToRest());
  EXPECT_LT(world.rpc.metrics.Get().tokens_delivered, 12'000);
}

// One more byte than a request hides the end that comes behind it.
TEST(Leaving, IsSeenBehindBytesThatNobodyReads) {
  HttpWorld world;
  world.rpc.runner.Hold();
  {
    RawClient client =
        world.Ask("/v1/completions", {{"prompt", "ab"}, {"max_tokens", 4000}});
    client.Send("G");
    ASSERT_TRUE(
        Eventually([&] { return world.rpc.store->counts().busy == 1; }));
  }
  absl::SleepFor(absl::Milliseconds(600));
  world.rpc.runner.Release();
  EXPECT_TRUE(world.ComesToRest());
  EXPECT_LT(world.rpc.metrics.Get().tokens_delivered, 4000);
}

// HTTP/1.0 knows no chunks: the stream ends with its connection.
TEST(Streaming, ToAnOldClientEndsWithTheConnection) {
  HttpWorld world;
  RawClient client(world.address());
  const std::string body = R"({"prompt":"ab","max_tokens":2,"stream":true})";
  client.Send(
      absl::StrCat("POST /v1/completions HTTP/1.0\r\nHost: localhost"
                   "\r\nContent-Type: application/json\r\n"
                   "Content-Length: ",
                   body.size(), "\r\n\r\n", body));
  const std::string all = client.ReceiveAll();
  EXPECT_EQ(all.find("chunked"), std::string::npos);
  EXPECT_TRUE(absl::EndsWith(all, "\n\ndata: [DONE]\n\n")) << all;
}

TEST(Leaving, OfAScoreEndsIt) {
  HttpWorld world;
  world.rpc.runner.Hold();
  {
    RawClient client =
        world.Ask("/v1/score", {{"text", std::string(3000, 'a')}});
    ASSERT_TRUE(
        Eventually([&] { return world.rpc.store->counts().busy == 1; }));
  }
  world.rpc.runner.Release();
  EXPECT_TRUE(world.ComesToRest());
}

TEST(SlowReading, ParksATurnAndEndsWithTheClient) {
  HttpWorldOptions options;
  options.rpc.limits.max_tokens = 1'000'000;
  options.rpc.sessions.max_session_tokens = 2'000'000;
  HttpWorld world(options);
  {
    RawClient client(world.address(), absl::Seconds(10),
                     /*receive_buffer=*/4 << 10);
    client.Send(
        RequestBytes("POST", "/v1/completions", LongStream(500'000).dump()));
    client.ReceiveUntil("data: ");
    ASSERT_TRUE(
        Eventually([&] { return world.rpc.metrics.Get().turns_parked == 1; }));
    // What nobody has read is the kernel's buffers and a bounded queue.
    EXPECT_LE(world.rpc.metrics.Get().stream_queue_tokens, 70);
    EXPECT_LT(world.rpc.metrics.Get().tokens_sampled, 50'000);
    // Others are served meanwhile.
    EXPECT_EQ(world.Complete(kShort).outcome(), "200");
  }
  // No write fails here: only who keeps looking sees it.
  EXPECT_TRUE(world.ComesToRest());
}

TEST(SlowReading, AParkedTurnGoesOnWhenItIsRead) {
  HttpWorld world;
  RawClient client(world.address(), absl::Seconds(10), 4 << 10);
  client.Send(RequestBytes("POST", "/v1/completions", LongStream(4000).dump()));
  ASSERT_TRUE(
      Eventually([&] { return world.rpc.metrics.Get().turns_parked == 1; }));
  const HttpAnswer answer = client.ReadAnswer();
  EXPECT_TRUE(answer.whole);
  EXPECT_EQ(answer.chunks().size(), 4001u);
  EXPECT_TRUE(world.ComesToRest());
}

TEST(KeepAlive, OneConnectionServesManyRequests) {
  HttpWorld world;
  RawClient client(world.address());
  const std::string stream =
      RequestBytes("POST", "/v1/completions", LongStream(3).dump());
  const std::string whole =
      RequestBytes("POST", "/v1/completions", kShort.dump());
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(client.Send(stream));
    EXPECT_EQ(client.ReadAnswer().chunks().size(), 4u);
    ASSERT_TRUE(client.Send(whole));
    EXPECT_EQ(client.ReadAnswer().outcome(), "200");
    // A handler's refusal does not end it.
    ASSERT_TRUE(client.Send(RequestBytes("GET", "/nothing")));
    EXPECT_EQ(client.ReadAnswer().outcome(), "404 NOT_FOUND");
  }
}

TEST(KeepAlive, EndsWhereTheClientSaysSo) {
  HttpWorld world;
  RawClient client(world.address());
  client.Send(RequestBytes("GET", "/health", "", {{"Connection", "close"}}));
  bool ended = false;
  EXPECT_THAT(client.ReceiveAll(&ended), EndsWith("{\"status\":\"ok\"}"));
  EXPECT_TRUE(ended);
}

TEST(KeepAlive, AClientOfHttp10GetsOneAnswer) {
  HttpWorld world;
  RawClient client(world.address());
  client.Send("GET /health HTTP/1.0\r\nHost: localhost\r\n\r\n");
  bool ended = false;
  EXPECT_THAT(client.ReceiveAll(&ended), HasSubstr("200 OK"));
  EXPECT_TRUE(ended);
}

TEST(KeepAlive, ASilentConnectionEndsAfterAWhile) {
  HttpWorldOptions options;
  options.http.idle_timeout = absl::Milliseconds(50);
  HttpWorld world(options);
  RawClient client(world.address());
  client.Send(RequestBytes("GET", "/health"));
  bool ended = false;
  EXPECT_THAT(client.ReceiveAll(&ended), StartsWith("HTTP/1.1 200"));
  EXPECT_TRUE(ended);
}

TEST(Pipelining, RequestsAreAnsweredInTheirOrder) {
  HttpWorld world;
  RawClient client(world.address());
  std::string all;
  for (int i = 1; i <= 20; ++i) {
    Json body = kShort;
    body["prompt"] = std::string(static_cast<size_t>(i), 'a');
    body["stream"] = i % 3 == 0;
    body["stream_options"] = {{"include_usage", true}};
    all += RequestBytes("POST", "/v1/completions", body.dump());
  }
  ASSERT_TRUE(client.Send(all));
  for (int i = 1; i <= 20; ++i) {
    const HttpAnswer answer = client.ReadAnswer();
    const Json last = i % 3 == 0 ? answer.chunks().back() : answer.json();
    EXPECT_EQ(last["usage"]["prompt_tokens"], i);
  }
}

TEST(Continuing, AClientThatAsksFirstIsTold) {
  HttpWorld world;
  RawClient client(world.address());
  const std::string body = kShort.dump();
  client.Send(RequestBytes("POST", "/v1/completions", "",
                           {{"Content-Length", absl::StrCat(body.size())},
                            {"Expect", "100-continue"}}));
  EXPECT_EQ(client.ReceiveUntil("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  client.Send(body);
  EXPECT_EQ(client.ReadAnswer().outcome(), "200");
}

TEST(Limits, AnAddressHasSoManyConnections) {
  HttpWorldOptions options;
  options.http.connections_per_peer = 3;
  HttpWorld world(options);
  std::vector<RawClient> clients;
  for (int i = 0; i < 3; ++i) {
    clients.emplace_back(world.address());
    clients.back().Send(RequestBytes("GET", "/health"));
    EXPECT_EQ(clients.back().ReadAnswer().outcome(), "200");
  }
  EXPECT_EQ(world.Get("/health").status, 429);
  clients.pop_back();
  EXPECT_TRUE(Eventually([&] { return world.Get("/health").status == 200; }));
}

TEST(Limits, TheServerHasSoManyConnections) {
  HttpWorldOptions options;
  options.http.connections = 2;
  HttpWorld world(options);
  RawClient one(world.address());
  RawClient two(world.address());
  two.Send(RequestBytes("GET", "/v1/status"));
  const Json status = two.ReadAnswer().json();
  EXPECT_EQ(status["connections_open"], 2);
  EXPECT_EQ(world.Get("/health").status, 429);
}

TEST(Limits, ABodyWithoutRoomIsRefusedBeforeItIsRead) {
  ByteBudget requests(26 << 20);
  HttpWorldOptions options;
  options.rpc.requests = &requests;
  options.rpc.scheduler.retry_after = absl::Milliseconds(300);
  HttpWorld world(options);
  // Only the heads: the answer does not wait for the rest.
  const std::string head = RequestBytes("POST", "/v1/completions", "",
                                        {{"Content-Length", "4000000"}});
  RawClient first(world.address());
  first.Send(head);
  ASSERT_TRUE(Eventually([&] { return requests.used() > 0; }));
  RawClient second(world.address());
  second.Send(head);
  const HttpAnswer refused = second.ReadAnswer();
  EXPECT_EQ(refused.outcome(), "429 OVERLOADED");
  EXPECT_EQ(refused.header("retry-after-ms"), "300");
  EXPECT_EQ(world.Complete(kShort).outcome(), "200");
}

TEST(Limits, WhatWouldNeverFitIsNotToldToComeAgain) {
  ByteBudget requests(1 << 20);
  ByteBudget streams(1 << 20);
  HttpWorldOptions options;
  options.rpc.requests = &requests;
  options.rpc.streams = &streams;
  HttpWorld world(options);
  RawClient client(world.address());
  client.Send(RequestBytes("POST", "/v1/completions", "",
                           {{"Content-Length", "4000000"}}));
  const HttpAnswer request = client.ReadAnswer();
  EXPECT_EQ(request.outcome(), "400 OVER_LIMIT");
  EXPECT_EQ(request.header("retry-after-ms"), "absent");
  Json body = kShort;
  body["n"] = 128;
  body["max_tokens"] = 4000;
  EXPECT_EQ(world.Complete(body).outcome(), "400 OVER_LIMIT");
  EXPECT_EQ(world.Complete(kShort).outcome(), "200");
}

TEST(Refusals, ReachAClientThatHasSentItsWholeBodyBefore) {
  HttpWorld world;
  const std::string body(6 << 20, ' ');
  for (int i = 0; i < 5; ++i) {
    // It reads when all is sent, as most clients do.
    RawClient client(world.address());
    EXPECT_TRUE(client.Send(RequestBytes("POST", "/v1/completions", body)));
    EXPECT_EQ(client.ReadAnswer().outcome(), "413 BODY_TOO_LARGE");
  }
}

TEST(ManyStreams, AtOnceAreAllServed) {
  HttpWorldOptions options;
  options.http.connections_per_peer = 400;
  HttpWorld world(options);
  Json body = LongStream(20);
  body["return_token_ids"] = true;
  std::vector<RawClient> clients;
  for (int i = 0; i < 200; ++i) {
    body["prompt"] = {i, 1};
    clients.push_back(world.Ask("/v1/completions", body));
  }
  for (int i = 0; i < 200; ++i) {
    std::vector<int32_t> ids;
    for (const Json& chunk :
         clients[static_cast<size_t>(i)].ReadAnswer().chunks()) {
      for (const Json& id : chunk["choices"][0]["token_ids"]) ids.push_back(id);
    }
    EXPECT_EQ(ids, world.rpc.runner.Continue({i, 1}, 20)) << i;
  }
  EXPECT_TRUE(world.ComesToRest());
}

TEST(Shutdown, LetsRunningStreamsEnd) {
  HttpWorld world;
  RawClient client = world.Ask("/v1/completions", LongStream(500));
  client.ReceiveUntil("data: ");
  std::thread ends([&] { world.front->Shutdown(absl::Seconds(60)); });
  EXPECT_THAT(client.ReceiveUntil("0\r\n\r\n"), HasSubstr("data: [DONE]"));
  ends.join();
  bool ended = false;
  client.ReceiveAll(&ended);
  EXPECT_TRUE(ended);
}

TEST(Shutdown, CutsOffWhatRunsTooLong) {
  HttpWorld world;
  world.rpc.runner.Hold();
  RawClient client = world.Ask("/v1/completions", LongStream());
  RawClient silent(world.address());
  ASSERT_TRUE(Eventually([&] { return world.rpc.store->counts().busy == 1; }));
  std::thread ends([&] { world.front->Shutdown(absl::Milliseconds(50)); });
  for (RawClient* one : {&client, &silent}) {
    bool ended = false;
    EXPECT_FALSE(absl::StrContains(one->ReceiveAll(&ended), "[DONE]"));
    EXPECT_TRUE(ended);
  }
  world.rpc.runner.Release();
  ends.join();
  EXPECT_TRUE(world.ComesToRest());
}

TEST(SlowHttp, AHeadThatDoesNotArriveIsATimeout) {
  HttpWorldOptions options;
  options.http.header_timeout = absl::Milliseconds(100);
  HttpWorld world(options);
  RawClient client(world.address());
  client.Send("GET /health HTTP/1.1\r\nHost: local");
  EXPECT_EQ(client.ReadAnswer().outcome(), "408 REQUEST_TIMEOUT");
}

TEST(SlowHttp, ABodyThatDoesNotArriveIsATimeout) {
  HttpWorldOptions options;
  options.http.body_timeout = absl::Milliseconds(100);
  HttpWorld world(options);
  RawClient client(world.address());
  client.Send(RequestBytes("POST", "/v1/completions",
                           "{\"prompt\":", {{"Content-Length", "100"}}));
  EXPECT_EQ(client.ReadAnswer().outcome(), "408 REQUEST_TIMEOUT");
  EXPECT_TRUE(world.ComesToRest());
}

}  // namespace
}  // namespace txl
