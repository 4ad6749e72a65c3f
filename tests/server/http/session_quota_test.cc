// What a tenant may keep as sessions, as clients meet it over gRPC and HTTP.

#include <gmock/gmock.h>

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "server/session/token_sequence.h"
#include "tests/server/http/http_world.h"

namespace txl {
namespace {

using ::testing::HasSubstr;

class SessionQuotas : public ::testing::Test {
 protected:
  SessionQuotas() {
    HttpWorldOptions options;
    options.rpc.tenants.emplace().emplace(kDefaultTenant, TenantLimits());
    world_ = std::make_unique<HttpWorld>(std::move(options));
  }

  // The file of --tenants says so from now on.
  void Allow(std::optional<int64_t> sessions, std::optional<int64_t> bytes) {
    TenantLimits limits;
    limits.sessions = sessions;
    limits.bytes = bytes;
    world_->rpc.tenants->SetLimits({{kDefaultTenant, limits}},
                                   Clock::Real()->Monotonic());
  }
  // docs/operating.md, once more.
  int64_t Told(int64_t tokens) const {
    return 2048 + TokenSequence::BytesFor(tokens) +
           (tokens >= 2 ? world_->rpc.runner.info().bytes_per_slot : 0);
  }
  TenantCounts Counts() const {
    for (const TenantCounts& counts :
         world_->rpc.server->Status().snapshot.tenants) {
      if (counts.tenant == kDefaultTenant) return counts;
    }
    return TenantCounts();
  }
  grpc::Status Create(const std::string& id) {
    grpc::ClientContext client;
    v1::CreateSessionRequest request;
    request.set_session_id(id);
    v1::CreateSessionResponse response;
    return world_->rpc.sessions->CreateSession(&client, request, &response);
  }
  grpc::Status Fork(const std::string& id) {
    grpc::ClientContext client;
    v1::ForkSessionRequest request;
    request.set_session_id(id);
    v1::ForkSessionResponse response;
    return world_->rpc.sessions->ForkSession(&client, request, &response);
  }
  grpc::Status Append(const std::string& request) {
    grpc::ClientContext client;
    v1::AppendTokensResponse response;
    return world_->rpc.sessions->AppendTokens(
        &client, Proto<v1::AppendTokensRequest>(request), &response);
  }
  std::string Export(const std::string& from) {
    grpc::ClientContext out;
    v1::ExportSessionRequest asked;
    asked.set_session_id(from);
    auto reader = world_->rpc.sessions->ExportSession(&out, asked);
    std::string file;
    v1::ExportSessionResponse piece;
    while (reader->Read(&piece)) file += piece.chunk();
    EXPECT_TRUE(reader->Finish().ok());
    return file;
  }
  // A session that is exported from here, sent back as another one.
  grpc::Status Import(const std::string& from) {
    return Send(Export(from), /*whole=*/true);
  }
  // Or only its beginning, behind which the client waits.
  grpc::Status Send(const std::string& bytes, bool whole) {
    grpc::ClientContext in;
    in.set_deadline(std::chrono::system_clock::now() +
                    std::chrono::seconds(10));
    v1::ImportSessionResponse response;
    auto writer = world_->rpc.sessions->ImportSession(&in, &response);
    v1::ImportSessionRequest request;
    request.set_chunk(bytes);
    writer->Write(request);
    if (whole) writer->WritesDone();
    return writer->Finish();
  }
  static void ExpectQuota(const grpc::Status& status, const std::string& quota,
                          int64_t held, int64_t allowed) {
    EXPECT_EQ(Outcome(status), "RESOURCE_EXHAUSTED QUOTA");
    EXPECT_EQ(ErrorMetadata(status, "quota"), quota);
    EXPECT_EQ(ErrorMetadata(status, "held"), absl::StrCat(held));
    EXPECT_EQ(ErrorMetadata(status, "allowed"), absl::StrCat(allowed));
    EXPECT_FALSE(HasRetryInfo(status)) << "nobody knows when";
  }

  std::unique_ptr<HttpWorld> world_;
};

TEST_F(SessionQuotas, SessionsOverTheLimitAreRefusedWhereverTheyComeFrom) {
  Allow(2, {});
  world_->rpc.MakeSession("a", {1, 2, 3});
  world_->rpc.MakeSession("b");
  ExpectQuota(Create("c"), "sessions", 2, 2);
  ExpectQuota(Fork("a"), "sessions", 2, 2);
  ExpectQuota(Import("a"), "sessions", 2, 2);
  EXPECT_EQ(Outcome(Create("a")), "ALREADY_EXISTS SESSION_EXISTS");
  for (const std::string path : {"/v1/sessions", "/v1/sessions/a/fork"}) {
    const HttpAnswer answer = world_->Post(path, nlohmann::json::object());
    EXPECT_EQ(answer.outcome(), "429 QUOTA");
    EXPECT_THAT(answer.body, HasSubstr("the tenant's quota sessions = 2"));
    EXPECT_EQ(answer.header("retry-after"), "absent");
  }
  EXPECT_EQ(Counts().sessions, 2);
  EXPECT_EQ(Counts().session_bytes, Told(3) + Told(0));
  EXPECT_EQ(Counts().refused, 5);

  EXPECT_EQ(world_->Send("DELETE", "/v1/sessions/b").status, 200);
  EXPECT_EQ(Outcome(Import("a")), "OK");
  ExpectQuota(Create("c"), "sessions", 2, 2);
  EXPECT_EQ(Counts().session_bytes, 2 * Told(3));
}

// The head is some 60 bytes, with 100 of ids behind it.
TEST_F(SessionQuotas, AnImportIsRefusedAsSoonAsItSaysHowLargeItIs) {
  world_->rpc.MakeSession("a", std::vector<int32_t>(100, 'x'));
  const std::string head = Export("a").substr(0, 150);
  const int64_t too_few = 2 * Told(100) - 1;
  Allow({}, too_few);
  ExpectQuota(Send(head, /*whole=*/false), "bytes", Told(100), too_few);
  // Before a byte of it has come, where no session may come at all.
  Allow(1, {});
  ExpectQuota(Send("", /*whole=*/false), "sessions", 1, 1);
  EXPECT_EQ(Counts().refused, 2);
  EXPECT_EQ(Counts().sessions, 1);
  Allow({}, 2 * Told(100));
  EXPECT_EQ(Outcome(Import("a")), "OK");
}

TEST_F(SessionQuotas, ATurnThatMayGrowTooFarIsRefusedBeforeItBegins) {
  world_->rpc.MakeSession("a", {1, 2, 3});
  Allow({}, Told(100));
  const std::string turn = "session_id: 'a' text: 'xy' stop { max_tokens: ";
  ExpectQuota(world_->rpc.Generate(turn + "200 }").status, "bytes", Told(3),
              Told(100));
  ExpectQuota(Append("session_id: 'a' text: '" + std::string(126, 'x') + "'"),
              "bytes", Told(3), Told(100));
  const HttpAnswer refused = world_->Complete(
      {{"prompt", "xy"}, {"max_tokens", 200}}, {{"x-txl-session", "a"}});
  EXPECT_EQ(refused.outcome(), "429 QUOTA");
  EXPECT_THAT(refused.body, HasSubstr("the tenant's quota bytes = "));
  EXPECT_EQ(world_->rpc.GetSession("a").position(), 3);
  EXPECT_EQ(Counts().session_bytes, Told(3));

  // What a turn does not use is there for the next one.
  EXPECT_EQ(Outcome(world_->rpc.Generate(turn + "95 }").status), "OK");
  ASSERT_TRUE(world_->ComesToRest());
  EXPECT_EQ(world_->rpc.GetSession("a").position(), 100);
  EXPECT_EQ(Counts().session_bytes, Told(100));
  ExpectQuota(Create("b"), "bytes", Told(100), Told(100));
}

TEST_F(SessionQuotas, ATurnThatEndsEarlyGivesBackWhatItDidNotUse) {
  world_->rpc.MakeSession("a", {1, 2, 3});
  Allow({}, Told(1000));
  const Stream stream = world_->rpc.Generate(
      "session_id: 'a' text: 'x' stop { max_tokens: 900 }");
  ASSERT_EQ(Outcome(stream.status), "OK");
  ASSERT_TRUE(world_->ComesToRest());
  const int64_t position = world_->rpc.GetSession("a").position();
  EXPECT_EQ(Counts().session_bytes, Told(position));
  grpc::ClientContext client;
  v1::RewindSessionResponse rewound;
  EXPECT_TRUE(world_->rpc.sessions
                  ->RewindSession(&client,
                                  Proto<v1::RewindSessionRequest>(
                                      "session_id: 'a' position: 1"),
                                  &rewound)
                  .ok());
  EXPECT_EQ(Counts().session_bytes, Told(1));
}

TEST_F(SessionQuotas, TurnsWithoutASessionNeedNone) {
  Allow(1, 1);
  ExpectQuota(Create("a"), "bytes", 0, 1);
  EXPECT_EQ(
      Outcome(world_->rpc.Generate("text: 'x' stop { max_tokens: 50 }").status),
      "OK");
  EXPECT_EQ(world_->Complete({{"prompt", "x"}, {"max_tokens", 5}}).status, 200);
  EXPECT_EQ(Counts().sessions, 0);
}

// Samples of one prompt are sessions while they are made.
TEST_F(SessionQuotas, SamplesAreGivenBackAlsoWhereOneFindsNoRoom) {
  Allow(2, {});
  const auto sample = [&](int n) {
    return world_->Complete({{"prompt", "x"}, {"max_tokens", 2}, {"n", n}});
  };
  EXPECT_EQ(sample(2).status, 200);
  EXPECT_EQ(sample(3).outcome(), "429 QUOTA");
  ASSERT_TRUE(world_->ComesToRest());
  EXPECT_TRUE(Eventually([&] { return Counts().sessions == 0; }));
  EXPECT_EQ(sample(2).status, 200);
}

TEST_F(SessionQuotas, ASmallerLimitRefusesMoreAndKeepsWhatIsThere) {
  for (const char* id : {"a", "b", "c"}) world_->rpc.MakeSession(id, {1, 2});
  Allow(1, {});
  ExpectQuota(Create("d"), "sessions", 3, 1);
  EXPECT_EQ(Outcome(Append("session_id: 'a' text: 'more'")), "OK");
  Allow({}, {});
  EXPECT_EQ(Outcome(Create("d")), "OK");
  EXPECT_EQ(Counts().sessions, 4);
}

}  // namespace
}  // namespace txl
