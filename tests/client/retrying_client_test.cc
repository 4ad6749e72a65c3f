#include "client/retrying_client.h"

#include <gmock/gmock.h>
#include <grpcpp/support/status.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "client/call_error.h"
#include "tests/client/fake_service.h"

namespace txl {
namespace {

using testing::FakeError;
using testing::FakeServer;
using testing::FakeService;
using testing::FinishedEvent;
using testing::StartedEvent;
using testing::TokenEvent;

constexpr char kText[] = "Hello";

class RetryingClientTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ChannelOptions options = {.address = server_.address()};
    auto client = Client::Create(options);
    ASSERT_TRUE(client.ok()) << client.status();
    plain_ = *std::move(client);
    policy_.max_failures = 3;
    policy_.first_delay = absl::Milliseconds(1);
    policy_.max_delay = absl::Milliseconds(2);
    request_.set_session_id("s");
    request_.set_text("abc");
  }

  // Attempt i sends the turn from its start and breaks after cuts[i] tokens;
  // the one after the last cut ends it.
  void BreakAfter(const std::vector<int>& cuts,
                  grpc::Status how = grpc::Status(grpc::UNAVAILABLE, "cut")) {
    server_->on_generate = [this, cuts, how](grpc::ServerContext*,
                                             const v1::GenerateRequest&,
                                             FakeService::Writer* writer) {
      const int count = 5;
      const size_t attempt = attempts_++;
      const int cut = attempt < cuts.size() ? cuts[attempt] : count;
      writer->Write(StartedEvent(0, 3));
      for (int i = 0; i < cut; ++i) writer->Write(TokenEvent(i, kText[i]));
      if (attempt < cuts.size()) return how;
      writer->Write(FinishedEvent(8, 3, count));
      return grpc::Status::OK;
    };
  }

  // As BreakAfter, but an attempt begins behind what was received, and breaks
  // after so many more tokens.
  void BreakAfterMore(const std::vector<int>& cuts) {
    server_->on_generate = [this, cuts](grpc::ServerContext*,
                                        const v1::GenerateRequest& request,
                                        FakeService::Writer* writer) {
      const int first = request.received().token_ids_size();
      const size_t attempt = attempts_++;
      const bool breaks = attempt < cuts.size();
      const int last = breaks ? first + cuts[attempt] : 5;
      writer->Write(StartedEvent(0, 3));
      for (int i = first; i < last; ++i) writer->Write(TokenEvent(i, kText[i]));
      if (breaks) return grpc::Status(grpc::UNAVAILABLE, "cut");
      writer->Write(FinishedEvent(8, 3, 5));
      return grpc::Status::OK;
    };
  }

  static v1::GenerateResponse DrainedEvent(int64_t position, int64_t tokens) {
    v1::GenerateResponse response = FinishedEvent(position, 3, tokens);
    response.mutable_finished()->set_reason(v1::FINISH_REASON_SERVER_DRAIN);
    return response;
  }

  static std::string Text(const v1::Received& received) {
    return {received.token_ids().begin(), received.token_ids().end()};
  }

  absl::Status Generate(const CallOptions& options = {}) {
    return RetryingClient(plain_.get(), policy_)
        .Generate(request_, options, [&](const v1::GenerateResponse& response) {
          if (response.has_started()) {
            ++started_;
            seed_ = response.started().seed();
          }
          finished_ += response.has_finished() ? 1 : 0;
          if (response.has_finished()) reason_ = response.finished().reason();
          text_ += response.token().text();
        });
  }

  FakeServer server_;
  std::unique_ptr<Client> plain_;
  RetryPolicy policy_;
  v1::GenerateRequest request_;
  size_t attempts_ = 0;
  int started_ = 0, finished_ = 0;
  uint64_t seed_ = 0;  // of the last Started
  v1::FinishReason reason_ = v1::FINISH_REASON_UNSPECIFIED;
  std::string text_;
};

TEST_F(RetryingClientTest, JoinsTheAttemptsToOneTurn) {
  BreakAfter({0, 1, 1, 4});
  EXPECT_TRUE(Generate().ok());
  EXPECT_EQ(text_, kText);
  EXPECT_EQ(started_, 1);
  EXPECT_EQ(finished_, 1);
  EXPECT_EQ(attempts_, 5u);
}

// Each attempt draws a seed of its own until a token has come.
TEST_F(RetryingClientTest, TellsTheSeedOfTheAttemptThatGaveTheTokens) {
  server_->on_generate = [this](grpc::ServerContext*,
                                const v1::GenerateRequest&,
                                FakeService::Writer* writer) {
    v1::GenerateResponse started = StartedEvent(0, 3);
    started.mutable_started()->set_seed(++attempts_);
    writer->Write(started);
    if (attempts_ == 1) return grpc::Status(grpc::UNAVAILABLE, "cut");
    writer->Write(TokenEvent(0, 'a'));
    writer->Write(FinishedEvent(4, 3, 1));
    return grpc::Status::OK;
  };
  ASSERT_TRUE(Generate().ok());
  EXPECT_EQ(started_, 2);
  EXPECT_EQ(seed_, 2u);
}

TEST_F(RetryingClientTest, ATurnThatOnlyEverBeginsIsGivenUp) {
  server_->on_generate = [this](grpc::ServerContext*,
                                const v1::GenerateRequest&,
                                FakeService::Writer* writer) {
    v1::GenerateResponse started = StartedEvent(0, 3);
    started.mutable_started()->set_seed(++attempts_);
    writer->Write(started);
    return grpc::Status(grpc::UNAVAILABLE, "cut");
  };
  EXPECT_EQ(Generate().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(attempts_, 3u);
}

TEST_F(RetryingClientTest, EveryAttemptIsTheSameRequestWithAnIdOfItsOwn) {
  BreakAfter({1, 2});
  ASSERT_TRUE(Generate().ok());
  attempts_ = 2;
  ASSERT_TRUE(Generate().ok());
  std::vector<v1::GenerateRequest> seen = server_->generate_requests();
  ASSERT_EQ(seen.size(), 4u);
  EXPECT_NE(seen[0].request_id(), "");
  EXPECT_FALSE(seen[0].has_received());
  EXPECT_EQ(Text(seen[1].received()), "H");
  EXPECT_EQ(Text(seen[2].received()), "He");
  for (v1::GenerateRequest& attempt : seen) attempt.clear_received();
  EXPECT_EQ(seen[1].ShortDebugString(), seen[0].ShortDebugString());
  EXPECT_EQ(seen[2].ShortDebugString(), seen[0].ShortDebugString());
  EXPECT_NE(seen[3].request_id(), seen[0].request_id());
}

TEST_F(RetryingClientTest, AnAttemptAfterStartedCarriesItsSeed) {
  server_->on_generate = [this](grpc::ServerContext*,
                                const v1::GenerateRequest& request,
                                FakeService::Writer* writer) {
    const bool first = attempts_++ == 0;
    EXPECT_EQ(request.has_received(), !first);
    EXPECT_EQ(request.received().seed(), first ? 0 : 77);
    EXPECT_EQ(request.received().token_ids_size(), 0);
    v1::GenerateResponse started = StartedEvent(0, 3);
    started.mutable_started()->set_seed(77);
    writer->Write(started);
    if (first) return grpc::Status(grpc::UNAVAILABLE, "cut");
    writer->Write(FinishedEvent(4, 3, 1));
    return grpc::Status::OK;
  };
  EXPECT_TRUE(Generate().ok());
  EXPECT_EQ(started_, 1);
}

TEST_F(RetryingClientTest, AnAnswerThatBeginsBehindWhatWasReceivedIsTheRest) {
  for (const char* session : {"s", ""}) {
    request_.set_session_id(session);
    BreakAfterMore({2, 0, 1});
    EXPECT_TRUE(Generate().ok());
    EXPECT_EQ(text_, kText);
    EXPECT_EQ(started_, 1);
    EXPECT_EQ(finished_, 1);
    EXPECT_EQ(attempts_, 4u);
    text_.clear();
    attempts_ = 0;
    started_ = finished_ = 0;
  }
}

TEST_F(RetryingClientTest, ARequestMayCarryWhatItsCallerHas) {
  request_.mutable_received()->add_token_ids('H');
  request_.mutable_received()->add_token_ids('e');
  BreakAfterMore({1});
  EXPECT_TRUE(Generate().ok());
  EXPECT_EQ(text_, "llo");
  EXPECT_EQ(started_, 1);
  EXPECT_EQ(Text(server_->generate_requests()[0].received()), "He");
  EXPECT_EQ(Text(server_->generate_requests()[1].received()), "Hel");
}

TEST_F(RetryingClientTest, TheCallersIdIsKept) {
  request_.set_request_id("mine");
  BreakAfter({1});
  ASSERT_TRUE(Generate().ok());
  EXPECT_EQ(server_->generate_requests()[1].request_id(), "mine");
}

TEST_F(RetryingClientTest, GivesUpWhenNothingNewComes) {
  BreakAfter({2, 2, 2, 2, 2, 2});
  const absl::Status status = Generate();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  // The first brought something new: three failures in a row follow it.
  EXPECT_EQ(attempts_, 3u);
  EXPECT_EQ(text_, "He");
  EXPECT_EQ(finished_, 0);
}

TEST_F(RetryingClientTest, WhatTheServerDecidedIsReturnedAtOnce) {
  BreakAfter({2, 2}, FakeError(grpc::ABORTED, "gone", "SESSION_DELETED"));
  const absl::Status status = Generate();
  EXPECT_EQ(GetCallError(status).reason, "SESSION_DELETED");
  EXPECT_EQ(attempts_, 1u);
}

TEST_F(RetryingClientTest, ABusySessionIsWaitedFor) {
  BreakAfter({0, 0}, FakeError(grpc::ABORTED, "busy", "SESSION_BUSY", "", 1));
  EXPECT_TRUE(Generate().ok());
  EXPECT_EQ(text_, kText);
}

// The server's last words, not the turn's.
TEST_F(RetryingClientTest, AnotherServerGoesOnWhereADrainEndedTheTurn) {
  server_->on_generate = [this](grpc::ServerContext*,
                                const v1::GenerateRequest& request,
                                FakeService::Writer* writer) {
    const int first = request.received().token_ids_size();
    const bool drains = attempts_++ == 0;
    writer->Write(StartedEvent(0, 3));
    for (int i = first; i < (drains ? 2 : 5); ++i) {
      writer->Write(TokenEvent(i, kText[i]));
    }
    writer->Write(drains ? DrainedEvent(5, 2) : FinishedEvent(8, 3, 5));
    return grpc::Status::OK;
  };
  EXPECT_TRUE(Generate().ok());
  EXPECT_EQ(text_, kText);
  EXPECT_EQ(finished_, 1);
  EXPECT_EQ(reason_, v1::FINISH_REASON_MAX_TOKENS);
}

TEST_F(RetryingClientTest, ADrainIsTheEndWhereNoServerGoesOn) {
  server_->on_generate = [this](grpc::ServerContext*,
                                const v1::GenerateRequest&,
                                FakeService::Writer* writer) {
    if (attempts_++ > 0) return grpc::Status(grpc::UNAVAILABLE, "gone");
    writer->Write(StartedEvent(0, 3));
    writer->Write(TokenEvent(0, 'H'));
    writer->Write(DrainedEvent(4, 1));
    return grpc::Status::OK;
  };
  EXPECT_TRUE(Generate().ok());
  EXPECT_EQ(text_, "H");
  EXPECT_EQ(finished_, 1);
  EXPECT_EQ(reason_, v1::FINISH_REASON_SERVER_DRAIN);
  EXPECT_EQ(attempts_, 3u);
}

// It takes no notice of what was received.
TEST_F(RetryingClientTest, AServerThatBeginsAtTheStartIsFollowed) {
  request_.clear_session_id();
  BreakAfter({2, 1, 3});
  EXPECT_TRUE(Generate().ok());
  EXPECT_EQ(text_, kText);
  EXPECT_EQ(started_, 1);
  EXPECT_EQ(attempts_, 4u);
}

TEST_F(RetryingClientTest, ATurnThatIsNotTheSameIsDataLoss) {
  server_->on_generate = [this](grpc::ServerContext*,
                                const v1::GenerateRequest&,
                                FakeService::Writer* writer) {
    const bool first = attempts_++ == 0;
    writer->Write(StartedEvent(0, 3));
    writer->Write(TokenEvent(0, first ? 'a' : 'b'));
    return grpc::Status(grpc::UNAVAILABLE, "cut");
  };
  EXPECT_EQ(Generate().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(text_, "a");
}

TEST_F(RetryingClientTest, AFinishedTurnIsWholeWhateverItsStatus) {
  server_->on_generate = [this](grpc::ServerContext*,
                                const v1::GenerateRequest&,
                                FakeService::Writer* writer) {
    ++attempts_;
    writer->Write(StartedEvent(0, 3));
    writer->Write(FinishedEvent(3, 3, 0));
    return grpc::Status(grpc::UNAVAILABLE, "cut behind the end");
  };
  EXPECT_TRUE(Generate().ok());
  EXPECT_EQ(attempts_, 1u);
}

TEST_F(RetryingClientTest, TheTimeoutIsThatOfAllAttempts) {
  policy_.max_failures = 1'000'000;
  policy_.first_delay = policy_.max_delay = absl::Milliseconds(10);
  BreakAfter(std::vector<int>(1'000'000, 0));
  CallOptions options = {.timeout = absl::Milliseconds(200)};
  EXPECT_FALSE(Generate(options).ok());
  EXPECT_GT(attempts_, 1u);
}

TEST_F(RetryingClientTest, ACancelledCallIsNotRetried) {
  policy_.first_delay = policy_.max_delay = absl::InfiniteDuration();
  BreakAfter({1, 1});
  Canceller canceller;
  CallOptions options = {.canceller = &canceller};
  std::thread cancel([&] {
    while (server_->generate_requests().empty()) std::this_thread::yield();
    canceller.Cancel();
  });
  EXPECT_FALSE(Generate(options).ok());
  cancel.join();
  EXPECT_EQ(server_->generate_requests().size(), 1u);
}

TEST_F(RetryingClientTest, AnAppendIsSentAgainUnderItsId) {
  server_->unary_status = grpc::Status(grpc::UNAVAILABLE, "cut");
  v1::AppendTokensRequest request;
  request.set_session_id("s");
  request.set_text("abc");
  const auto response =
      RetryingClient(plain_.get(), policy_).AppendTokens(request);
  EXPECT_EQ(response.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(server_->calls().size(), 3u);
}

using testing::FakeError;

absl::Status Server(grpc::StatusCode code, const std::string& reason,
                    std::optional<int64_t> retry_milliseconds = {}) {
  return FromGrpcStatus(FakeError(code, "m", reason, "", retry_milliseconds));
}

RetryPolicy Policy() {
  return {.max_failures = 6,
          .first_delay = absl::Milliseconds(100),
          .max_delay = absl::Milliseconds(500)};
}

TEST(IsRetryable, WhatAnotherAttemptMayNotMeet) {
  EXPECT_TRUE(IsRetryable(absl::UnavailableError("no server")));
  EXPECT_TRUE(IsRetryable(Server(grpc::UNAVAILABLE, "DRAINING")));
  EXPECT_TRUE(IsRetryable(Server(grpc::RESOURCE_EXHAUSTED, "QUEUE_FULL", 100)));
  EXPECT_TRUE(IsRetryable(Server(grpc::ABORTED, "SESSION_BUSY", 100)));
}

TEST(IsRetryable, CallsThatBrokeOnTheWay) {
  EXPECT_TRUE(IsRetryable(absl::InternalError("RST_STREAM")));
  EXPECT_TRUE(IsRetryable(absl::UnknownError("stream removed")));
  EXPECT_TRUE(IsRetryable(absl::CancelledError("reset by a proxy")));
}

TEST(IsRetryable, NotWhatTheServerDecided) {
  EXPECT_FALSE(IsRetryable(absl::OkStatus()));
  EXPECT_FALSE(IsRetryable(Server(grpc::INTERNAL, "STEP_FAILED")));
  EXPECT_FALSE(IsRetryable(Server(grpc::ABORTED, "SUPERSEDED")));
  EXPECT_FALSE(IsRetryable(Server(grpc::ABORTED, "SESSION_DELETED")));
  EXPECT_FALSE(IsRetryable(Server(grpc::NOT_FOUND, "SESSION_UNKNOWN")));
  EXPECT_FALSE(IsRetryable(Server(grpc::INVALID_ARGUMENT, "FIELD_INVALID")));
  EXPECT_FALSE(IsRetryable(Server(grpc::CANCELLED, "CANCELLED")));
  EXPECT_FALSE(IsRetryable(absl::DeadlineExceededError("too late")));
}

// The words of gRPC 1.51.
TEST(IsRetryable, NotWhatTheNextAttemptMeetsToo) {
  EXPECT_FALSE(IsRetryable(absl::UnavailableError(
      "failed to connect to all addresses; last error: INTERNAL: "
      "ipv4:127.0.0.1:1: Trying to connect an http1.x server")));
  const std::string proxy = "Received http2 header with status: ";
  EXPECT_FALSE(IsRetryable(absl::InternalError(proxy + "400")));
  for (const char* status : {"405", "413", "415", "431", "501", "505"}) {
    EXPECT_FALSE(IsRetryable(absl::UnknownError(proxy + status))) << status;
  }
  for (const char* status : {"408", "425", "500"}) {
    EXPECT_TRUE(IsRetryable(absl::UnknownError(proxy + status))) << status;
  }
  for (const char* status : {"429", "502", "503", "504"}) {
    EXPECT_TRUE(IsRetryable(absl::UnavailableError(proxy + status))) << status;
  }
}

TEST(IsRetryable, NotAMessageThatIsTooLarge) {
  EXPECT_FALSE(IsRetryable(absl::ResourceExhaustedError(
      "Received message larger than max (10000043 vs. 1048576)")));
}

TEST(RetryDelay, DoublesUpToTheLongest) {
  const absl::Status status = absl::UnavailableError("m");
  const absl::Duration expected[] = {
      absl::Milliseconds(100), absl::Milliseconds(200), absl::Milliseconds(400),
      absl::Milliseconds(500), absl::Milliseconds(500)};
  for (int failures = 1; failures <= 5; ++failures) {
    EXPECT_EQ(RetryDelay(Policy(), failures, status, 0),
              expected[failures - 1]);
  }
}

TEST(RetryDelay, GivesUpAfterTheLastFailure) {
  const absl::Status status = absl::UnavailableError("m");
  EXPECT_EQ(RetryDelay(Policy(), 6, status, 0), std::nullopt);
  RetryPolicy once = {.max_failures = 1};
  EXPECT_EQ(RetryDelay(once, 1, status, 0), std::nullopt);
}

TEST(RetryDelay, GivesUpWhereARetryMakesNoSense) {
  EXPECT_EQ(RetryDelay(Policy(), 1, absl::NotFoundError("m"), 0), std::nullopt);
}

TEST(RetryDelay, JitterShortensByUpToAHalf) {
  const absl::Status status = absl::UnavailableError("m");
  EXPECT_EQ(RetryDelay(Policy(), 1, status, 0.5), absl::Milliseconds(75));
  EXPECT_GT(*RetryDelay(Policy(), 1, status, 0.999), absl::Milliseconds(50));
}

TEST(RetryDelay, IsNeverShorterThanTheServerAsksFor) {
  const absl::Status busy = Server(grpc::ABORTED, "SESSION_BUSY", 3000);
  EXPECT_EQ(RetryDelay(Policy(), 1, busy, 0.9), absl::Seconds(3));
  const absl::Status soon = Server(grpc::ABORTED, "SESSION_BUSY", 1);
  EXPECT_EQ(RetryDelay(Policy(), 1, soon, 0), absl::Milliseconds(100));
}

}  // namespace

}  // namespace txl
