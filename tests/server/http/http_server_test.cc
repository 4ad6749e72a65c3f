// The transport alone, with handlers of the test's own.

#include "server/http/http_server.h"

#include <gmock/gmock.h>

#include <atomic>
#include <stdexcept>

#include "tests/server/http/raw_client.h"
#include "tests/server/rpc/rpc_world.h"

namespace txl {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using SharedExchange = std::shared_ptr<Exchange>;

class HandlerServer {
 public:
  explicit HandlerServer(std::function<void(SharedExchange)> handle,
                         HttpOptions options = {}) {
    options.listen = "127.0.0.1:0";
    HttpHandlers handlers;
    handlers.let_in = [](HttpRequest*, const std::vector<std::string>&) {
      return absl::OkStatus();
    };
    handlers.handle = std::move(handle);
    handlers.hold_body = [](int64_t) { return ByteHold(); };
    auto started = HttpServer::Start(options, std::move(handlers));
    EXPECT_TRUE(started.ok()) << started.status();
    server = *std::move(started);
  }
  ~HandlerServer() { server->Shutdown(absl::Milliseconds(200)); }

  HttpAnswer Get(const std::string& target) {
    RawClient client(server->address());
    client.Send(RequestBytes("GET", target));
    return client.ReadAnswer();
  }

  LogCapture log;
  std::unique_ptr<HttpServer> server;
};

void Ok(const SharedExchange& exchange) {
  HttpReply reply;
  reply.body = "{}";
  exchange->Reply(reply);
}

[[noreturn]] void Throw() { throw std::runtime_error("no memory"); }

TEST(Throwing, AHandlerIsAnsweredForAndOthersGoOn) {
  HandlerServer world([](const SharedExchange& exchange) {
    if (exchange->request().path == "/throws") Throw();
    Ok(exchange);
  });
  const HttpAnswer answer = world.Get("/throws");
  EXPECT_EQ(answer.outcome(), "500 INTERNAL");
  EXPECT_EQ(answer.header("connection"), "close");
  EXPECT_THAT(answer.body, Not(HasSubstr("no memory")));
  EXPECT_EQ(world.Get("/").outcome(), "200");
}

TEST(Throwing, ATaskOfARequestIsAsItsHandler) {
  std::atomic<bool> left = false;
  HandlerServer world([&](const SharedExchange& exchange) {
    exchange->OnLeave([&] { left = true; });
    exchange->request().path == "/posted"
        ? exchange->Post(Throw)
        : exchange->After(absl::Milliseconds(1), Throw);
  });
  EXPECT_EQ(world.Get("/posted").outcome(), "500 INTERNAL");
  // What runs for the client ends.
  EXPECT_TRUE(Eventually([&] { return left.load(); }));
  EXPECT_EQ(world.Get("/later").outcome(), "500 INTERNAL");
}

TEST(Throwing, AStreamThatHasBegunIsCutOff) {
  HandlerServer world([](const SharedExchange& exchange) {
    exchange->StartStream({});
    exchange->Send("data: 1\n\n", [](bool sent) {
      if (sent) Throw();
    });
  });
  const HttpAnswer answer = world.Get("/");
  EXPECT_EQ(answer.status, 200);
  EXPECT_FALSE(answer.whole);
}

TEST(Counts, AreOfOpenAndOfRefusedConnections) {
  HttpOptions options;
  options.connections = 2;
  options.retry_after = absl::Milliseconds(1250);
  std::function<ConnectionCounts()> counts;
  {
    HandlerServer world(Ok, options);
    counts = world.server->Counts();
    EXPECT_EQ(counts().open, 0);
    EXPECT_EQ(counts().limit, 2);
    RawClient one(world.server->address());
    RawClient two(world.server->address());
    EXPECT_TRUE(Eventually([&] { return counts().open == 2; }));
    const HttpAnswer refused = world.Get("/");
    EXPECT_EQ(refused.outcome(), "429 OVERLOADED");
    EXPECT_EQ(refused.header("retry-after-ms"), "1250");
    EXPECT_EQ(refused.header("retry-after"), "2");
    EXPECT_EQ(counts().refused, 1);
    one.Close();
    EXPECT_TRUE(Eventually([&] { return counts().open == 1; }));
  }
  EXPECT_EQ(counts().open, 0);  // the server is gone
}

}  // namespace
}  // namespace txl
