#pragma once

// How a client reads its stream: at once, slowly, an event now and then, or not
// at all any more.

#include <algorithm>
#include <optional>

#include "absl/time/time.h"
#include "tests/server/simulation/random.h"

namespace txl::simulation {

enum class ReaderKind { kFast, kSlow, kTrickling, kStopped };

class Reader {
 public:
  Reader(ReaderKind kind, int park_events)
      : kind_(kind), park_events_(park_events) {}

  ReaderKind kind() const { return kind_; }
  void set_kind(ReaderKind kind) { kind_ = kind; }
  int unsent() const { return unsent_; }
  int most_unsent() const { return most_unsent_; }

  void Add(absl::Duration now) {
    if (kind_ == ReaderKind::kFast) return;
    ++unsent_;
    most_unsent_ = std::max(most_unsent_, unsent_);
    if (lags_since_.has_value()) return;
    if (unsent_ > park_events_ / 2 && caught_up_ == now) {
      lags_since_ = lagged_before_;
    } else if (unsent_ >= park_events_) {
      lags_since_ = last_read_ = now;
    }
  }
  // The reader has a moment.
  void Read(absl::Duration now, Random& random) {
    const int before = unsent_;
    switch (kind_) {
      case ReaderKind::kFast:
        unsent_ = 0;
        break;
      case ReaderKind::kSlow:
        unsent_ -= static_cast<int>(random.Below(unsent_ + 1));
        break;
      case ReaderKind::kTrickling:
        if (unsent_ > 0 && random.Chance(0.3)) --unsent_;
        break;
      case ReaderKind::kStopped:
        break;
    }
    if (unsent_ < before) last_read_ = now;
    if (unsent_ <= park_events_ / 2 && lags_since_.has_value()) {
      lagged_before_ = *lags_since_;
      caught_up_ = now;
      lags_since_.reset();
    }
  }
  // From when so much was unread that its turn was parked until half of it was
  // read. What lasted no time nobody may have seen: one that has more unread
  // again at the moment when it has caught up may be taken for lagging still.
  std::optional<absl::Duration> lags_since() const { return lags_since_; }
  // While it lags.
  absl::Duration last_read() const { return last_read_; }

 private:
  ReaderKind kind_;
  int park_events_;
  int unsent_ = 0;
  int most_unsent_ = 0;
  std::optional<absl::Duration> lags_since_;
  absl::Duration last_read_;
  absl::Duration lagged_before_;
  std::optional<absl::Duration> caught_up_;
};

}  // namespace txl::simulation
