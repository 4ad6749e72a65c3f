// What stands around the API: malformed and oversized bytes, health checking,
// reflection.

#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>

#include <atomic>
#include <thread>

#include "tests/server/rpc/rpc_world.h"

namespace txl {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

// "/txl.v1.GenerationService/Generate" and all others, from the descriptors:
// a new method is tested without a change here.
std::vector<std::string> EveryMethod() {
  std::vector<std::string> methods;
  for (const char* service : {"txl.v1.GenerationService",
                              "txl.v1.SessionService", "txl.v1.ModelService"}) {
    const auto* descriptor =
        google::protobuf::DescriptorPool::generated_pool()->FindServiceByName(
            service);
    for (int i = 0; i < descriptor->method_count(); ++i) {
      methods.push_back(std::string("/") + service + "/" +
                        descriptor->method(i)->name());
    }
  }
  return methods;
}

TEST(Bytes, ThatDoNotParseAreInvalidArgumentOnEveryMethod) {
  RpcWorld world;
  ASSERT_THAT(EveryMethod(), SizeIs(16));
  for (const std::string& method : EveryMethod()) {
    for (const std::string& bytes :
         {std::string("\xff\xff\xff\xff"), std::string("\x0a\x7f"
                                                       "abc")}) {
      const RawReply reply = CallRaw(world.channel, method, bytes);
      EXPECT_EQ(Outcome(reply.status), "INVALID_ARGUMENT MALFORMED_MESSAGE")
          << method;
      EXPECT_TRUE(reply.messages.empty()) << method;
    }
  }
}

TEST(Bytes, ThatAreNotUtf8AreInvalidArgument) {
  RpcWorld world;
  // Field 2, text: C3 28.
  EXPECT_EQ(Outcome(CallRaw(world.channel, "/txl.v1.GenerationService/Generate",
                            "\x12\x02\xc3\x28")
                        .status),
            "INVALID_ARGUMENT MALFORMED_MESSAGE");
}

TEST(Bytes, OfUnknownFieldsAreIgnored) {
  RpcWorld world;
  // Field 100, varint 1.
  EXPECT_EQ(Outcome(CallRaw(world.channel, "/txl.v1.ModelService/GetModel",
                            "\xa0\x06\x01")
                        .status),
            "OK");
}

TEST(Bytes, AboveTheMessageLimitAreRefusedByGrpc) {
  RpcWorld world;
  const RawReply reply = CallRaw(world.channel, "/txl.v1.ModelService/Tokenize",
                                 std::string((1 << 20) + 1, 'a'));
  EXPECT_EQ(reply.status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
}

TEST(Bytes, ThatAreCompressedAreNeverUnpacked) {
  RpcWorld world;
  v1::TokenizeRequest request;
  request.set_text(std::string(100'000, 'a'));
  const RawReply reply =
      CallRaw(world.channel, "/txl.v1.ModelService/Tokenize",
              request.SerializeAsString(), /*compressed=*/true);
  EXPECT_EQ(reply.status.error_code(), grpc::StatusCode::UNIMPLEMENTED);
}

// What a client may send by what the server says it takes.
TEST(Bytes, NoCodingIsOfferedThatIsNotTaken) {
  RpcWorld world;
  grpc::ClientContext client;
  v1::GetModelResponse response;
  ASSERT_TRUE(world.model->GetModel(&client, {}, &response).ok());
  const auto offered =
      client.GetServerInitialMetadata().find("grpc-accept-encoding");
  EXPECT_TRUE(offered == client.GetServerInitialMetadata().end() ||
              offered->second == "identity")
      << offered->second;
}

TEST(Bytes, ToAMethodThatIsNotThereAreUnimplemented) {
  RpcWorld world;
  for (const char* method :
       {"/txl.v1.GenerationService/Nothing", "/txl.v1.Admin/Drain",
        "//txl.v1.GenerationService/Generate"}) {
    EXPECT_EQ(CallRaw(world.channel, method, "").status.error_code(),
              grpc::StatusCode::UNIMPLEMENTED)
        << method;
  }
}

// HealthCheckRequest { string service = 1; }
std::string HealthRequest(const std::string& service) {
  if (service.empty()) return "";
  return std::string("\x0a") + static_cast<char>(service.size()) + service;
}
// HealthCheckResponse { ServingStatus status = 1; }
constexpr char kServing[] = "\x08\x01";
constexpr char kNotServing[] = "\x08\x02";

TEST(Health, AnswersForTheServerAndEveryService) {
  RpcWorldOptions options;
  options.ready = false;
  RpcWorld world(options);
  for (const bool serving : {false, true, false}) {
    world.server->SetServing(serving);
    for (const char* service :
         {"", "txl.v1.GenerationService", "txl.v1.SessionService",
          "txl.v1.ModelService"}) {
      const RawReply reply =
          CallRaw(world.channel, "/grpc.health.v1.Health/Check",
                  HealthRequest(service));
      EXPECT_THAT(reply.messages, ElementsAre(serving ? kServing : kNotServing))
          << service;
    }
  }
}

TEST(Health, IsNotServingFromTheStart) {
  RpcWorldOptions options;
  options.ready = false;
  RpcWorld world(options);
  EXPECT_THAT(
      CallRaw(world.channel, "/grpc.health.v1.Health/Check", "").messages,
      ElementsAre(kNotServing));
}

TEST(Health, OfAnUnknownServiceIsNotFound) {
  RpcWorld world;
  EXPECT_EQ(CallRaw(world.channel, "/grpc.health.v1.Health/Check",
                    HealthRequest("nobody"))
                .status.error_code(),
            grpc::StatusCode::NOT_FOUND);
}

TEST(Health, IsWatched) {
  auto world = std::make_unique<RpcWorld>();
  const auto channel = world->NewChannel();
  std::vector<std::string> seen;
  std::atomic<int> messages{0};
  std::thread watcher([&] {
    seen = CallRaw(channel, "/grpc.health.v1.Health/Watch", "", false, [&] {
             ++messages;
           }).messages;
  });
  EXPECT_TRUE(Eventually([&] { return messages == 1; }));
  world->server->SetServing(false);
  EXPECT_TRUE(Eventually([&] { return messages == 2; }));
  world.reset();  // ends the watch
  watcher.join();
  EXPECT_THAT(seen, ElementsAre(kServing, kNotServing));
}

TEST(Reflection, ListsTheServices) {
  RpcWorld world;
  // ServerReflectionRequest { string list_services = 7; }
  const RawReply reply =
      CallRaw(world.channel,
              "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
              std::string("\x3a\x00", 2));
  EXPECT_EQ(Outcome(reply.status), "OK");
  ASSERT_THAT(reply.messages, SizeIs(1));
  for (const char* service :
       {"txl.v1.GenerationService", "txl.v1.SessionService",
        "txl.v1.ModelService", "grpc.health.v1.Health"}) {
    EXPECT_THAT(reply.messages[0], HasSubstr(service));
  }
}

TEST(Reflection, KnowsTheMessages) {
  RpcWorld world;
  // ServerReflectionRequest { string file_containing_symbol = 4; }
  const std::string symbol = "txl.v1.GenerateRequest";
  const RawReply reply =
      CallRaw(world.channel,
              "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
              std::string("\x22") + static_cast<char>(symbol.size()) + symbol);
  ASSERT_THAT(reply.messages, SizeIs(1));
  EXPECT_THAT(reply.messages[0], HasSubstr("expected_position"));
}

TEST(Reflection, KnowsTheHealthService) {
  RpcWorld world;
  const std::string symbol = "grpc.health.v1.Health";
  const RawReply reply =
      CallRaw(world.channel,
              "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
              std::string("\x22") + static_cast<char>(symbol.size()) + symbol);
  ASSERT_THAT(reply.messages, SizeIs(1));
  EXPECT_THAT(reply.messages[0], HasSubstr("HealthCheckResponse"));
}

TEST(Listening, OnAnAddressInUseFails) {
  RpcWorld world;
  const auto second =
      GrpcServer::Start(world.server->address(), &world.context);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(second.status().message(), HasSubstr(world.server->address()));
}

}  // namespace
}  // namespace txl
