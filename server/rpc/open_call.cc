#include "server/rpc/open_call.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "model/base/status_macros.h"
#include "server/base/error.h"
#include "server/base/log.h"
#include "server/rpc/call_context.h"
#include "server/rpc/grpc_status.h"
#include "server/rpc/raw_message.h"

namespace txl {

grpc::ServerGenericBidiReactor* OpenCall::Open(
    grpc::GenericCallbackServerContext* context, const ApiMethod& method,
    CallDesk* desk) {
  std::shared_ptr<OpenCall> call(new OpenCall(context, method, desk));
  {
    absl::MutexLock lock(&call->mutex_);
    call->self_ = call;
  }
  call->Start();
  return call.get();
}

OpenCall::OpenCall(grpc::GenericCallbackServerContext* context,
                   const ApiMethod& method, CallDesk* desk)
    : context_(context),
      method_(method),
      desk_(desk),
      peer_(context->peer()),
      record_(StartRecord(method.name, desk->context().clock,
                          desk->context().metrics)) {
  record_.refusals = &desk->refusal_lines();
}

void OpenCall::Start() {
  desk_->Opened(peer_);
  absl::Status status = desk_->Enter(method_.admission);
  if (!status.ok()) return End(status);
  entered_ = true;
  if (method_.admission == Admission::kAlways) return StartReading();
  absl::StatusOr<ByteHold> hold = desk_->HoldCall();
  if (!hold.ok()) return End(hold.status());
  {
    absl::MutexLock lock(&mutex_);
    request_hold_ = *std::move(hold);
  }
  desk_->AskToRead(peer_, weak_from_this());
}

void OpenCall::StartReading() {
  reads_ = method_.admission != Admission::kAlways;
  reading_ = desk_->reading().Add(weak_from_this(), desk_->Now());
  StartRead(&request_);
}

// The call gives its place among the readers to the next one.
void OpenCall::StopReading() {
  if (reads_.exchange(false)) desk_->DoneReading();
}

void OpenCall::OnReadDone(bool ok) {
  if (method_.streams_request) return OnPartRead(ok);
  if (ok && !arrived_ && !IsMarkedCompressed(context_->c_call())) {
    // A second read ends when the client has said that there is no more.
    arrived_ = true;
    return StartRead(&surplus_);
  }
  const bool ours = desk_->reading().Remove(reading_);
  StopReading();
  if (!ours) return;  // ended already
  if (!arrived_ && !ok) return EndUnread();
  const absl::Status status =
      ok ? MalformedError(arrived_ ? "the call has more than one message"
                                   : "the message is compressed")
         : Arrived();
  if (!status.ok()) return End(status);
  const ServiceContext& context = desk_->context();
  if (method_.admission == Admission::kAlways ||
      static_cast<int64_t>(request_.Length()) <= kInlineBytes) {
    return method_.handle(context, shared_from_this());
  }
  Work([&context, self = this] {
    self->method_.handle(context, self->shared_from_this());
  });
}

// One message of a stream has come, or the stream's end.
void OpenCall::OnPartRead(bool ok) {
  const bool ours = desk_->reading().Remove(reading_);
  StopReading();
  if (!ours) return;  // ended already
  if (!arrived_ && !ok) return EndUnread();
  absl::Status status;
  if (ok) {
    status = IsMarkedCompressed(context_->c_call())
                 ? MalformedError("the message is compressed")
                 : Arrived();
  }
  if (!status.ok()) return End(status);
  if (!std::exchange(arrived_, true)) {
    return Work([self = shared_from_this()] {
      self->method_.handle(self->desk_->context(), self);
    });
  }
  std::function<void(bool)> then;
  {
    absl::MutexLock lock(&mutex_);
    then = std::exchange(then_, nullptr);
  }
  if (then != nullptr) Work([then, ok] { then(ok); });
}

void OpenCall::ReadMore(std::function<void(bool)> then) {
  {
    absl::MutexLock lock(&mutex_);
    then_ = std::move(then);
  }
  request_.Clear();
  desk_->context().callbacks->Run([self = shared_from_this()] {
    self->desk_->AskToRead(self->peer_, self);
  });
}

absl::Status OpenCall::Arrived() {
  if (method_.admission == Admission::kAlways) return absl::OkStatus();
  absl::MutexLock lock(&mutex_);
  request_hold_.Release();
  TXL_ASSIGN_OR_RETURN(
      request_hold_,
      desk_->HoldRequest(static_cast<int64_t>(request_.Length())));
  return absl::OkStatus();
}

// The client has left, or it has closed its side without a message. Nothing was
// done for the call, and a client can make very many of them: no line is
// written.
void OpenCall::EndUnread() {
  const bool left = cancelled();
  // gRPC may tell of the client's leaving later.
  desk_->CountReset(peer_);
  const absl::Status status = left ? absl::CancelledError("the client has left")
                                   : MalformedError("the call has no message");
  CountCall(record_, status);
  Finish(ToGrpcStatus(status));
}

void OpenCall::TimeOutReading() {
  StopReading();
  End(absl::DeadlineExceededError(absl::StrCat(
      "the request did not arrive whole within ",
      absl::FormatDuration(desk_->context().call_limits.request_timeout),
      " (--request-timeout)")));
}

void OpenCall::GiveUpReading() {
  {
    absl::MutexLock lock(&mutex_);
    request_hold_.Release();
  }
  StopReading();
  End(desk_->Overloaded(
      "others need the room for a request that comes slowly"));
}

void OpenCall::CutOff() {
  Cancel();
  absl::MutexLock lock(&mutex_);
  answer_hold_.Release();
  unread_hold_.Release();
}

void OpenCall::ReturnSession(const std::string& session_id) {
  context_->AddInitialMetadata(kSessionMetadata, session_id);
}

void OpenCall::Work(std::function<void()> work) {
  desk_->context().work->Run(
      peer_, [self = shared_from_this(),
              work = std::move(work)](const absl::Status& status) {
        if (self->cancelled()) {
          return self->End(absl::CancelledError("the client has left"));
        }
        if (!status.ok()) return self->End(status);
        work();
      });
}

void OpenCall::Answer(const absl::StatusOr<grpc::ByteBuffer>& answer) {
  if (!answer.ok()) return End(answer.status());
  const auto bytes = static_cast<int64_t>(answer->Length());
  absl::StatusOr<ByteHold> unread = desk_->HoldUnread(bytes);
  // What a turn brought has its room: it is never refused.
  if (!HasRoom()) {
    if (!unread.ok()) return End(unread.status());
    absl::StatusOr<ByteHold> hold = desk_->HoldAnswer(bytes);
    if (!hold.ok()) return End(hold.status());
    absl::MutexLock lock(&mutex_);
    answer_hold_ = *std::move(hold);
  }
  if (unread.ok()) {
    absl::MutexLock lock(&mutex_);
    unread_hold_ = *std::move(unread);
  }
  EndRecord(record_, absl::OkStatus());
  {
    absl::MutexLock lock(&mutex_);
    request_hold_.Release();
  }
  request_.Clear();
  answer_ = *answer;
  answering_ = desk_->answering().Add(weak_from_this(), desk_->Now());
  StartWriteAndFinish(&answer_, grpc::WriteOptions(), grpc::Status::OK);
}

void OpenCall::WritePiece(const grpc::ByteBuffer* message) {
  answering_ = desk_->answering().Add(weak_from_this(), desk_->Now());
  StartWrite(message);
}

void OpenCall::End(const absl::Status& status) {
  EndRecord(record_, status);
  Finish(ToGrpcStatus(status));
}

void OpenCall::HandOver(std::shared_ptr<CallEvents> events, ByteHold hold) {
  bool cancelled;
  {
    absl::MutexLock lock(&mutex_);
    events_ = events;
    answer_hold_ = std::move(hold);
    cancelled = cancelled_;
  }
  request_.Clear();
  if (cancelled) events->OnCancel();
}

void OpenCall::KeepHold(ByteHold hold) {
  absl::MutexLock lock(&mutex_);
  more_hold_ = std::move(hold);
}

void OpenCall::Write(const grpc::ByteBuffer* message) { StartWrite(message); }

void OpenCall::WriteAndFinish(const grpc::ByteBuffer* message,
                              const grpc::Status& status) {
  StartWriteAndFinish(message, grpc::WriteOptions(), status);
}

void OpenCall::Finish(const grpc::Status& status) {
  grpc::ServerGenericBidiReactor::Finish(status);
}

void OpenCall::Cancel() {
  absl::MutexLock lock(&mutex_);
  if (!done_) context_->TryCancel();
}

void OpenCall::OnWriteDone(bool ok) {
  if (answering_ != 0) desk_->answering().Remove(std::exchange(answering_, 0));
  if (const auto told = events()) told->OnWriteDone(ok);
}

void OpenCall::OnCancel() {
  {
    absl::MutexLock lock(&mutex_);
    cancelled_ = true;
  }
  if (const auto told = events()) return told->OnCancel();
  Log(LogSeverity::kDebug, "cancel", {{"method", method_.name}});
}

void OpenCall::OnDone() {
  desk_->answering().Remove(answering_);
  desk_->Closed(peer_);
  if (entered_) desk_->Leave(method_.admission);
  std::shared_ptr<CallEvents> told;
  std::shared_ptr<OpenCall> self;
  std::function<void(bool)> then;  // it may hold the call
  {
    absl::MutexLock lock(&mutex_);
    done_ = true;
    told = std::move(events_);
    then = std::exchange(then_, nullptr);
    self = std::move(self_);
    request_hold_.Release();
    answer_hold_.Release();
    unread_hold_.Release();
    more_hold_.Release();
  }
  if (told != nullptr) told->OnDone();
}

bool OpenCall::HasRoom() const {
  absl::MutexLock lock(&mutex_);
  return answer_hold_.bytes() > 0;
}

bool OpenCall::cancelled() const {
  absl::MutexLock lock(&mutex_);
  return cancelled_;
}

std::shared_ptr<CallEvents> OpenCall::events() const {
  absl::MutexLock lock(&mutex_);
  return events_;
}

}  // namespace txl
