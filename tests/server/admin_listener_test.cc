// A whole server and its administration.

#include "server/admin_listener.h"

#include <gmock/gmock.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "model/text/byte_vocabulary.h"
#include "server/base/log.h"
#include "server/server.h"
#include "tests/fakes/fake_step_runner.h"
#include "txl/v1/admin_service.grpc.pb.h"

namespace txl {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class AdminListenerTest : public ::testing::Test {
 protected:
  AdminListenerTest() {
    std::filesystem::create_directories(folder_);
    flags_.listen = "127.0.0.1:0";
    flags_.hang_limit = absl::ZeroDuration();
  }
  ~AdminListenerTest() override {
    server_.reset();
    std::filesystem::remove_all(folder_);
  }

  absl::Status Start() {
    ModelDirectory model;
    model.name = "fake";
    model.fingerprint = "f00d";
    model.config.vocab_size = ByteVocabulary::kSize;
    model.vocabulary = std::make_unique<ByteVocabulary>();
    FakeStepRunnerOptions runner = {.vocab_size = ByteVocabulary::kSize};
    auto server = Server::StartWith(flags_, std::move(model),
                                    std::make_unique<FakeStepRunner>(runner));
    if (!server.ok()) return server.status();
    server_ = *std::move(server);
    admin_ = v1::AdminService::NewStub(grpc::CreateChannel(
        server_->admin_address(), grpc::InsecureChannelCredentials()));
    return absl::OkStatus();
  }
  grpc::Status DrainServer() {
    grpc::ClientContext client;
    v1::DrainServerResponse response;
    return admin_->DrainServer(&client, {}, &response);
  }
  std::vector<std::string> Reload() {
    grpc::ClientContext client;
    v1::ReloadResponse response;
    EXPECT_TRUE(admin_->Reload(&client, {}, &response).ok());
    std::vector<std::string> read;
    for (const v1::ReloadedFile& file : response.files()) {
      read.push_back(absl::StrCat(file.setting(), " ", file.error()));
    }
    return read;
  }

  // Short: a socket's path has room for 107 characters.
  const std::string folder_ = absl::StrCat("/tmp/txl-admin-", getpid());
  LogCapture log_;
  ServerFlags flags_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<v1::AdminService::Stub> admin_;
};

TEST_F(AdminListenerTest, IsNotThereWithoutAFolderOfTheStore) {
  ASSERT_TRUE(Start().ok());
  EXPECT_EQ(server_->admin_address(), "");
}

TEST_F(AdminListenerTest, IsASocketInTheFolderOfTheStore) {
  flags_.store.data_dir = folder_;
  ASSERT_TRUE(Start().ok());
  EXPECT_EQ(server_->admin_address(),
            absl::StrCat("unix:", folder_, "/admin.sock"));
  EXPECT_THAT(Reload(), IsEmpty());
  server_.reset();
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/admin.sock"));
}

TEST_F(AdminListenerTest, IsNotThereWhereItIsOff) {
  flags_.store.data_dir = folder_;
  flags_.admin_listen = "off";
  ASSERT_TRUE(Start().ok());
  EXPECT_EQ(server_->admin_address(), "");
}

TEST_F(AdminListenerTest, WhatNobodyAskedForKeepsNoServerFromStarting) {
  flags_.store.data_dir = folder_ + "/" + std::string(100, 'd');
  ASSERT_TRUE(Start().ok());
  EXPECT_EQ(server_->admin_address(), "");
  EXPECT_THAT(log_.lines(), Contains(AllOf(HasSubstr("no_administration"),
                                           HasSubstr("the path is too long"))));
}

TEST_F(AdminListenerTest, WhatSomebodyAskedForDoes) {
  flags_.admin_listen = absl::StrCat("unix:", folder_, "/none/admin.sock");
  EXPECT_THAT(Start().message(),
              AllOf(HasSubstr("--admin-listen"), HasSubstr("/none/")));
}

TEST_F(AdminListenerTest, MayBeAPortOfLoopback) {
  flags_.admin_listen = "127.0.0.1:0";
  ASSERT_TRUE(Start().ok());
  EXPECT_NE(server_->admin_address(), "127.0.0.1:0");
  EXPECT_THAT(Reload(), IsEmpty());
}

TEST_F(AdminListenerTest, PassesTheWishToDrainOn) {
  flags_.admin_listen = absl::StrCat("unix:", folder_, "/a.sock");
  ASSERT_TRUE(Start().ok());
  EXPECT_EQ(DrainServer().error_code(), grpc::StatusCode::UNAVAILABLE)
      << "nobody would hear of it";
  absl::Notification asked;
  server_->OnDrainRequest([&] { asked.Notify(); });
  EXPECT_TRUE(DrainServer().ok());
  EXPECT_TRUE(asked.HasBeenNotified());
}

TEST_F(AdminListenerTest, ReadsTheFilesThatTheServerHas) {
  flags_.admin_listen = absl::StrCat("unix:", folder_, "/a.sock");
  flags_.tenants = folder_ + "/tenants.toml";
  flags_.keys = folder_ + "/keys.toml";
  std::ofstream(flags_.tenants) << "[tenant.a]\nturns = 1\n";
  ASSERT_TRUE(WriteKeysFile(flags_.keys, {}).ok());
  ASSERT_TRUE(Start().ok());
  EXPECT_THAT(Reload(), ::testing::ElementsAre("keys ", "tenants "));
  std::ofstream(flags_.tenants) << "[tenant.a]\ntrns = 1\n";
  EXPECT_THAT(Reload(),
              ::testing::ElementsAre(
                  "keys ", AllOf(HasSubstr("tenants "), HasSubstr("trns"))));
}

}  // namespace
}  // namespace txl
