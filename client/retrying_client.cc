#include "client/retrying_client.h"

#include <algorithm>
#include <optional>
#include <random>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "client/call_error.h"
#include "client/turn_joiner.h"

namespace txl {
namespace {

std::string RandomRequestId() {
  std::random_device device;
  std::string id;
  for (int i = 0; i < 4; ++i) {
    absl::StrAppend(&id, absl::Hex(device(), absl::kZeroPad8));
  }
  return id;
}

// The attempts of one call.
class Attempts {
 public:
  Attempts(const RetryPolicy& policy, const CallOptions& options)
      : policy_(policy),
        options_(options),
        deadline_(absl::Now() + options.timeout) {}

  // The options of the next attempt.
  CallOptions options() const {
    CallOptions options = options_;
    options.timeout = deadline_ - absl::Now();
    return options;
  }
  void MadeProgress() { failures_ = 0; }
  // Waits before the next attempt. False: there is to be none.
  bool Wait(const absl::Status& status) {
    const std::optional<absl::Duration> delay =
        RetryDelay(policy_, ++failures_, status, jitter_(random_));
    if (!delay.has_value() || absl::Now() + *delay >= deadline_) return false;
    if (options_.canceller != nullptr) {
      return !options_.canceller->WaitFor(*delay);
    }
    absl::SleepFor(*delay);
    return true;
  }

 private:
  const RetryPolicy policy_;
  const CallOptions options_;
  const absl::Time deadline_;
  int failures_ = 0;
  std::minstd_rand random_{std::random_device()()};
  std::uniform_real_distribution<double> jitter_{0, 1};
};

// The server goes before the turn has its own end: another attempt goes on.
bool EndsByDrain(const v1::GenerateResponse& response) {
  return response.finished().reason() == v1::FINISH_REASON_SERVER_DRAIN;
}

}  // namespace

absl::Status RetryingClient::Generate(
    v1::GenerateRequest request, const CallOptions& options,
    absl::FunctionRef<void(const v1::GenerateResponse&)> on_response) {
  if (request.request_id().empty()) request.set_request_id(RandomRequestId());
  Attempts attempts(policy_, options);
  TurnJoiner joiner =
      request.has_received() ? TurnJoiner(request.received()) : TurnJoiner();
  // The end of an attempt behind which nothing came.
  std::optional<v1::GenerateResponse> drained;
  absl::Status broken;  // the attempt is not a part of the turn
  const auto take = [&](const v1::GenerateResponse& response) {
    const auto fresh = joiner.Take(response);
    broken = fresh.status();
    if (!fresh.ok() || !fresh->has_value()) return;
    // A turn that only begins, again and again, gets nowhere.
    if (!(*fresh)->has_started()) {
      attempts.MadeProgress();
      drained.reset();
    }
    on_response(**fresh);
  };
  while (true) {
    absl::Status status = client_->Generate(
        request, attempts.options(), [&](const v1::GenerateResponse& response) {
          if (EndsByDrain(response)) {
            drained = response;
          } else if (broken.ok()) {
            take(response);
          }
        });
    if (!broken.ok()) return broken;
    // After Finished nothing is missing.
    if (joiner.finished()) return absl::OkStatus();
    if (status.ok() && drained.has_value()) {
      status = absl::UnavailableError("the server is shutting down");
    }
    if (status.ok()) return status;
    if (!attempts.Wait(status)) {
      if (!drained.has_value()) return status;
      take(v1::GenerateResponse(*drained));  // a copy: it resets `drained`
      return broken;
    }
    if (auto received = joiner.received(); received.has_value()) {
      *request.mutable_received() = *std::move(received);
    }
  }
}

absl::StatusOr<v1::AppendTokensResponse> RetryingClient::AppendTokens(
    v1::AppendTokensRequest request, const CallOptions& options) {
  if (request.request_id().empty()) request.set_request_id(RandomRequestId());
  Attempts attempts(policy_, options);
  while (true) {
    absl::StatusOr<v1::AppendTokensResponse> response =
        client_->AppendTokens(request, attempts.options());
    if (response.ok() || !attempts.Wait(response.status())) return response;
  }
}

namespace {

// gRPC's own words for a call that ends so again until somebody changes
// something: an HTTP status of a proxy, or a port that is not gRPC's.
bool IsLasting(absl::string_view message) {
  if (absl::StrContains(message, "http1.x server")) return true;
  constexpr absl::string_view kWords = "http2 header with status: ";
  const size_t found = message.find(kWords);
  int code = 0;
  if (found == absl::string_view::npos ||
      !absl::SimpleAtoi(message.substr(found + kWords.size()), &code)) {
    return false;
  }
  // Too slow, too early and too often may pass.
  return (code / 100 == 4 && code != 408 && code != 425 && code != 429) ||
         code == 501 || code == 505;
}

}  // namespace

bool IsRetryable(const absl::Status& status) {
  const CallError error = GetCallError(status);
  if (error.retry_delay.has_value()) return true;
  if (error.reason.empty() && IsLasting(status.message())) return false;
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
      return true;
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kUnknown:
    case absl::StatusCode::kCancelled:
      return error.reason.empty();
    default:
      return false;
  }
}

std::optional<absl::Duration> RetryDelay(const RetryPolicy& policy,
                                         int failures,
                                         const absl::Status& status,
                                         double jitter) {
  if (failures >= policy.max_failures || !IsRetryable(status)) {
    return std::nullopt;
  }
  absl::Duration delay = policy.first_delay;
  for (int i = 1; i < failures && delay < policy.max_delay; ++i) delay *= 2;
  delay = std::min(delay, policy.max_delay) * (1 - jitter / 2);
  const absl::Duration asked =
      GetCallError(status).retry_delay.value_or(absl::ZeroDuration());
  return std::max(delay, asked);
}

}  // namespace txl
