#pragma once

// What a load is put on: the server through gRPC, or in tests a simulated one
// whose clock is simulated too. Time and events come from the same place, so
// that the whole load test runs under either.

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "client/bench/measure/turn_record.h"
#include "txl/v1/generation_service.pb.h"

namespace txl::bench {

// One thing that happened to a call.
struct Event {
  enum class Kind {
    kNone,      // the time has come
    kResponse,  // a turn's event arrived; Read() asks for the next one
    kEnd,       // the call is over, its number is free
  };
  Kind kind = Kind::kNone;
  int32_t call = 0;
  const v1::GenerateResponse* response = nullptr;  // until the next Next()
  absl::Status status;                             // of kEnd
};

// Calls have numbers of the caller's choice, small ones, as they index arrays.
// A target belongs to one thread. Only Next() blocks.
class Target {
 public:
  virtual ~Target() = default;

  // Never goes back.
  virtual Nanos Now() = 0;

  struct TurnOptions {
    std::string session_id = "";  // of the request, too
    bool slow_reader = false;     // keep little of what was not read
  };
  // The first Read() is part of it.
  virtual void StartTurn(int32_t call, const v1::GenerateRequest& request,
                         const TurnOptions& options) = 0;
  virtual void CreateSession(int32_t call, const std::string& session_id) = 0;
  virtual void DeleteSession(int32_t call, const std::string& session_id) = 0;

  // REQUIRES: the call's last event was kResponse.
  virtual void Read(int32_t call) = 0;
  // It ends with CANCELLED soon, unless it has ended.
  virtual void Cancel(int32_t call) = 0;

  // The next event, or kNone at the time `until`.
  virtual Event Next(Nanos until) = 0;
};

}  // namespace txl::bench
