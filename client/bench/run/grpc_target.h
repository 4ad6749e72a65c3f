#pragma once

// The server through gRPC: one completion queue that the driver's thread polls
// itself, so that a token costs no change of threads.

#include <memory>

#include "absl/status/statusor.h"
#include "client/bench/run/target.h"
#include "client/channel.h"

namespace txl::bench {

struct GrpcTargetOptions {
  ChannelOptions channel;
  // Connections that are made at the start; each is one of its own.
  int32_t connections = 1;
  // Turns at a time on one connection before another one is made; 0: never.
  int32_t turns_per_connection = 0;
  double timeout_seconds = 0;  // of each turn; 0: none
};

// A turn goes to the connection with the fewest. Slow readers have connections
// of their own, whose streams keep little that was not read.
class GrpcTarget final : public Target {
 public:
  // Waits until the connections are there, or a few seconds: a call on one that
  // is not fails by itself. Errors: those of OpenChannel.
  static absl::StatusOr<std::unique_ptr<GrpcTarget>> Create(
      const GrpcTargetOptions& options);
  // Waits for the end of calls that still run.
  ~GrpcTarget() override;

  Nanos Now() override;
  void StartTurn(int32_t call, const v1::GenerateRequest& request,
                 const TurnOptions& options) override;
  void CreateSession(int32_t call, const std::string& session_id) override;
  void DeleteSession(int32_t call, const std::string& session_id) override;
  void Read(int32_t call) override;
  void Cancel(int32_t call) override;
  Event Next(Nanos until) override;

  int32_t connections() const;

 private:
  class Impl;
  explicit GrpcTarget(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace txl::bench
