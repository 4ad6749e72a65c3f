#pragma once

// A TokenSink that keeps what it was given and notes every broken promise of
// turn.h. Its reader takes every event at once, or as a test says.

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "server/scheduler/turn.h"

namespace txl {

// Thread-safe.
class RecordingSink : public TokenSink {
 public:
  void Started(const TurnStarted& started) override {
    absl::MutexLock lock(&mutex_);
    if (started_.has_value() || Ended()) Violation("Started out of order");
    started_ = started;
    ++unsent_;
  }
  void Token(TokenEvent event) override {
    absl::MutexLock lock(&mutex_);
    if (!started_.has_value() || Ended()) Violation("Token out of order");
    if (event.index != first_ + static_cast<int32_t>(tokens_.size())) {
      Violation("token indices have a gap");
    }
    tokens_.push_back(std::move(event));
    ++unsent_;
    if (unsent_ > most_unsent_) most_unsent_ = unsent_;
  }
  void Scored(std::vector<ScoredToken> tokens) override {
    absl::MutexLock lock(&mutex_);
    if (!started_.has_value() || Ended()) Violation("Scored out of order");
    for (ScoredToken& token : tokens) scored_.push_back(std::move(token));
    ++unsent_;
  }
  void Finished(const TurnFinished& finished) override {
    RunAtEnd();
    absl::MutexLock lock(&mutex_);
    if (!started_.has_value() || Ended()) Violation("Finished out of order");
    finished_ = finished;
  }
  void Failed(const absl::Status& status) override {
    RunAtEnd();
    absl::MutexLock lock(&mutex_);
    if (Ended()) Violation("Failed out of order");
    if (status.ok()) Violation("Failed with OK");
    failed_ = status;
  }
  int Unsent() const override {
    absl::MutexLock lock(&mutex_);
    return reading_ ? 0 : unsent_;
  }

  // The index that the first token has to have; 0 unless told.
  void ExpectFirst(int32_t index) {
    absl::MutexLock lock(&mutex_);
    first_ = index;
  }
  // The reader stops, takes `count` events, goes on.
  void StopReading() {
    absl::MutexLock lock(&mutex_);
    reading_ = false;
  }
  void Read(int count) {
    absl::MutexLock lock(&mutex_);
    unsent_ -= count;
  }
  void GoOnReading() {
    absl::MutexLock lock(&mutex_);
    reading_ = true;
  }
  // Called in Finished or Failed, before it is noted.
  void AtEnd(std::function<void()> at_end) {
    absl::MutexLock lock(&mutex_);
    at_end_ = std::move(at_end);
  }

  std::optional<TurnStarted> started() const {
    absl::MutexLock lock(&mutex_);
    return started_;
  }
  std::vector<TokenEvent> tokens() const {
    absl::MutexLock lock(&mutex_);
    return tokens_;
  }
  std::vector<int32_t> ids() const {
    absl::MutexLock lock(&mutex_);
    std::vector<int32_t> ids;
    for (const TokenEvent& token : tokens_) ids.push_back(token.token_id);
    return ids;
  }
  std::vector<ScoredToken> scored() const {
    absl::MutexLock lock(&mutex_);
    return scored_;
  }
  std::optional<TurnFinished> finished() const {
    absl::MutexLock lock(&mutex_);
    return finished_;
  }
  // OK while the turn runs and after Finished.
  absl::Status failed() const {
    absl::MutexLock lock(&mutex_);
    return failed_;
  }
  bool ended() const {
    absl::MutexLock lock(&mutex_);
    return Ended();
  }
  // All Token.text and Finished.text.
  std::string text() const {
    absl::MutexLock lock(&mutex_);
    std::string text;
    for (const TokenEvent& token : tokens_) text += token.text;
    if (finished_.has_value()) text += finished_->text;
    return text;
  }
  int most_unsent() const {
    absl::MutexLock lock(&mutex_);
    return most_unsent_;
  }
  std::vector<std::string> violations() const {
    absl::MutexLock lock(&mutex_);
    return violations_;
  }

 private:
  bool Ended() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return finished_.has_value() || !failed_.ok();
  }
  void Violation(const char* what) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    violations_.push_back(what);
  }
  void RunAtEnd() {
    std::function<void()> at_end;
    {
      absl::MutexLock lock(&mutex_);
      at_end = std::exchange(at_end_, nullptr);
    }
    if (at_end) at_end();
  }

  mutable absl::Mutex mutex_;
  std::optional<TurnStarted> started_ ABSL_GUARDED_BY(mutex_);
  std::vector<TokenEvent> tokens_ ABSL_GUARDED_BY(mutex_);
  std::vector<ScoredToken> scored_ ABSL_GUARDED_BY(mutex_);
  std::optional<TurnFinished> finished_ ABSL_GUARDED_BY(mutex_);
  absl::Status failed_ ABSL_GUARDED_BY(mutex_);
  int32_t first_ ABSL_GUARDED_BY(mutex_) = 0;
  bool reading_ ABSL_GUARDED_BY(mutex_) = true;
  int unsent_ ABSL_GUARDED_BY(mutex_) = 0;
  int most_unsent_ ABSL_GUARDED_BY(mutex_) = 0;
  std::function<void()> at_end_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> violations_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace txl
