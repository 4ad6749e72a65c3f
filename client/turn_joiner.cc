#include "client/turn_joiner.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace txl {

TurnJoiner::TurnJoiner(const v1::Received& received)
    : seed_(received.seed()),
      ids_(received.token_ids().begin(), received.token_ids().end()) {}

std::optional<v1::Received> TurnJoiner::received() const {
  if (!seed_.has_value()) return std::nullopt;
  v1::Received received;
  received.set_seed(*seed_);
  received.mutable_token_ids()->Assign(ids_.begin(), ids_.end());
  return received;
}

absl::StatusOr<std::optional<v1::GenerateResponse>> TurnJoiner::Take(
    v1::GenerateResponse response) {
  using Result = std::optional<v1::GenerateResponse>;
  switch (response.event_case()) {
    case v1::GenerateResponse::kStarted: {
      const absl::StatusOr<bool> is_new = TakeStarted(response.started());
      if (!is_new.ok()) return is_new.status();
      return *is_new ? Result(std::move(response)) : Result();
    }
    case v1::GenerateResponse::kToken: {
      const absl::StatusOr<bool> is_new = TakeToken(response.token());
      if (!is_new.ok()) return is_new.status();
      return *is_new ? Result(std::move(response)) : Result();
    }
    case v1::GenerateResponse::kTokens: {
      v1::GenerateResponse rest;
      for (v1::Token& token : *response.mutable_tokens()->mutable_tokens()) {
        const absl::StatusOr<bool> is_new = TakeToken(token);
        if (!is_new.ok()) return is_new.status();
        if (*is_new) *rest.mutable_tokens()->add_tokens() = std::move(token);
      }
      return rest.has_tokens() ? Result(std::move(rest)) : Result();
    }
    default:
      finished_ = finished_ || response.has_finished();
      return Result(std::move(response));
  }
}

absl::StatusOr<bool> TurnJoiner::TakeStarted(const v1::Started& started) {
  if (started_.has_value() && started.position() == started_->position() &&
      started.prompt_token_count() == started_->prompt_token_count() &&
      started.seed() == started_->seed() &&
      started.model_fingerprint() == started_->model_fingerprint()) {
    return false;
  }
  // Without a token nothing is lost: the turn begins anew, and the caller must
  // hear with which seed.
  const bool same = !started_.has_value() && started.seed() == seed_;
  if (!ids_.empty() && !same) {
    return absl::DataLossError("the server began another turn");
  }
  started_ = started;
  seed_ = started.seed();
  return true;
}

absl::StatusOr<bool> TurnJoiner::TakeToken(const v1::Token& token) {
  const auto next = static_cast<int64_t>(ids_.size());
  if (token.index() == next) {
    ids_.push_back(token.token_id());
    return true;
  }
  if (token.index() < 0 || token.index() > next) {
    return absl::DataLossError(
        absl::StrCat("token ", token.index(), " came, expected was ", next));
  }
  if (ids_[token.index()] != token.token_id()) {
    return absl::DataLossError(
        absl::StrCat("token ", token.index(), " came again as another one"));
  }
  return false;
}

}  // namespace txl
