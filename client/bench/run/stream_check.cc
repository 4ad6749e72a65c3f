#include "client/bench/run/stream_check.h"

#include "absl/strings/str_cat.h"

namespace txl::bench {

void StreamCheck::Blame(const std::string& what) {
  if (problem_.empty()) problem_ = what;
}

void StreamCheck::CheckToken(const v1::Token& token) {
  if (!started_) Blame("a token before Started");
  if (token.index() != next_index_) {
    Blame(absl::StrCat("index ", token.index(), " where ", next_index_,
                       " was due"));
  }
  ++next_index_;
}

void StreamCheck::CheckFinished(const v1::Finished& finished) {
  if (!started_) Blame("Finished before Started");
  finished_ = true;
  const v1::Usage& usage = finished.usage();
  if (usage.generated_tokens() != next_index_) {
    Blame(absl::StrCat(usage.generated_tokens(), " tokens reported, ",
                       next_index_, " received"));
  }
  if (finished.position() != start_position_ + prompt_tokens_ + next_index_) {
    Blame(absl::StrCat("position ", finished.position(), " after ",
                       start_position_, " + ", prompt_tokens_, " + ",
                       next_index_, " tokens"));
  }
}

int64_t StreamCheck::Add(const v1::GenerateResponse& response) {
  if (finished_) Blame("an event after Finished");
  const int64_t before = next_index_;
  switch (response.event_case()) {
    case v1::GenerateResponse::kStarted:
      if (started_) Blame("Started twice");
      started_ = true;
      start_position_ = response.started().position();
      prompt_tokens_ = response.started().prompt_token_count();
      break;
    case v1::GenerateResponse::kToken:
      CheckToken(response.token());
      break;
    case v1::GenerateResponse::kTokens:
      for (const v1::Token& token : response.tokens().tokens()) {
        CheckToken(token);
      }
      break;
    case v1::GenerateResponse::kFinished:
      CheckFinished(response.finished());
      break;
    case v1::GenerateResponse::EVENT_NOT_SET:
      Blame("a response without an event");
      break;
  }
  return next_index_ - before;
}

std::string StreamCheck::End(const absl::Status& status) {
  if (status.ok() && !finished_) Blame("OK without Finished");
  if (!status.ok() && finished_) Blame("an error after Finished");
  return problem_;
}

}  // namespace txl::bench
