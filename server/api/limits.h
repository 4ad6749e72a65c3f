#pragma once

// Limits of one request: the only home of their defaults. Each is a flag of
// txl-server and is shown by GetModel. A request over one is INVALID_ARGUMENT,
// OVER_LIMIT; nothing is clamped.

#include <cstdint>

#include "absl/time/time.h"

namespace txl {

struct RequestLimits {
  int64_t prompt_tokens = 8192;
  int64_t prompt_bytes = 256 << 10;
  int64_t max_tokens = 4096;
  int64_t stop_texts = 8;
  int64_t stop_text_bytes = 256;
  int64_t stop_tokens = 64;
  int64_t logprobs = 20;
  int64_t logit_bias = 1024;
  int64_t tokens_per_message = 1024;
  int64_t message_bytes = 1 << 20;            // enforced by gRPC itself
  int64_t import_bytes = int64_t{256} << 20;  // of a file, in many messages
  int64_t alternatives = 1024;                // of one context
};

// Limits of calls and connections, whatever they carry. Flags, too.
struct CallLimits {
  // Calls at a time; over it RESOURCE_EXHAUSTED, OVERLOADED.
  int64_t calls = 2048;
  // Bytes of requests that are being read, each counted as large as it may be.
  // Others wait; the one that has been arriving for longest gives way.
  int64_t unread_bytes = int64_t{24} << 20;
  // Bytes of answers that are no streams and that their clients have not read.
  // For one more the one that has been unread for longest is cut off.
  int64_t unread_answer_bytes = int64_t{24} << 20;
  int64_t streams_per_connection = 100;
  absl::Duration request_timeout = absl::Seconds(20);  // to arrive whole
  absl::Duration answer_timeout = absl::Seconds(30);   // to be read, if unary
  int64_t connections = 1024;
  int64_t connections_per_host = 0;  // an address; 0: no limit
  absl::Duration connection_idle = absl::Minutes(5);
  absl::Duration connection_age = absl::Minutes(30);
};

// Not a flag: the range of a logit_bias value (model/sampling checks it).
inline constexpr double kMaxLogitBias = 100;

// GetSession: tokens of a page where the request says nothing, and at most: an
// answer is then below what clients take by default, 4 MiB, for words of up to
// 60 bytes.
inline constexpr int64_t kTokenPage = 64 << 10;

// What stop.max_tokens is when neither request nor generation.json says.
inline constexpr int32_t kDefaultMaxTokens = 128;

}  // namespace txl
