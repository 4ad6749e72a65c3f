#pragma once

// Limits and times of the HTTP front: the only home of their defaults.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace txl {

class CertificateWatch;

struct HttpOptions {
  std::string listen;  // HOST:PORT, port 0: any free one
  // TLS alone is spoken, with what these have; null: none. They outlive the
  // server.
  const CertificateWatch* certificates = nullptr;
  // Names under which the server is reached, beside loopback's own: a request
  // for another host comes from a page that was tricked (DNS rebinding).
  std::vector<std::string> hosts;
  // Any host, any page: for what holds nothing of anybody.
  bool any_host = false;
  // Pages of these origins may send requests ("https://chat.example").
  std::vector<std::string> origins;
  // Fraction of calls traced when the client made no sampling decision.
  double trace_rate = 1;
  // Between comments that keep proxies from closing a silent stream; 0: none.
  absl::Duration ping = absl::ZeroDuration();
  int64_t connections = 1024;
  int64_t connections_per_peer = 64;  // an address
  // What a connection over these limits is told to wait.
  absl::Duration retry_after = absl::Seconds(1);
  int64_t header_bytes = 16 << 10;
  int64_t body_bytes = 4 << 20;
  absl::Duration header_timeout = absl::Seconds(10);
  absl::Duration body_timeout = absl::Seconds(30);
  absl::Duration answer_timeout = absl::Seconds(30);  // to be read, no stream
  absl::Duration idle_timeout = absl::Seconds(75);    // between requests
};

// Maximum depth of a body's JSON.
inline constexpr int kMaxJsonDepth = 8;
// Maximum members of an object: far more than logit_bias, the largest.
inline constexpr size_t kMaxJsonMembers = 4096;
// A probability of 0 as a logarithm: JSON has no infinity.
inline constexpr double kNeverLogprob = -9999.0;
// Bodies of so many bytes at most are read on the front's own thread: passing
// them on would take longer than reading them.
inline constexpr size_t kInlineBody = 4 << 10;
// A completion's max_tokens where it says nothing, as OpenAI's API has it.
inline constexpr int64_t kCompletionMaxTokens = 16;
// Choices of one completion request: prompts times max(n, best_of).
inline constexpr int64_t kMaxChoices = 128;

}  // namespace txl
