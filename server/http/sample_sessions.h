#pragma once

// Sessions for the samples of one prompt: the prompt is fed to the first one,
// the others are its forks.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/http/http_call.h"
#include "server/http/http_message.h"
#include "txl/v1/generation_service.pb.h"
#include "txl/v1/session_service.pb.h"

namespace txl {

// All on the front's thread. Lives as long as a call of it runs.
class SampleSessions final
    : public std::enable_shared_from_this<SampleSessions> {
 public:
  // The desk outlives the sessions. `logprobs`: alternatives to each token of
  // the prompt, which is scored; absent: it is only fed.
  SampleSessions(CallDesk* desk, std::shared_ptr<Exchange> exchange,
                 int64_t count, std::optional<uint32_t> logprobs);

  // Feeds the prompt of a turn. Calls `ready` once: when it is fed, or with an
  // error of the calls; not if Stop comes first.
  using Ready =
      std::function<void(absl::StatusOr<v1::AppendTokensResponse> fed)>;
  void Start(const v1::GenerateRequest& turn, Ready ready);
  const std::string& id(int64_t sample) const {
    return ids_[static_cast<size_t>(sample)];
  }
  // They are no longer needed: cancels what runs, deletes what was made.
  void Stop();

 private:
  void Append(std::shared_ptr<const v1::AppendTokensRequest> append);
  void Fork(size_t next);
  void Fail(const absl::Status& status);
  void Call(const char* method,
            std::shared_ptr<const google::protobuf::Message> request,
            std::function<void(const google::protobuf::Message&)> then);

  CallDesk* const desk_;
  const std::shared_ptr<Exchange> exchange_;
  const std::optional<uint32_t> logprobs_;
  std::vector<std::string> ids_;
  Ready ready_;  // null: told
  std::vector<std::shared_ptr<HttpCall>> calls_;
  v1::AppendTokensResponse fed_;
  bool stopped_ = false;
};

}  // namespace txl
