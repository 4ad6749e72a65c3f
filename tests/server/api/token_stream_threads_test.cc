// TokenStream between the scheduler's thread, the callback thread and the
// transport's threads. The transport is a stand-in with threads of its own:
// gRPC's are built without the thread sanitizer, which sees only half of what
// orders them.

#include <gmock/gmock.h>

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "server/api/token_stream.h"
#include "server/base/clock.h"
#include "server/base/log.h"

namespace txl {
namespace {

constexpr int kNever = 1'000'000;
constexpr int kTokens = 400;
constexpr int kParkEvents = 16;

// A call as a transport drives it: operations end on either of two threads,
// OnDone comes after everything else.
class FakeCall final : public CallWriter {
 public:
  // Write `first_bad_write` (from 0) and those after it fail.
  explicit FakeCall(int first_bad_write) : first_bad_write_(first_bad_write) {}
  ~FakeCall() override {
    for (std::thread& thread : threads_) thread.join();
  }

  // REQUIRES: called once, before anything is written.
  void Bind(TokenStream* stream) {
    stream_ = stream;
    for (std::thread& thread : threads_) {
      thread = std::thread([this] { Loop(); });
    }
  }

  // The client cancels, once `messages` have arrived.
  void CancelAfter(int messages) {
    const auto arrived = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
      return finishing_ || static_cast<int>(received_.size()) >= messages;
    };
    {
      absl::MutexLock lock(&mutex_, absl::Condition(&arrived));
      if (finishing_) return;
      ++running_;
    }
    stream_->OnCancel();
    CallbackEnds();
  }

  void WaitForDone() { absl::MutexLock lock(&mutex_, absl::Condition(&done_)); }
  // REQUIRES: done, as for all below.
  const std::vector<v1::GenerateResponse>& received() const {
    return received_;
  }
  const absl::Status& status() const { return status_; }

  // CallWriter.
  void Write(const google::protobuf::Message& message) override {
    Start({Copy(message), std::nullopt});
  }
  void WriteAndFinish(const google::protobuf::Message& message) override {
    Start({Copy(message), absl::OkStatus()});
  }
  void Finish(const absl::Status& status) override {
    Start({std::nullopt, status});
  }
  void Cancel() override {}
  // Nothing here takes as long as a stall.
  void After(absl::Duration, std::function<void()>) override {}

 private:
  struct Operation {
    std::optional<v1::GenerateResponse> message;
    std::optional<absl::Status> status;
  };

  static v1::GenerateResponse Copy(const google::protobuf::Message& message) {
    return dynamic_cast<const v1::GenerateResponse&>(message);
  }

  void Start(Operation operation) {
    absl::MutexLock lock(&mutex_);
    EXPECT_FALSE(writing_) << "two operations at once";
    EXPECT_FALSE(finishing_) << "an operation after the last";
    writing_ = true;
    finishing_ = operation.status.has_value();
    operations_.push_back(std::move(operation));
  }

  void Loop() {
    const auto has_work = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
      return done_ || !operations_.empty();
    };
    while (true) {
      Operation operation;
      {
        absl::MutexLock lock(&mutex_, absl::Condition(&has_work));
        if (done_) return;
        operation = std::move(operations_.front());
        operations_.pop_front();
        ++running_;
      }
      Run(operation);
      CallbackEnds();
    }
  }

  void Run(const Operation& operation) {
    bool ok;
    {
      absl::MutexLock lock(&mutex_);
      ok = static_cast<int>(received_.size()) < first_bad_write_;
      if (ok && operation.message.has_value()) {
        received_.push_back(*operation.message);
      }
      writing_ = false;
      if (operation.status.has_value()) {
        status_ = *operation.status;
        finished_ = true;
        return;
      }
    }
    stream_->OnWriteDone(ok);
  }

  void CallbackEnds() {
    {
      absl::MutexLock lock(&mutex_);
      if (--running_ > 0 || !finished_) return;
    }
    stream_->OnDone();
    absl::MutexLock lock(&mutex_);
    done_ = true;
  }

  TokenStream* stream_ = nullptr;
  const int first_bad_write_;
  absl::Mutex mutex_;
  std::deque<Operation> operations_ ABSL_GUARDED_BY(mutex_);
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool finishing_ ABSL_GUARDED_BY(mutex_) = false;  // Finish was called
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;   // and ended
  bool done_ ABSL_GUARDED_BY(mutex_) = false;
  int running_ ABSL_GUARDED_BY(mutex_) = 0;  // callbacks
  std::vector<v1::GenerateResponse> received_;
  absl::Status status_;
  std::thread threads_[2];
};

// The scheduler's side of one turn.
class SchedulerSide {
 public:
  explicit SchedulerSide(std::shared_ptr<TokenStream> stream)
      : stream_(std::move(stream)), cancel_(stream_->cancel()) {}

  void Wake() {
    absl::MutexLock lock(&mutex_);
    woken_ = true;
  }

  // Lets go of the stream at the end.
  void Run() {
    stream_->Started({});
    for (int i = 0; i < kTokens; ++i) {
      while (stream_->Unsent() >= kParkEvents && !Cancelled()) WaitForWake();
      if (Cancelled()) {
        stream_->Failed(absl::CancelledError());
        stream_.reset();
        return;
      }
      TokenEvent token;
      token.index = i;
      token.text = absl::StrCat(i);
      stream_->Token(std::move(token));
    }
    stream_->Finished({});
    stream_.reset();
  }

 private:
  bool Cancelled() const { return cancel_->why() != CancelToken::Why::kNone; }
  void WaitForWake() {
    absl::MutexLock lock(&mutex_, absl::Condition(&woken_));
    woken_ = false;
  }

  std::shared_ptr<TokenStream> stream_;
  const std::shared_ptr<CancelToken> cancel_;
  absl::Mutex mutex_;
  bool woken_ ABSL_GUARDED_BY(mutex_) = false;
};

// One call from its start to OnDone, on threads of its own.
struct Conversation {
  Conversation(TaskThread* callbacks, int tokens_per_message,
               int first_bad_write = kNever) {
    TokenStreamOptions options;
    options.tokens_per_message = tokens_per_message;
    options.park_events = kParkEvents;
    options.wake = [this] { turn->Wake(); };
    options.callbacks = callbacks;
    options.record = StartRecord("test", Clock::Real(), &metrics);
    call = std::make_unique<FakeCall>(first_bad_write);
    auto stream = TokenStream::Create(call.get(), std::move(options));
    cancel = stream->cancel();
    call->Bind(stream.get());
    turn = std::make_unique<SchedulerSide>(std::move(stream));
    scheduler = std::thread([this] { turn->Run(); });
  }
  void Join() {
    scheduler.join();
    call->WaitForDone();
    EXPECT_EQ(metrics.Get().stream_queue_tokens, 0);
  }

  Metrics metrics;
  std::shared_ptr<CancelToken> cancel;
  std::unique_ptr<FakeCall> call;
  std::unique_ptr<SchedulerSide> turn;
  std::thread scheduler;
};

std::vector<int> IndexesOf(const std::vector<v1::GenerateResponse>& messages) {
  std::vector<int> indexes;
  for (const v1::GenerateResponse& message : messages) {
    if (message.has_token()) indexes.push_back(message.token().index());
    for (const v1::Token& token : message.tokens().tokens()) {
      indexes.push_back(token.index());
    }
  }
  return indexes;
}

std::vector<int> UpTo(size_t count) {
  std::vector<int> indexes(count);
  for (size_t i = 0; i < count; ++i) indexes[i] = static_cast<int>(i);
  return indexes;
}

class TokenStreamThreads : public testing::TestWithParam<int> {
 protected:
  TokenStreamThreads() { SetLogLevel(LogSeverity::kError); }
  ~TokenStreamThreads() override { SetLogLevel(LogSeverity::kInfo); }

  TaskThread callbacks_;
};

TEST_P(TokenStreamThreads, EveryTokenArrivesOnceAndInOrder) {
  std::vector<std::unique_ptr<Conversation>> calls;
  for (int i = 0; i < 4; ++i) {
    calls.push_back(std::make_unique<Conversation>(&callbacks_, GetParam()));
  }
  for (const auto& conversation : calls) {
    conversation->Join();
    const FakeCall& call = *conversation->call;
    EXPECT_TRUE(call.status().ok());
    ASSERT_FALSE(call.received().empty());
    EXPECT_TRUE(call.received().front().has_started());
    EXPECT_TRUE(call.received().back().has_finished());
    EXPECT_EQ(IndexesOf(call.received()), UpTo(kTokens));
  }
}

TEST_P(TokenStreamThreads, ACancelEndsTheCallAtAnyTime) {
  for (const int messages : {0, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144}) {
    Conversation conversation(&callbacks_, GetParam());
    conversation.call->CancelAfter(messages);
    conversation.Join();
    const FakeCall& call = *conversation.call;
    const std::vector<int> indexes = IndexesOf(call.received());
    EXPECT_EQ(indexes, UpTo(indexes.size()));
    const bool whole = indexes.size() == kTokens;
    EXPECT_TRUE(whole || absl::IsCancelled(call.status()));
  }
}

// Even a turn that ends before it sees the cancel sends nothing more.
TEST_P(TokenStreamThreads, AFailedWriteIsTheLastAndCancelsTheTurn) {
  for (const int first_bad_write : {0, 1, 20}) {
    Conversation conversation(&callbacks_, GetParam(), first_bad_write);
    conversation.Join();
    EXPECT_EQ(static_cast<int>(conversation.call->received().size()),
              first_bad_write);
    EXPECT_EQ(conversation.cancel->why(), CancelToken::Why::kCancelled);
  }
}

INSTANTIATE_TEST_SUITE_P(TokensPerMessage, TokenStreamThreads,
                         testing::Values(1, 7));

}  // namespace
}  // namespace txl
