// SIGTERM: what can end ends, what cannot is cut at a token border.

#include <gtest/gtest.h>

#include <thread>

#include "absl/synchronization/notification.h"
#include "tests/end_to_end/server_process.h"
#include "tests/end_to_end/stuck_reader.h"
#include "tests/end_to_end/turns.h"

namespace txl::testing {
namespace {

const std::vector<uint32_t> kPrompt = {1, 2, 3};

// A turn on its own thread and connection.
class Background {
 public:
  Background(ServerProcess& server, int32_t max_tokens)
      : client_(server.NewClient()), thread_([this, max_tokens] {
          output_ = RunTurn(*client_, Greedy("", kPrompt, max_tokens), {},
                            [&](int64_t tokens) {
                              if (tokens == 1) begun_.Notify();
                            });
        }) {}

  void WaitForFirstToken() { begun_.WaitForNotification(); }
  const TurnOutput& Join() {
    thread_.join();
    return output_;
  }

 private:
  std::unique_ptr<Client> client_;
  absl::Notification begun_;
  TurnOutput output_;
  std::thread thread_;
};

TEST(Drain, ShortStreamsEndWholeAndLongOnesWithServerDrain) {
  // Slow enough that 4,096 tokens outlast the drain.
  ServerProcess server(ShippedModel(),
                       {"--slots", "8", "--drain-timeout", "500ms"});
  Background long_stream(server, 4096);
  Background other_long_stream(server, 4096);
  Background short_stream(server, 20);
  for (Background* stream : {&long_stream, &other_long_stream, &short_stream}) {
    stream->WaitForFirstToken();
  }
  server.Terminate();
  EXPECT_TRUE(WaitUntil([&] {
    const auto status = server.client().GetServerStatus();
    return !status.ok() || status->state() == v1::SERVER_STATE_DRAINING;
  }));
  const TurnOutput refused = RunTurn(server.client(), Greedy("", kPrompt, 5));
  EXPECT_EQ(refused.status.code(), absl::StatusCode::kUnavailable)
      << refused.status;

  const TurnOutput& whole = short_stream.Join();
  EXPECT_TRUE(whole.status.ok()) << whole.status;
  EXPECT_EQ(whole.finished.reason(), v1::FINISH_REASON_MAX_TOKENS);
  for (Background* stream : {&long_stream, &other_long_stream}) {
    const TurnOutput& cut = stream->Join();
    EXPECT_TRUE(cut.status.ok()) << cut.status;
    EXPECT_EQ(cut.finished.reason(), v1::FINISH_REASON_SERVER_DRAIN);
    EXPECT_LT(cut.ids.size(), 4096u);
  }
  EXPECT_EQ(server.Wait(), 0);
}

TEST(Drain, WithoutWorkEndsAtOnce) {
  ServerProcess server(GoldenModel("kimi-char"),
                       {"--slots", "2", "--drain-timeout", "600s"});
  server.Terminate();
  EXPECT_EQ(server.Wait(), 0);
}

TEST(Drain, AReaderThatIsStuckDoesNotHoldUpTheExit) {
  ServerProcess server(GoldenModel("kimi-char"),
                       {"--slots", "2", "--drain-timeout", "300ms"});
  StuckReader stuck(server, "");
  server.Terminate();
  EXPECT_EQ(server.Wait(), 0);  // the reader reads on only afterwards
  EXPECT_LT(stuck.ReadOn().ids.size(), 4096u);
}

TEST(Drain, ASecondSignalEndsTheServerAtOnce) {
  ServerProcess server(GoldenModel("kimi-char"),
                       {"--slots", "2", "--drain-timeout", "600s",
                        "--slow-reader-limit", "600s"});
  StuckReader stuck(server, "");
  server.Terminate();
  EXPECT_TRUE(WaitUntil([&] {
    const auto status = server.client().GetServerStatus();
    return !status.ok() || status->state() == v1::SERVER_STATE_DRAINING;
  }));
  server.Terminate();
  EXPECT_EQ(server.Wait(), 3);  // a drain would outlast the test's time limit
  EXPECT_FALSE(stuck.ReadOn().status.ok());
}

}  // namespace
}  // namespace txl::testing
