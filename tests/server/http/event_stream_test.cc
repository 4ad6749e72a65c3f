#include "server/http/event_stream.h"

#include <gmock/gmock.h>

#include <functional>
#include <vector>

namespace txl {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Keeps what is sent; tasks and timers run when the test says so.
class FakeExchange final : public Exchange {
 public:
  const HttpRequest& request() const override { return request_; }
  void Reply(HttpReply) override { ADD_FAILURE() << "a stream has no reply"; }
  void StartStream(HttpReply reply) override { head = std::move(reply); }
  void Send(std::string bytes, std::function<void(bool)> sent) override {
    sends.push_back(std::move(bytes));
    tasks.push_back([sent = std::move(sent)] { sent(true); });
  }
  void EndStream(std::string last) override { ends.push_back(std::move(last)); }
  void Cut() override { ADD_FAILURE() << "nobody asked for it"; }
  void OnLeave(std::function<void()>) override {}
  void Post(std::function<void()> task) override {
    tasks.push_back(std::move(task));
  }
  void After(absl::Duration delay, std::function<void()> task) override {
    delays.push_back(delay);
    timers.push_back(std::move(task));
  }

  void RunTasks() {
    for (const auto& task : std::exchange(tasks, {})) task();
  }
  void RunTimers() {
    for (const auto& timer : std::exchange(timers, {})) timer();
  }

  HttpReply head;
  std::vector<std::string> sends;
  std::vector<std::string> ends;
  std::vector<std::function<void()>> tasks;
  std::vector<std::function<void()>> timers;
  std::vector<absl::Duration> delays;

 private:
  const HttpRequest request_;
};

struct World {
  explicit World(EventStreamOptions options = {})
      : stream(EventStream::Start(exchange, std::move(options))) {}
  void Send(const std::string& data) {
    stream->Send(data, [this](bool ok) { sent += ok ? 1 : 0; });
  }

  std::shared_ptr<FakeExchange> exchange = std::make_shared<FakeExchange>();
  std::shared_ptr<EventStream> stream;
  int sent = 0;
};

TEST(EventStream, HeadKeepsProxiesFromGatheringAndStoring) {
  EventStreamOptions options = {.headers = {{"x-txl-seed", "7"}}};
  const World world(options);
  EXPECT_EQ(world.exchange->head.status, 200);
  EXPECT_EQ(world.exchange->head.content_type, "text/event-stream");
  EXPECT_THAT(world.exchange->head.headers,
              ElementsAre(std::pair("x-txl-seed", "7"),
                          std::pair("cache-control", "no-store"),
                          std::pair("x-accel-buffering", "no")));
}

TEST(EventStream, AnEventIsADataLineAndAnEmptyOne) {
  World world;
  world.Send("{\"a\":1}");
  world.Send("b");
  EXPECT_THAT(world.exchange->sends,
              ElementsAre("data: {\"a\":1}\n\n", "data: b\n\n"));
}

TEST(EventStream, TellsWhenAnEventIsSent) {
  World world;
  world.Send("a");
  EXPECT_EQ(world.sent, 0);
  world.exchange->RunTasks();
  EXPECT_EQ(world.sent, 1);
}

TEST(EventStream, EndsWithDoneInOnePiece) {
  World world;
  world.stream->End("last");
  EXPECT_THAT(world.exchange->sends, IsEmpty());
  EXPECT_THAT(world.exchange->ends,
              ElementsAre("data: last\n\ndata: [DONE]\n\n"));
  World bare;
  bare.stream->End("");
  EXPECT_THAT(bare.exchange->ends, ElementsAre("data: [DONE]\n\n"));
}

TEST(EventStream, NumbersEventsFromOneOn) {
  EventStreamOptions options;
  options.ids = true;
  World world(options);
  world.Send("a");
  world.Send("b");
  world.stream->End("c");
  EXPECT_THAT(world.exchange->sends,
              ElementsAre("id: 1\ndata: a\n\n", "id: 2\ndata: b\n\n"));
  EXPECT_THAT(world.exchange->ends,
              ElementsAre("id: 3\ndata: c\n\ndata: [DONE]\n\n"));
}

TEST(EventStream, AnErrorHasNoNumberAndIsNotSkipped) {
  EventStreamOptions options;
  options.ids = true;
  options.skip = 2;
  World world(options);
  world.Send("a");
  world.stream->Fail("broken");
  EXPECT_THAT(world.exchange->sends, IsEmpty());
  EXPECT_THAT(world.exchange->ends,
              ElementsAre("data: broken\n\ndata: [DONE]\n\n"));
}

TEST(EventStream, SkipsWhatTheClientHas) {
  EventStreamOptions options;
  options.ids = true;
  options.skip = 2;
  World world(options);
  world.Send("a");
  world.Send("b");
  // As good as sent, but never before Send returns.
  EXPECT_EQ(world.sent, 0);
  world.exchange->RunTasks();
  EXPECT_EQ(world.sent, 2);
  world.Send("c");
  EXPECT_THAT(world.exchange->sends, ElementsAre("id: 3\ndata: c\n\n"));
}

TEST(EventStream, SkipsTheLastEventTooButNeverDone) {
  EventStreamOptions options;
  options.ids = true;
  options.skip = 9;
  World world(options);
  world.stream->End("a");
  EXPECT_THAT(world.exchange->ends, ElementsAre("data: [DONE]\n\n"));
}

TEST(EventStream, PingsAfterASilenceOnly) {
  EventStreamOptions options;
  options.ping = absl::Seconds(15);
  World world(options);
  EXPECT_THAT(world.exchange->delays, ElementsAre(absl::Seconds(15)));
  world.exchange->RunTimers();
  EXPECT_THAT(world.exchange->sends, ElementsAre(": ping\n\n"));
  world.Send("a");
  world.exchange->RunTimers();  // something was said
  world.exchange->RunTimers();
  EXPECT_THAT(world.exchange->sends,
              ElementsAre(": ping\n\n", "data: a\n\n", ": ping\n\n"));
}

TEST(EventStream, PingsNoMoreAfterItsEnd) {
  EventStreamOptions options;
  options.ping = absl::Seconds(15);
  World ended(options);
  ended.stream->End("");
  ended.exchange->RunTimers();
  World gone(options);
  gone.stream = nullptr;
  gone.exchange->RunTimers();
  for (const World* world : {&ended, &gone}) {
    EXPECT_THAT(world->exchange->sends, IsEmpty());
    EXPECT_THAT(world->exchange->timers, IsEmpty());
  }
}

TEST(EventStream, NeverPingsBetweenNumberedEvents) {
  EventStreamOptions options;
  options.ids = true;
  options.ping = absl::Seconds(15);
  const World world(options);
  EXPECT_THAT(world.exchange->timers, IsEmpty());
}

}  // namespace
}  // namespace txl
