#pragma once

// What every Generate stream must look like, whatever the load: Started first,
// tokens with indices 0, 1, ... without gaps, and exactly one end (Finished
// then OK, or an error without Finished) whose counts agree with the stream.

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "txl/v1/generation_service.pb.h"

namespace txl::bench {

class StreamCheck {
 public:
  // Tokens that the response carried.
  int64_t Add(const v1::GenerateResponse& response);
  // After the last response, with the call's status. Returns the first thing
  // that was wrong with the stream; empty when nothing was.
  std::string End(const absl::Status& status);

  int64_t tokens() const { return next_index_; }
  bool finished() const { return finished_; }

 private:
  void CheckToken(const v1::Token& token);
  void CheckFinished(const v1::Finished& finished);
  void Blame(const std::string& what);

  bool started_ = false;
  bool finished_ = false;
  int64_t start_position_ = 0;
  int64_t prompt_tokens_ = 0;
  int64_t next_index_ = 0;
  std::string problem_;
};

}  // namespace txl::bench
