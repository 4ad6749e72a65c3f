// What a call may take from the server before, while and after its request is
// worked on.

#include <gmock/gmock.h>
#include <grpcpp/generic/generic_stub.h>

#include "absl/synchronization/notification.h"
#include "tests/server/rpc/rpc_world.h"

namespace txl {
namespace {

constexpr char kTokenize[] = "/txl.v1.ModelService/Tokenize";
constexpr char kOverloaded[] = "RESOURCE_EXHAUSTED OVERLOADED";

// A call whose request does not come.
class HalfCall {
 public:
  HalfCall(RpcWorld& world, const std::string& method)
      : HalfCall(world.channel, method) {}
  HalfCall(const std::shared_ptr<grpc::Channel>& channel,
           const std::string& method)
      : stub_(channel), call_(stub_.PrepareCall(&client_, method, &queue_)) {
    call_->StartCall(nullptr);
    Next();
  }
  void Write(const google::protobuf::MessageLite& request) {
    const std::string bytes = request.SerializeAsString();
    grpc::Slice slice(bytes);
    call_->Write(grpc::ByteBuffer(&slice, 1), nullptr);
    Next();
  }
  // Waits for the server's end of the call.
  grpc::Status Finish() {
    grpc::Status status;
    call_->Finish(&status, nullptr);
    Next();
    return status;
  }
  void Cancel() { client_.TryCancel(); }
  // Closes the client's side without a message.
  void Close() {
    call_->WritesDone(nullptr);
    Next();
  }

 private:
  void Next() {
    void* tag = nullptr;
    bool ok = false;
    queue_.Next(&tag, &ok);
  }
  grpc::GenericStub stub_;
  grpc::ClientContext client_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;
};

grpc::Status Tokenize(RpcWorld& world, const std::string& text) {
  v1::TokenizeRequest request;
  request.set_text(text);
  return CallRaw(world.channel, kTokenize, request.SerializeAsString()).status;
}

std::string LargeText() { return std::string(8000, 'a'); }

// Its pool stands still until the returned function is called.
std::function<void()> HoldPool(RpcWorld& world) {
  auto gate = std::make_shared<absl::Notification>();
  world.work->Run("holder",
                  [gate](const absl::Status&) { gate->WaitForNotification(); });
  EXPECT_TRUE(Eventually([&] { return world.work->counts().running == 1; }));
  return [gate] { gate->Notify(); };
}

// The methods that answer whatever the server has to do.
void ExpectItSpeaks(RpcWorld& world) {
  for (const char* method :
       {"/txl.v1.ModelService/GetModel", "/txl.v1.ModelService/GetServerStatus",
        "/grpc.health.v1.Health/Check"}) {
    EXPECT_EQ(Outcome(CallRaw(world.channel, method, "").status), "OK")
        << method;
  }
}

TEST(CallLimits, MoreCallsThanTheLimitAreOverloaded) {
  RpcWorldOptions options;
  options.calls.calls = 1;
  RpcWorld world(options);
  HalfCall first(world, kTokenize);
  ASSERT_TRUE(Eventually([&] { return world.server->calls().open == 1; }));
  const grpc::Status refused = Tokenize(world, "a");
  EXPECT_EQ(Outcome(refused), kOverloaded);
  EXPECT_TRUE(HasRetryInfo(refused));
  ExpectItSpeaks(world);
  first.Cancel();
  EXPECT_TRUE(
      Eventually([&] { return Outcome(Tokenize(world, "a")) == "OK"; }));
}

TEST(CallLimits, ARequestThatDoesNotComeWholeIsEnded) {
  RpcWorldOptions options;
  options.calls.request_timeout = absl::Milliseconds(100);
  RpcWorld world(options);
  for (const char* method : {kTokenize, "/txl.v1.GenerationService/Generate",
                             "/txl.v1.ModelService/GetModel"}) {
    HalfCall call(world, method);
    const grpc::Status status = call.Finish();
    EXPECT_EQ(Outcome(status), "DEADLINE_EXCEEDED DEADLINE_EXCEEDED");
    EXPECT_THAT(status.error_message(),
                testing::HasSubstr("--request-timeout"));
  }
  EXPECT_TRUE(Eventually([&] { return world.server->calls().open == 0; }));
}

TEST(CallLimits, OfManyRequestsThatComeSlowlyTheOldestGivesWay) {
  RpcWorldOptions options;
  options.calls.unread_bytes = 0;  // room for one
  RpcWorld world(options);
  HalfCall slow(world, kTokenize);
  ASSERT_TRUE(Eventually([&] { return world.server->calls().reading == 1; }));
  EXPECT_TRUE(
      Eventually([&] { return Outcome(Tokenize(world, "a")) == "OK"; }));
  EXPECT_EQ(Outcome(slow.Finish()), kOverloaded);
}

TEST(CallLimits, ARequestHoldsItsBytesUntilItsCallEnds) {
  RpcWorld world;
  ByteBudget requests(int64_t{64} << 20);
  world.context.memory.requests = &requests;
  world.runner.Hold();
  grpc::ClientContext client;
  v1::GenerateRequest request;
  request.set_text(LargeText());
  auto reader = world.generation->Generate(&client, request);
  v1::GenerateResponse event;
  ASSERT_TRUE(reader->Read(&event));
  EXPECT_EQ(requests.used(),
            kCallBytes + kMessageExpansion *
                             static_cast<int64_t>(request.ByteSizeLong()));
  client.TryCancel();
  world.runner.Release();
  EXPECT_TRUE(Eventually([&] { return requests.used() == 0; }));
}

TEST(CallLimits, ACallHasOneMessage) {
  RpcWorld world;
  v1::TokenizeRequest request;
  request.set_text("a");
  HalfCall call(world, kTokenize);
  call.Write(request);
  call.Write(request);
  call.Close();
  EXPECT_EQ(Outcome(call.Finish()), "INVALID_ARGUMENT MALFORMED_MESSAGE");
}

TEST(CallLimits, ACallThatDiesBeforeItsMessageDoesNoWorkAndWritesNoLine) {
  RpcWorld world;
  {
    HalfCall call(world, "/txl.v1.GenerationService/Generate");
    call.Cancel();
    call.Finish();
  }
  HalfCall closed(world, "/txl.v1.GenerationService/Generate");
  closed.Close();
  EXPECT_EQ(Outcome(closed.Finish()), "INVALID_ARGUMENT MALFORMED_MESSAGE");
  EXPECT_TRUE(Eventually([&] { return world.server->calls().open == 0; }));
  EXPECT_EQ(world.store->counts().created, 0);
  for (const std::string& line : world.log.lines()) {
    EXPECT_THAT(line, testing::Not(testing::HasSubstr("\"call\"")));
  }
}

TEST(CallLimits, LinesOfRefusedCallsAreLimited) {
  RpcWorld world;
  for (int i = 0; i < 10 * kRefusalLines; ++i) {
    EXPECT_FALSE(CallRaw(world.channel, kTokenize, "\xff\xff").status.ok());
  }
  // The limit is one of every second: far fewer lines than calls.
  EXPECT_LT(static_cast<int64_t>(world.log.lines().size()), 5 * kRefusalLines);
}

TEST(WorkOffGrpcsThreads, LargeTextsWaitForThePoolAndNothingElseDoes) {
  RpcWorld world;
  const auto release = HoldPool(world);
  grpc::Status large;
  std::thread client([&] { large = Tokenize(world, LargeText()); });
  ASSERT_TRUE(Eventually([&] { return world.work->counts().queued == 1; }));
  ExpectItSpeaks(world);
  EXPECT_EQ(Outcome(Tokenize(world, "small")), "OK");
  EXPECT_EQ(Outcome(world.Generate("text: 'a' stop { max_tokens: 3 }").status),
            "OK");
  release();
  client.join();
  EXPECT_EQ(Outcome(large), "OK");
}

TEST(WorkOffGrpcsThreads, ACallWhoseClientLeavesIsNotWorkedOn) {
  RpcWorld world;
  const auto release = HoldPool(world);
  grpc::ClientContext client;
  v1::GenerateRequest request;
  request.set_text(LargeText());
  auto reader = world.generation->Generate(&client, request);
  ASSERT_TRUE(Eventually([&] { return world.work->counts().queued == 1; }));
  client.TryCancel();
  EXPECT_FALSE(reader->Finish().ok());
  EXPECT_TRUE(world.Logged("\"event\":\"cancel\""));
  release();
  EXPECT_TRUE(Eventually([&] { return world.server->calls().open == 0; }));
  EXPECT_EQ(world.metrics.Get().turns_started, 0);
}

TEST(WorkOffGrpcsThreads, MoreThanTheQueueHoldsIsOverloaded) {
  RpcWorldOptions options;
  options.work.longest_queue = 1;
  RpcWorld world(options);
  const auto release = HoldPool(world);
  grpc::Status first;
  std::thread client([&] { first = Tokenize(world, LargeText()); });
  ASSERT_TRUE(Eventually([&] { return world.work->counts().queued == 1; }));
  EXPECT_EQ(Outcome(Tokenize(world, LargeText())), kOverloaded);
  release();
  client.join();
  EXPECT_EQ(Outcome(first), "OK");
}

TEST(WorkOffGrpcsThreads, TheAnswerOfADoneTurnIsNeverRefused) {
  RpcWorldOptions options;
  options.work.longest_queue = 1;
  RpcWorld world(options);
  world.MakeSession("s");
  const auto release = HoldPool(world);
  grpc::Status waiting;
  std::thread client([&] { waiting = Tokenize(world, LargeText()); });
  ASSERT_TRUE(Eventually([&] { return world.work->counts().queued == 1; }));
  v1::AppendTokensRequest request;
  request.set_session_id("s");
  request.set_text(std::string(200, 'a'));
  request.set_return_logprobs(true);
  grpc::ClientContext context;
  v1::AppendTokensResponse response;
  EXPECT_EQ(Outcome(world.sessions->AppendTokens(&context, request, &response)),
            "OK");
  EXPECT_EQ(response.scored_size(), 200);
  release();
  client.join();
}

TEST(Answers, OverTheirBudgetAreOverloadedAndDoNothing) {
  RpcWorld world;
  world.MakeSession("s");
  ByteBudget streams(1 << 20);
  world.context.memory.streams = &streams;
  {
    const auto others = streams.TryHold((1 << 20) - 100);
    EXPECT_EQ(Outcome(world.Generate("session_id: 's' text: 'a'").status),
              kOverloaded);
    EXPECT_EQ(Outcome(Tokenize(world, std::string(200, 'a'))), kOverloaded);
    EXPECT_EQ(world.GetSession("s").position(), 0);
    EXPECT_GE(streams.refused(), 2);
  }
  EXPECT_TRUE(Eventually([&] { return streams.used() == 0; }));
}

TEST(Answers, ThatWouldNeverFitAreOverALimit) {
  RpcWorld world;
  world.MakeSession("s");
  ByteBudget streams(100);
  world.context.memory.streams = &streams;
  constexpr char kOverLimit[] = "INVALID_ARGUMENT OVER_LIMIT";
  EXPECT_EQ(Outcome(world.Generate("session_id: 's' text: 'a'").status),
            kOverLimit);
  EXPECT_EQ(Outcome(Tokenize(world, std::string(200, 'a'))), kOverLimit);
  EXPECT_EQ(world.GetSession("s").position(), 0);
}

// A session of 96,000 ids, so that an answer with a page of them is larger than
// a client's window.
void MakeLongSession(RpcWorld& world) {
  world.MakeSession("s", std::vector<int32_t>(8000, 'a'));
  for (int i = 0; i < 11; ++i) {
    v1::AppendTokensRequest append;
    append.set_session_id("s");
    append.mutable_tokens()->mutable_ids()->Resize(8000, 'a');
    grpc::ClientContext context;
    v1::AppendTokensResponse fed;
    ASSERT_EQ(Outcome(world.sessions->AppendTokens(&context, append, &fed)),
              "OK");
  }
}

// A page of it, whose answer is not read.
class UnreadPage {
 public:
  explicit UnreadPage(RpcWorld& world)
      : call_(world.NewChannel(), "/txl.v1.SessionService/GetSession") {
    v1::GetSessionRequest request;
    request.set_session_id("s");
    request.set_include_tokens(true);
    call_.Write(request);
    call_.Close();
  }

 private:
  HalfCall call_;
};

TEST(Answers, ThatNobodyReadsAreCutOff) {
  RpcWorldOptions options;
  options.calls.answer_timeout = absl::Milliseconds(100);
  RpcWorld world(options);
  ByteBudget streams(int64_t{64} << 20);
  world.context.memory.streams = &streams;
  MakeLongSession(world);
  const UnreadPage unread(world);
  EXPECT_TRUE(Eventually([&] { return world.server->calls().answering == 1; }));
  EXPECT_TRUE(Eventually([&] {
    return world.server->calls().answering == 0 && streams.used() == 0;
  }));
}

TEST(Answers, ThatNobodyReadsGiveWayToOthers) {
  RpcWorldOptions options;
  options.calls.unread_answer_bytes = 200'000;  // one page, not two
  RpcWorld world(options);
  MakeLongSession(world);
  const UnreadPage unread(world);
  EXPECT_TRUE(Eventually([&] { return world.server->calls().answering == 1; }));
  const auto read = [&] {
    grpc::ClientContext context;
    v1::GetSessionRequest request;
    request.set_session_id("s");
    request.set_include_tokens(true);
    v1::GetSessionResponse response;
    return Outcome(world.sessions->GetSession(&context, request, &response));
  };
  // It may still be on its way at first.
  EXPECT_EQ(read(), kOverloaded);
  EXPECT_TRUE(Eventually([&] { return read() == "OK"; }));
  EXPECT_TRUE(Eventually([&] { return world.server->calls().answering == 0; }));
}

TEST(Shedding, RefusesNewWorkAndServesWhatGivesRoom) {
  RpcWorld world;
  world.MakeSession("s", {1});
  MemoryGuardOptions options;
  options.limit = 100;
  options.interval = absl::Milliseconds(1);
  options.resident = [] { return int64_t{99}; };
  options.trim = [] {};
  const MemoryGuard guard(options);
  ASSERT_TRUE(Eventually([&] { return guard.Shedding(); }));
  world.context.memory.guard = &guard;
  const grpc::Status refused = world.Generate("text: 'a'").status;
  EXPECT_EQ(Outcome(refused), kOverloaded);
  EXPECT_TRUE(HasRetryInfo(refused));
  EXPECT_EQ(Outcome(Tokenize(world, "a")), kOverloaded);
  v1::GetSessionRequest get;
  get.set_session_id("s");
  get.set_include_tokens(true);
  EXPECT_EQ(Outcome(CallRaw(world.channel, "/txl.v1.SessionService/GetSession",
                            get.SerializeAsString())
                        .status),
            kOverloaded);
  ExpectItSpeaks(world);
  EXPECT_EQ(world.GetSession("s").position(), 1);
  v1::DeleteSessionRequest request;
  request.set_session_id("s");
  EXPECT_EQ(
      Outcome(CallRaw(world.channel, "/txl.v1.SessionService/DeleteSession",
                      request.SerializeAsString())
                  .status),
      "OK");
}

}  // namespace
}  // namespace txl
