// A finished turn that is told again is read from its record as the client
// reads: many of them take no more memory than one.

#include "absl/strings/str_cat.h"
#include "tests/server/rpc/rpc_world.h"

namespace txl {
namespace {

constexpr int kManyTokens = 3000;

std::string ReplayRequest() {
  return absl::StrCat(
      "session_id: 's' text: 'a' request_id: 'r' output { logprobs: 200 } "
      "stop { max_tokens: ",
      kManyTokens, " }");
}

RpcWorldOptions Options(absl::Duration slow_reader_limit) {
  RpcWorldOptions options;
  options.limits.max_tokens = kManyTokens;
  options.limits.logprobs = 200;
  options.scheduler.slow_reader_limit = slow_reader_limit;
  return options;
}

struct Reader {
  explicit Reader(RpcWorld& world)
      : reader(world.generation->Generate(
            &client, Proto<v1::GenerateRequest>(ReplayRequest()))) {}
  bool Read() { return reader->Read(&event); }

  grpc::ClientContext client;
  v1::GenerateResponse event;
  std::unique_ptr<grpc::ClientReader<v1::GenerateResponse>> reader;
};

TEST(ReplayFlow, UnreadReplaysQueueNothing) {
  RpcWorld world(Options(absl::Minutes(5)));
  world.MakeSession("s");
  ASSERT_EQ(Outcome(world.Generate(ReplayRequest()).status), "OK");
  std::vector<std::unique_ptr<Reader>> readers;
  for (int i = 0; i < 8; ++i) {
    readers.push_back(std::make_unique<Reader>(world));
    ASSERT_TRUE(readers.back()->Read());
    EXPECT_EQ(readers.back()->event.started().replayed_token_count(),
              kManyTokens);
  }
  EXPECT_EQ(world.metrics.Get().stream_queue_tokens, 0);
  // One that reads on gets everything.
  int tokens = 0;
  while (readers[0]->Read()) tokens += readers[0]->event.has_token() ? 1 : 0;
  EXPECT_EQ(Outcome(readers[0]->reader->Finish()), "OK");
  EXPECT_EQ(tokens, kManyTokens);
}

TEST(ReplayFlow, AReplayThatIsNotReadIsCutOff) {
  RpcWorld world(Options(absl::Milliseconds(50)));
  world.MakeSession("s");
  ASSERT_EQ(Outcome(world.Generate(ReplayRequest()).status), "OK");
  Reader reader(world);
  ASSERT_TRUE(reader.Read());
  EXPECT_TRUE(Eventually([&] { return world.server->calls().open == 0; }));
}

TEST(ReplayFlow, AReplayTakesItsShareOfTheStreamsMemory) {
  RpcWorld world(Options(absl::Minutes(5)));
  world.MakeSession("s");
  ByteBudget streams(int64_t{256} << 20);
  world.context.memory.streams = &streams;
  ASSERT_EQ(Outcome(world.Generate(ReplayRequest()).status), "OK");
  ASSERT_TRUE(Eventually([&] { return streams.used() == 0; }));
  {
    Reader reader(world);
    ASSERT_TRUE(reader.Read());
    // What it holds is the record, even when the store has given it up.
    EXPECT_GE(streams.used(), kManyTokens * 200 * 8);
    reader.client.TryCancel();
  }
  EXPECT_TRUE(Eventually([&] { return streams.used() == 0; }));
}

}  // namespace
}  // namespace txl
