#pragma once

// Makes one turn of the responses of several attempts at it.

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "txl/v1/generation_service.pb.h"

namespace txl {

// Not thread-safe.
class TurnJoiner {
 public:
  TurnJoiner() = default;
  // Continues a turn of which these tokens have been received.
  explicit TurnJoiner(const v1::Received& received);

  // A response of the running attempt. What of it is new: the first Started, or
  // one that replaces it because the turn restarted before any token; tokens
  // not seen before; Finished; nullopt: nothing. An attempt may begin with any
  // token up to the first new one. DataLoss when the attempt is not the same
  // turn, or its tokens have a gap.
  absl::StatusOr<std::optional<v1::GenerateResponse>> Take(
      v1::GenerateResponse response);

  // Anything has been handed out.
  bool started() const { return started_.has_value(); }
  bool finished() const { return finished_; }
  int64_t tokens() const { return static_cast<int64_t>(ids_.size()); }
  // For the next attempt; nullopt: nothing is known of the turn.
  std::optional<v1::Received> received() const;

 private:
  // True: the turn is new.
  absl::StatusOr<bool> TakeStarted(const v1::Started& started);
  // True: the token is new.
  absl::StatusOr<bool> TakeToken(const v1::Token& token);

  std::optional<v1::Started> started_;
  std::optional<uint64_t> seed_;
  std::vector<uint32_t> ids_;
  bool finished_ = false;
};

}  // namespace txl
