// The life of a whole server on a fake device.

#include "server/server.h"

#include <gmock/gmock.h>
#include <grpcpp/create_channel.h>

#include <algorithm>
#include <cstdio>
#include <thread>

#include "absl/time/clock.h"
#include "model/text/byte_vocabulary.h"
#include "server/base/text_file.h"
#include "server/signals.h"
#include "tests/fakes/fake_step_runner.h"
#include "tests/server/exporter/scrape.h"
#include "tests/server/tls/test_authority.h"
#include "txl/v1/generation_service.grpc.pb.h"
#include "txl/v1/model_service.grpc.pb.h"

namespace txl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using txl::testing::HttpGet;
using txl::testing::Scrape;
using txl::testing::ScrapeMetrics;

ModelDirectory ByteModel() {
  ModelDirectory model;
  model.name = "fake";
  model.fingerprint = "f00d";
  model.config.vocab_size = ByteVocabulary::kSize;
  model.vocabulary = std::make_unique<ByteVocabulary>();
  return model;
}

class ServerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    flags_.listen = "127.0.0.1:0";
    flags_.limits.max_tokens = 10'000'000;
    flags_.hang_limit = absl::ZeroDuration();  // tests hold the device
  }

  absl::Status Start() {
    FakeStepRunnerOptions options = {.vocab_size = ByteVocabulary::kSize};
    auto runner = std::make_unique<FakeStepRunner>(options);
    runner_ = runner.get();
    if (break_device_) runner->FailStep(0, absl::InternalError("no device"));
    auto server = Server::StartWith(flags_, ByteModel(), std::move(runner));
    if (!server.ok()) return server.status();
    server_ = *std::move(server);
    channel_ = grpc::CreateChannel(server_->address(),
                                   grpc::InsecureChannelCredentials());
    generation_ = v1::GenerationService::NewStub(channel_);
    model_ = v1::ModelService::NewStub(channel_);
    return absl::OkStatus();
  }

  v1::ServerState State() {
    grpc::ClientContext client;
    v1::GetServerStatusResponse response;
    EXPECT_TRUE(model_->GetServerStatus(&client, {}, &response).ok());
    return response.state();
  }

  static v1::GenerateRequest Endless() {
    v1::GenerateRequest request;
    request.set_text("a");
    request.mutable_stop()->set_max_tokens(10'000'000);
    return request;
  }

  ServerFlags flags_;
  bool break_device_ = false;
  FakeStepRunner* runner_ = nullptr;
  std::unique_ptr<Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::GenerationService::Stub> generation_;
  std::unique_ptr<v1::ModelService::Stub> model_;
};

TEST_F(ServerTest, ServesOnceAWarmUpTurnHasRun) {
  ASSERT_TRUE(Start().ok());
  EXPECT_THAT(server_->address(), StartsWith("127.0.0.1:"));
  EXPECT_NE(server_->address(), "127.0.0.1:0");
  EXPECT_FALSE(runner_->plans().empty());
  EXPECT_EQ(State(), v1::SERVER_STATE_READY);
}

TEST_F(ServerTest, DoesNotStartOnADeviceThatCannotStep) {
  break_device_ = true;
  EXPECT_EQ(Start().code(), absl::StatusCode::kInternal);
}

TEST_F(ServerTest, DoesNotStartOnAnAddressInUse) {
  ASSERT_TRUE(Start().ok());
  flags_.listen = server_->address();
  const auto second = Server::StartWith(
      flags_, ByteModel(),
      std::make_unique<FakeStepRunner>(
          FakeStepRunnerOptions{.vocab_size = ByteVocabulary::kSize}));
  EXPECT_THAT(second.status().message(), HasSubstr(flags_.listen));
}

TEST_F(ServerTest, DoesNotStartWithoutItsAuditLog) {
  flags_.records.audit_log = "/no/such/folder/audit";
  EXPECT_THAT(Start().message(), AllOf(HasSubstr("--audit-log"),
                                       HasSubstr("/no/such/folder/audit")));
}

TEST_F(ServerTest, AfterAReloadCallsStandInNewFiles) {
  const std::string audit = ::testing::TempDir() + "/server_audit";
  const std::string spans = ::testing::TempDir() + "/server_spans";
  for (const std::string& path : {audit, spans}) std::remove(path.c_str());
  flags_.records.audit_log = audit;
  flags_.records.trace_file = spans;
  ASSERT_TRUE(Start().ok());
  State();
  for (const std::string& path : {audit, spans}) {
    // A call's lines may come after its answer.
    while (ReadTextFile(path).empty()) std::this_thread::yield();
    ASSERT_EQ(std::rename(path.c_str(), (path + ".1").c_str()), 0);
  }
  EXPECT_EQ(server_->Reload().size(), 2u);
  State();
  server_.reset();
  for (const std::string& path : {audit, spans}) {
    const std::string text = ReadTextFile(path);
    EXPECT_THAT(text, HasSubstr("txl.v1.ModelService/GetServerStatus"));
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
  }
}

TEST_F(ServerTest, ReportsTheEngineAndTheModel) {
  ASSERT_TRUE(Start().ok());
  grpc::ClientContext client;
  v1::GetModelResponse response;
  ASSERT_TRUE(model_->GetModel(&client, {}, &response).ok());
  EXPECT_EQ(response.name(), "fake");
  EXPECT_EQ(response.fingerprint(), "f00d");
  EXPECT_EQ(response.vocabulary_kind(), "bytes");
  EXPECT_EQ(response.device(), "fake");
  EXPECT_EQ(response.memory_length(), runner_->info().mem_len);
  EXPECT_EQ(response.bytes_per_session(), runner_->info().bytes_per_slot);
  EXPECT_EQ(response.limits().max_tokens(), 10'000'000);
}

TEST_F(ServerTest, HasNoMetricsEndpointUnlessAsked) {
  ASSERT_TRUE(Start().ok());
  EXPECT_EQ(server_->metrics_address(), "");
}

TEST_F(ServerTest, ExportsWhenTheCertificateThatItShowsIsValid) {
  const TestAuthority authority("Test CA");
  TestFiles files(authority.IssueServer());
  flags_.tls = files.files();
  flags_.metrics_listen = "127.0.0.1:0";
  ASSERT_TRUE(Start().ok());
  const auto hours_left = [this] {
    return (ScrapeMetrics(server_->metrics_address())
                .At("txl_tls_certificate_end_seconds") -
            static_cast<double>(absl::ToUnixSeconds(absl::Now()))) /
           3600;
  };
  EXPECT_NEAR(hours_left(), 1, 0.2);
  EXPECT_LE(ScrapeMetrics(server_->metrics_address())
                .At("txl_tls_certificate_begin_seconds"),
            static_cast<double>(absl::ToUnixSeconds(absl::Now())));
  files.Write(authority.Issue({"server", "IP:127.0.0.1", absl::Hours(30)}));
  server_->Reload();
  EXPECT_NEAR(hours_left(), 30, 0.2);
}

TEST_F(ServerTest, ExportsTheStatusAndTheFactsOfItsModel) {
  flags_.metrics_listen = "127.0.0.1:0";
  ASSERT_TRUE(Start().ok());
  EXPECT_THAT(server_->metrics_address(), StartsWith("127.0.0.1:"));
  const Scrape scrape = ScrapeMetrics(server_->metrics_address());
  EXPECT_EQ(scrape.At("txl_server_state{state=\"ready\"}"), 1);
  EXPECT_EQ(scrape.At("txl_session_slots"), runner_->info().slots);
  // The warm-up.
  EXPECT_EQ(scrape.At("txl_requests_started_total"), 1);
  EXPECT_EQ(scrape.samples.count("txl_tls_certificate_end_seconds"), 0u);
  const auto names = scrape.samples.lower_bound("txl_model_info{");
  EXPECT_THAT(names->first, AllOf(HasSubstr("name=\"fake\""),
                                  HasSubstr("fingerprint=\"f00d\""),
                                  HasSubstr("device=\"fake\"")));
}

TEST_F(ServerTest, DrainLetsRunningTurnsFinishAndExportsUntilItIsDone) {
  flags_.metrics_listen = "127.0.0.1:0";
  flags_.drain_timeout = absl::Seconds(60);
  ASSERT_TRUE(Start().ok());
  const std::string address = server_->metrics_address();
  runner_->Hold();
  v1::GenerateRequest request;
  request.set_text("a");
  request.mutable_stop()->set_max_tokens(5);
  grpc::ClientContext client;
  auto reader = generation_->Generate(&client, request);
  v1::GenerateResponse event;
  ASSERT_TRUE(reader->Read(&event));  // Started
  std::thread drain([&] { server_->Drain(); });
  while (State() != v1::SERVER_STATE_DRAINING) {
  }
  const Scrape scrape = ScrapeMetrics(address);
  EXPECT_EQ(scrape.At("txl_server_state{state=\"draining\"}"), 1);
  EXPECT_EQ(scrape.At("txl_requests_running"), 1);
  runner_->Release();
  v1::GenerateResponse last;
  while (reader->Read(&event)) last = event;
  EXPECT_TRUE(reader->Finish().ok());
  EXPECT_EQ(last.finished().reason(), v1::FINISH_REASON_MAX_TOKENS);
  drain.join();
  EXPECT_EQ(HttpGet(address, "/metrics").code, 0);
}

TEST_F(ServerTest, DoesNotStartWhereItsMetricsCannotListen) {
  flags_.metrics_listen = "127.0.0.1:0";
  ASSERT_TRUE(Start().ok());
  flags_.metrics_listen = server_->metrics_address();
  const auto second = Server::StartWith(
      flags_, ByteModel(),
      std::make_unique<FakeStepRunner>(
          FakeStepRunnerOptions{.vocab_size = ByteVocabulary::kSize}));
  EXPECT_THAT(
      second.status().message(),
      AllOf(HasSubstr("--metrics-listen"), HasSubstr(flags_.metrics_listen)));
}

TEST_F(ServerTest, ListensOnAUnixSocket) {
  flags_.listen = "unix:" + ::testing::TempDir() + "/txl-server-test.sock";
  ASSERT_TRUE(Start().ok());
  EXPECT_EQ(server_->address(), flags_.listen);
  EXPECT_EQ(State(), v1::SERVER_STATE_READY);
}

TEST_F(ServerTest, LeavesAUnixSocketToTheServerThatHasIt) {
  flags_.listen = "unix:" + ::testing::TempDir() + "/txl-server-two.sock";
  ASSERT_TRUE(Start().ok());
  const auto second = Server::StartWith(
      flags_, ByteModel(),
      std::make_unique<FakeStepRunner>(
          FakeStepRunnerOptions{.vocab_size = ByteVocabulary::kSize}));
  EXPECT_THAT(second.status().message(),
              AllOf(HasSubstr(flags_.listen), HasSubstr("another server")));
  // A new connection, which needs the file.
  channel_ =
      grpc::CreateChannel(flags_.listen, grpc::InsecureChannelCredentials());
  model_ = v1::ModelService::NewStub(channel_);
  EXPECT_EQ(State(), v1::SERVER_STATE_READY);
  server_.reset();
  EXPECT_TRUE(Start().ok());  // the first has left it
}

using ServerDeathTest = ServerTest;

TEST_F(ServerDeathTest, EndsWhenItsDeviceHangs) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto hang = [this] {
    flags_.hang_limit = absl::Milliseconds(1);
    ASSERT_TRUE(Start().ok());
    runner_->Hold();
    grpc::ClientContext client;
    auto reader = generation_->Generate(&client, Endless());
    v1::GenerateResponse event;
    while (reader->Read(&event)) {
    }
  };
  EXPECT_EXIT(hang(), ::testing::ExitedWithCode(kExitNotServing),
              "\"cause\":\"hang\"");
}

TEST_F(ServerTest, DrainEndsTheRestWithServerDrain) {
  flags_.drain_timeout = absl::Milliseconds(50);
  ASSERT_TRUE(Start().ok());
  grpc::ClientContext client;
  auto reader = generation_->Generate(&client, Endless());
  v1::GenerateResponse event;
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(reader->Read(&event));
  std::thread drain([&] { server_->Drain(); });
  v1::GenerateResponse last;
  while (reader->Read(&event)) last = event;
  EXPECT_TRUE(reader->Finish().ok());
  EXPECT_EQ(last.finished().reason(), v1::FINISH_REASON_SERVER_DRAIN);
  drain.join();
}

TEST_F(ServerTest, DrainDoesNotWaitForAReaderThatDoesNotRead) {
  flags_.drain_timeout = absl::Milliseconds(50);
  ASSERT_TRUE(Start().ok());
  v1::GenerateRequest request = Endless();
  request.mutable_output()->set_logprobs(20);
  grpc::ClientContext client;
  auto reader = generation_->Generate(&client, request);
  const absl::Time end = absl::Now() + absl::Seconds(10);
  v1::GetServerStatusResponse status;
  while (status.turns_parked() == 0 && absl::Now() < end) {
    grpc::ClientContext asking;
    ASSERT_TRUE(model_->GetServerStatus(&asking, {}, &status).ok());
  }
  ASSERT_EQ(status.turns_parked(), 1);
  server_->Drain();  // returns: the reader never reads
  client.TryCancel();
}

}  // namespace
}  // namespace txl
