#include "client/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "client/call_error.h"
#include "tests/client/fake_service.h"

namespace txl {
namespace {

using ::testing::ElementsAre;
using testing::FakeError;
using testing::FakeServer;
using testing::FakeService;
using ::testing::HasSubstr;

ChannelOptions At(const std::string& address) { return {.address = address}; }

class ClientTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto client = Client::Create(At(server_.address()));
    ASSERT_TRUE(client.ok()) << client.status();
    client_ = *std::move(client);
  }

  FakeServer server_;
  std::unique_ptr<Client> client_;
};

TEST_F(ClientTest, AnAddressThatIsNoneFailsAtOnce) {
  EXPECT_EQ(Client::Create(At("nowhere")).status().code(),
            absl::StatusCode::kInvalidArgument);
}

// The example of client.h, but for the stream.
absl::Status StreamOneTurn(const ChannelOptions& server, std::ostream& out) {
  absl::StatusOr<std::unique_ptr<Client>> client = Client::Create(server);
  if (!client.ok()) return client.status();
  v1::GenerateRequest request;
  request.set_text("ROMEO:");
  CallOptions options = {.timeout = absl::Seconds(30)};
  return (*client)->Generate(
      request, options, [&out](const v1::GenerateResponse& response) {
        out << response.token().text() << response.finished().text();
      });
}

TEST_F(ClientTest, TheHeadersExampleStreamsText) {
  std::ostringstream out;
  const absl::Status status = StreamOneTurn(At(server_.address()), out);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(out.str(), "Hello");
  EXPECT_FALSE(StreamOneTurn(At("nowhere"), out).ok());
}

// A server says the trace before its answer; a proxy that answers itself, with
// the status.
TEST_F(ClientTest, AnErrorNamesTheTraceThatCameBack) {
  constexpr char kTrace[] = "4bf92f3577b34da6a3ce929d0e0e4736";
  const std::string parent =
      absl::StrCat("00-", kTrace, "-00f067aa0ba902b7-01");
  for (const bool initial : {true, false}) {
    server_->on_generate = [&](grpc::ServerContext* context,
                               const v1::GenerateRequest&,
                               FakeService::Writer*) {
      initial ? context->AddInitialMetadata("traceparent", parent)
              : context->AddTrailingMetadata("traceparent", parent);
      return grpc::Status(grpc::RESOURCE_EXHAUSTED, "full");
    };
    const absl::Status status =
        client_->Generate({}, {}, [](const v1::GenerateResponse&) {});
    EXPECT_EQ(GetCallError(status).trace_id, kTrace);
    EXPECT_EQ(DescribeError(status),
              absl::StrCat("RESOURCE_EXHAUSTED: full; trace ", kTrace));
  }
}

TEST_F(ClientTest, ACallThatReachesNobodyHasNoTrace) {
  auto nobody = Client::Create(At("127.0.0.1:1"));
  ASSERT_TRUE(nobody.ok());
  const absl::Status status =
      (*nobody)->Generate({}, {}, [](const v1::GenerateResponse&) {});
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(GetCallError(status).trace_id, "");
  EXPECT_EQ(GetCallError((*nobody)->GetModel().status()).trace_id, "");
}

TEST_F(ClientTest, HandsOverEveryEventInOrder) {
  v1::GenerateRequest request;
  request.set_text("abc");
  std::vector<int> cases;
  std::string text;
  const absl::Status status =
      client_->Generate(request, {}, [&](const v1::GenerateResponse& response) {
        cases.push_back(response.event_case());
        text += response.token().text();
      });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(text, "Hello");
  EXPECT_THAT(cases, ElementsAre(1, 2, 2, 2, 2, 2, 4));
}

TEST_F(ClientTest, EventsArriveWhileTheTurnStillRuns) {
  absl::Notification first_token_seen;
  server_->on_generate = [&](grpc::ServerContext*, const v1::GenerateRequest&,
                             FakeService::Writer* writer) {
    writer->Write(testing::StartedEvent(0, 1));
    writer->Write(testing::TokenEvent(0, 'a'));
    first_token_seen.WaitForNotification();
    writer->Write(testing::FinishedEvent(2, 1, 1));
    return grpc::Status::OK;
  };
  const absl::Status status =
      client_->Generate({}, {}, [&](const v1::GenerateResponse& response) {
        if (response.has_token()) first_token_seen.Notify();
      });
  EXPECT_TRUE(status.ok()) << status;
}

TEST_F(ClientTest, AStreamThatEndsWithoutFinishedIsAnError) {
  server_->on_generate = [](grpc::ServerContext*, const v1::GenerateRequest&,
                            FakeService::Writer* writer) {
    writer->Write(testing::StartedEvent(0, 1));
    return grpc::Status::OK;
  };
  EXPECT_EQ(client_->Generate({}, {}, [](const auto&) {}).code(),
            absl::StatusCode::kInternal);
}

TEST_F(ClientTest, AnErrorComesWithItsReasonAfterTheEventsBeforeIt) {
  server_->on_generate = [](grpc::ServerContext*, const v1::GenerateRequest&,
                            FakeService::Writer* writer) {
    writer->Write(testing::StartedEvent(0, 1));
    writer->Write(testing::TokenEvent(0, 'a'));
    return FakeError(grpc::RESOURCE_EXHAUSTED, "read faster",
                     "CLIENT_TOO_SLOW");
  };
  int events = 0;
  const absl::Status status =
      client_->Generate({}, {}, [&](const auto&) { ++events; });
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(GetCallError(status).reason, "CLIENT_TOO_SLOW");
  EXPECT_LE(events, 2);
}

TEST_F(ClientTest, CancellingEndsARunningTurn) {
  server_->on_generate = [](grpc::ServerContext* context,
                            const v1::GenerateRequest&,
                            FakeService::Writer* writer) {
    writer->Write(testing::StartedEvent(0, 1));
    return testing::WaitUntilCancelled(context);
  };
  Canceller canceller;
  const absl::Status status = client_->Generate(
      {}, {.canceller = &canceller}, [&](const auto&) { canceller.Cancel(); });
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
  EXPECT_TRUE(canceller.cancelled());
}

TEST_F(ClientTest, ACallWithACancelledCancellerDoesNotRun) {
  Canceller canceller;
  canceller.Cancel();
  EXPECT_EQ(client_->GetModel({.canceller = &canceller}).status().code(),
            absl::StatusCode::kCancelled);
}

TEST_F(ClientTest, ATimeoutEndsTheCallWithDeadlineExceeded) {
  server_->on_generate = [](grpc::ServerContext* context,
                            const v1::GenerateRequest&, FakeService::Writer*) {
    return testing::WaitUntilCancelled(context);
  };
  EXPECT_EQ(client_
                ->Generate({}, {.timeout = absl::Milliseconds(20)},
                           [](const auto&) {})
                .code(),
            absl::StatusCode::kDeadlineExceeded);
}

TEST_F(ClientTest, EveryCallThatNamesASessionSendsItsHeader) {
  v1::GenerateRequest generate;
  generate.set_session_id("s-1");
  (void)client_->Generate(generate, {}, [](const auto&) {});
  v1::ScoreRequest score;
  score.set_session_id("s-1");
  (void)client_->Score(score);
  v1::CreateSessionRequest create;
  create.set_session_id("s-1");
  (void)client_->CreateSession(create);
  v1::AppendTokensRequest append;
  append.set_session_id("s-1");
  (void)client_->AppendTokens(append);
  v1::GetSessionRequest get;
  get.set_session_id("s-1");
  (void)client_->GetSession(get);
  v1::DeleteSessionRequest remove;
  remove.set_session_id("s-1");
  (void)client_->DeleteSession(remove);
  const std::vector<testing::SeenCall> calls = server_->calls();
  ASSERT_EQ(calls.size(), 6u);
  for (const testing::SeenCall& call : calls) {
    EXPECT_EQ(call.session_header, "s-1") << call.method;
  }
}

TEST_F(ClientTest, SessionsAreForkedRewoundExportedAndImported) {
  v1::ImportSessionRequest import;
  import.set_session_id("s");
  // Two pieces, one larger than a message is.
  std::vector<std::string> pieces = {"", std::string(300 << 10, 'x'), "FAKE"};
  const auto imported =
      client_->ImportSession(import, {}, [&]() -> absl::StatusOr<std::string> {
        std::string piece = std::move(pieces.back());
        pieces.pop_back();
        return piece;
      });
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_EQ(imported->session().position(), 300 << 10);
  EXPECT_THAT(server_->import_chunk_sizes,
              ElementsAre(0, 4, 256 << 10, 44 << 10));
  v1::RewindSessionRequest rewind;
  rewind.set_session_id("s");
  rewind.set_position(5);
  EXPECT_EQ(client_->RewindSession(rewind)->session().position(), 5);
  v1::ForkSessionRequest fork;
  fork.set_session_id("s");
  fork.set_new_session_id("t");
  EXPECT_EQ(client_->ForkSession(fork)->session().session_id(), "t");
  v1::ExportSessionRequest request;
  request.set_session_id("s");
  std::string file;
  EXPECT_TRUE(client_
                  ->ExportSession(request, {},
                                  [&](absl::string_view chunk) {
                                    file.append(chunk.data(), chunk.size());
                                    return absl::OkStatus();
                                  })
                  .ok());
  EXPECT_EQ(file, "FAKExxxxx");
  for (const testing::SeenCall& call : server_->calls()) {
    EXPECT_EQ(call.session_header, "s") << call.method;
  }
}

TEST_F(ClientTest, AFileThatCannotBeReadOrWrittenEndsTheCall) {
  const absl::Status broken = absl::DataLossError("broken");
  v1::ImportSessionRequest import;
  EXPECT_EQ(client_->ImportSession(import, {}, [&] { return broken; }).status(),
            broken);
  EXPECT_TRUE(server_->sessions().empty());
  v1::CreateSessionRequest create;
  create.set_session_id("s");
  (void)client_->CreateSession(create);
  v1::ExportSessionRequest request;
  request.set_session_id("s");
  EXPECT_EQ(client_->ExportSession(request, {},
                                   [&](absl::string_view) { return broken; }),
            broken);
}

TEST_F(ClientTest, CallsWithoutASessionSendNoHeader) {
  (void)client_->Generate({}, {}, [](const auto&) {});
  (void)client_->Score({});
  (void)client_->CreateSession({});
  (void)client_->ListSessions({});
  (void)client_->GetModel();
  (void)client_->GetServerStatus();
  (void)client_->Tokenize({});
  (void)client_->Detokenize({});
  const std::vector<testing::SeenCall> calls = server_->calls();
  ASSERT_EQ(calls.size(), 8u);
  for (const testing::SeenCall& call : calls) {
    EXPECT_FALSE(call.session_header.has_value()) << call.method;
  }
}

TEST_F(ClientTest, ASessionIdThatNoHeaderMayCarryStillReachesTheServer) {
  v1::GetSessionRequest request;
  request.set_session_id("caf\xc3\xa9 \n");
  EXPECT_EQ(client_->GetSession(request).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_FALSE(server_->calls().front().session_header.has_value());
}

TEST_F(ClientTest, UnaryErrorsCarryReasonAndRetryDelay) {
  server_->unary_status =
      FakeError(grpc::RESOURCE_EXHAUSTED, "full", "NO_SESSION_MEMORY", "", 300);
  const absl::Status status = client_->CreateSession({}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(GetCallError(status).reason, "NO_SESSION_MEMORY");
  EXPECT_EQ(GetCallError(status).retry_delay, absl::Milliseconds(300));
}

TEST_F(ClientTest, UnaryCallsReturnTheServersAnswer) {
  v1::TokenizeRequest text;
  text.set_text("AB");
  const auto tokens = client_->Tokenize(text);
  ASSERT_TRUE(tokens.ok()) << tokens.status();
  EXPECT_THAT(tokens->token_ids(), ElementsAre(65, 66));
  v1::DetokenizeRequest ids;
  ids.add_token_ids(72);
  EXPECT_EQ(client_->Detokenize(ids)->text(), "H");
  EXPECT_EQ(client_->GetModel()->name(), "fake");
  EXPECT_EQ(client_->GetServerStatus()->state(), v1::SERVER_STATE_READY);
}

TEST(ClientWithoutServer, CallsAreUnavailable) {
  auto client = Client::Create(At("unix:no-such-socket"));
  ASSERT_TRUE(client.ok()) << client.status();
  EXPECT_EQ((*client)->GetModel().status().code(),
            absl::StatusCode::kUnavailable);
}

TEST(ClientWithoutServer, ConnectGivesUpAfterItsTimeout) {
  auto client = Client::Create(At("unix:no-such-socket"));
  ASSERT_TRUE(client.ok()) << client.status();
  const absl::Status status = (*client)->Connect(absl::Milliseconds(50));
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("50ms"));
}

TEST(ClientWithoutServer, ConnectTriesAgainAfterAFailedAttempt) {
  const std::string address =
      absl::StrCat("unix:", ::testing::TempDir(), "late-", getpid());
  auto client = Client::Create(At(address));
  ASSERT_TRUE(client.ok()) << client.status();
  ASSERT_FALSE((*client)->GetModel().ok());
  FakeServer server(address);
  EXPECT_TRUE((*client)->Connect(absl::Seconds(20)).ok());
  EXPECT_EQ((*client)->GetModel()->name(), "fake");
}

}  // namespace
}  // namespace txl
