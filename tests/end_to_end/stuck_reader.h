#pragma once

// A client that stops reading, behind a connection that buffers little.

#include <grpcpp/client_context.h>

#include <memory>

#include "tests/end_to_end/server_process.h"
#include "tests/end_to_end/turns.h"
#include "txl/v1/generation_service.grpc.pb.h"

namespace txl::testing {

// A connection of its own whose windows are as small as HTTP/2 has them, so
// that who does not read soon stops the server.
std::unique_ptr<v1::GenerationService::Stub> NarrowStub(
    const ServerProcess& server);

class StuckReader {
 public:
  // Starts a greedy turn of 4,096 tokens with long messages on the session
  // (empty: a temporary one) and reads up to its first token. Returns when the
  // server has parked the turn.
  StuckReader(ServerProcess& server, const std::string& session_id);

  // Reads on to the end.
  TurnOutput ReadOn();

 private:
  std::unique_ptr<v1::GenerationService::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<v1::GenerateResponse>> reader_;
  TurnOutput output_;
};

}  // namespace txl::testing
