#pragma once

// Limits of one request: the only home of their defaults. docs/settings.md
// lists those that can be set, and GetModel shows all. A request over one is
// INVALID_ARGUMENT, OVER_LIMIT; nothing is clamped.

#include <cstdint>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
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
  int64_t allowed_tokens = 1024;
};

// Limits of calls and connections, whatever they carry.
struct CallLimits {
  // Calls at a time; over it RESOURCE_EXHAUSTED, OVERLOADED.
  int64_t calls = 2048;
  // Bytes of requests that are being read, each counted as large as it may be.
  // Others wait; the one that has been arriving for longest gives way.
  int64_t unread_bytes = int64_t{24} << 20;
  // Bytes of answers that are not streams and that clients have not read. To
  // make room for another, the one that has been unread for longest is cut off.
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

// So many log lines a second and no more, for what clients can cause at will.

// Thread-safe.
class LineLimit {
 public:
  explicit LineLimit(int64_t lines_per_second) : limit_(lines_per_second) {}

  // Whether a line may be written now: then the number of lines that were left
  // out since the last one.
  std::optional<int64_t> Take(absl::Duration now) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    if (now - second_ >= absl::Seconds(1)) {
      second_ = now;
      written_ = 0;
    }
    if (written_ == limit_) {
      ++left_out_;
      return std::nullopt;
    }
    ++written_;
    const int64_t left_out = left_out_;
    left_out_ = 0;
    return left_out;
  }

 private:
  const int64_t limit_;
  absl::Mutex mutex_;
  absl::Duration second_ ABSL_GUARDED_BY(mutex_) = -absl::InfiniteDuration();
  int64_t written_ ABSL_GUARDED_BY(mutex_) = 0;  // in this second
  int64_t left_out_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace txl
