#include "tests/end_to_end/stuck_reader.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>
#include <gtest/gtest.h>

#include "client/call_error.h"

namespace txl::testing {

std::unique_ptr<v1::GenerationService::Stub> NarrowStub(
    const ServerProcess& server) {
  grpc::ChannelArguments arguments;
  // HTTP/2's smallest window, and no growing of it.
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 65535);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return v1::GenerationService::NewStub(grpc::CreateCustomChannel(
      server.address(), grpc::InsecureChannelCredentials(), arguments));
}

StuckReader::StuckReader(ServerProcess& server, const std::string& session_id)
    : stub_(NarrowStub(server)) {
  v1::GenerateRequest request =
      Greedy(session_id, std::vector<uint32_t>{1, 2, 3}, 4096);
  request.mutable_output()->set_logprobs(20);
  reader_ = stub_->Generate(&context_, request);
  v1::GenerateResponse response;
  while (!response.has_token() && reader_->Read(&response)) {
  }
  EXPECT_TRUE(response.has_token());
  output_.ids.push_back(response.token().token_id());
  EXPECT_TRUE(WaitUntil([&] { return server.Status().turns_parked() == 1; }));
}

TurnOutput StuckReader::ReadOn() {
  v1::GenerateResponse response;
  while (reader_->Read(&response)) {
    if (response.has_token()) {
      output_.ids.push_back(response.token().token_id());
    }
    if (response.has_finished()) output_.finished = response.finished();
  }
  output_.status = FromGrpcStatus(reader_->Finish());
  return output_;
}

}  // namespace txl::testing
