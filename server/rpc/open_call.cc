#include "server/rpc/open_call.h"

#include <google/protobuf/io/zero_copy_stream.h>
#include <grpc/grpc.h>
#include <grpcpp/support/proto_buffer_reader.h>
#include <grpcpp/support/slice.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "model/base/status_macros.h"
#include "server/base/error.h"
#include "server/base/log.h"
#include "server/rpc/call_context.h"

// gRPC's library has it, its headers do not (src/core/lib/surface/
// call_test_only.h): another version may lack it.
[[gnu::weak]] uint32_t grpc_call_test_only_get_message_flags(grpc_call* call);

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
    : ApiCall(method.name, desk,
              OriginOf(*context, desk->context().trace_rate)),
      context_(context),
      method_(method) {
  context_->AddInitialMetadata(kTraceparent, TraceparentOf(record().trace));
}

void OpenCall::Start() {
  desk().Opened(peer());
  const absl::StatusOr<Caller> caller =
      Identify(desk().context().keys, CallCredentials(*context_));
  if (!caller.ok()) return End(caller.status());
  SetCaller(*caller);
  absl::Status status = CheckRole(*caller, method_.roles, method_.name);
  if (!status.ok()) return End(status);
  status = desk().Enter(method_.admission);
  if (!status.ok()) return End(status);
  entered_ = true;
  status = CheckCallQuota(method_.admission);
  if (!status.ok()) return End(status);
  if (method_.admission == Admission::kAlways) return StartReading();
  absl::StatusOr<ByteHold> hold = desk().HoldCall();
  if (!hold.ok()) return End(hold.status());
  {
    absl::MutexLock lock(&mutex_);
    request_hold_ = *std::move(hold);
  }
  desk().AskToRead(peer(), weak_from_this());
}

void OpenCall::StartReading() {
  reads_ = method_.admission != Admission::kAlways;
  reading_ = desk().reading().Add(weak_from_this(), desk().Now());
  StartRead(&request_);
}

// The call gives its place among the readers to the next one.
void OpenCall::StopReading() {
  if (reads_.exchange(false)) desk().DoneReading();
}

void OpenCall::OnReadDone(bool ok) {
  if (method_.streams_request) return OnPartRead(ok);
  if (ok && !arrived_ && !IsMarkedCompressed(context_->c_call())) {
    // A second read ends when the client has said that there is no more.
    arrived_ = true;
    return StartRead(&surplus_);
  }
  const bool ours = desk().reading().Remove(reading_);
  StopReading();
  if (!ours) return;  // ended already
  if (!arrived_ && !ok) return EndUnread();
  const absl::Status status =
      ok ? MalformedError(arrived_ ? "the call has more than one message"
                                   : "the message is compressed")
         : Arrived();
  if (!status.ok()) return End(status);
  const ServiceContext& context = desk().context();
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
  const bool ours = desk().reading().Remove(reading_);
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
      self->method_.handle(self->desk().context(), self);
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
  desk().context().turns.callbacks->Run([self = shared_from_this()] {
    self->desk().AskToRead(self->peer(), self);
  });
}

absl::Status OpenCall::Arrived() {
  if (method_.admission == Admission::kAlways) return absl::OkStatus();
  absl::MutexLock lock(&mutex_);
  request_hold_.Release();
  TXL_ASSIGN_OR_RETURN(
      request_hold_,
      desk().HoldRequest(static_cast<int64_t>(request_.Length())));
  return absl::OkStatus();
}

// The client has left, or it has closed its side without a message. Nothing was
// done for the call, and a client can make very many of them: no line is
// written.
void OpenCall::EndUnread() {
  const bool left = cancelled();
  // gRPC may tell of the client's leaving later.
  desk().CountReset(peer());
  const absl::Status status = left ? absl::CancelledError("the client has left")
                                   : MalformedError("the call has no message");
  CountCall(record(), status);
  Finish(status);
}

void OpenCall::TimeOutReading() {
  StopReading();
  End(absl::DeadlineExceededError(absl::StrCat(
      "the request did not arrive whole within ",
      absl::FormatDuration(desk().context().call_limits.request_timeout),
      " (--request-timeout)")));
}

void OpenCall::GiveUpReading() {
  {
    absl::MutexLock lock(&mutex_);
    request_hold_.Release();
  }
  StopReading();
  End(desk().Overloaded(
      "others need the room for a request that comes slowly"));
}

void OpenCall::CutOff() {
  Cancel();
  ReleaseAnswer();
}

absl::StatusOr<ApiCall::SharedMessage> OpenCall::Parse(
    const google::protobuf::Message& type) const {
  std::shared_ptr<google::protobuf::Message> request(type.New());
  TXL_RETURN_IF_ERROR(ParseMessage(request_, request.get()));
  return request;
}

absl::Status OpenCall::CheckRoute(const std::string& session_id) const {
  return CheckMetadata(*context_, session_id);
}

std::optional<absl::Duration> OpenCall::Deadline() const {
  return CallDeadline(*context_, record().clock);
}

void OpenCall::ReturnSession(const std::string& session_id) {
  context_->AddInitialMetadata(kSessionMetadata, session_id);
}

void OpenCall::Answer(const google::protobuf::Message& answer) {
  message_ = SerializeMessage(answer);
  const absl::Status room =
      HoldAnswerBytes(static_cast<int64_t>(message_.Length()));
  if (!room.ok()) return End(room);
  EndRecord(record(), absl::OkStatus());
  {
    absl::MutexLock lock(&mutex_);
    request_hold_.Release();
  }
  request_.Clear();
  answering_ = desk().answering().Add(weak_from_this(), desk().Now());
  StartWriteAndFinish(&message_, grpc::WriteOptions(), grpc::Status::OK);
}

void OpenCall::WritePiece(const google::protobuf::Message& message) {
  answering_ = desk().answering().Add(weak_from_this(), desk().Now());
  Write(message);
}

void OpenCall::End(const absl::Status& status) {
  EndRecord(record(), status);
  Finish(status);
}

void OpenCall::Write(const google::protobuf::Message& message) {
  message_ = SerializeMessage(message);
  StartWrite(&message_);
}

void OpenCall::WriteAndFinish(const google::protobuf::Message& message) {
  message_ = SerializeMessage(message);
  StartWriteAndFinish(&message_, grpc::WriteOptions(), grpc::Status::OK);
}

void OpenCall::Finish(const absl::Status& status) {
  grpc::ServerGenericBidiReactor::Finish(ToGrpcStatus(status));
}

void OpenCall::Cancel() {
  absl::MutexLock lock(&mutex_);
  if (!done_) context_->TryCancel();
}

void OpenCall::After(absl::Duration delay, std::function<void()> then) {
  absl::MutexLock lock(&mutex_);
  if (done_) return;
  // A new alarm each time: the old one may be the caller.
  alarm_ = std::make_unique<grpc::Alarm>();
  alarm_->Set(InTime(delay), [then = std::move(then)](bool expired) {
    if (expired) then();
  });
}

void OpenCall::OnWriteDone(bool ok) {
  if (answering_ != 0) desk().answering().Remove(std::exchange(answering_, 0));
  if (const auto told = events()) told->OnWriteDone(ok);
}

void OpenCall::OnCancel() {
  if (TellCancel()) return;
  Log(LogSeverity::kDebug, "cancel", {{"method", method_.name}});
}

void OpenCall::OnDone() {
  desk().answering().Remove(answering_);
  desk().Closed(peer());
  if (entered_) desk().Leave(method_.admission);
  std::shared_ptr<OpenCall> self;
  std::function<void(bool)> then;  // it may hold the call
  {
    absl::MutexLock lock(&mutex_);
    done_ = true;
    then = std::exchange(then_, nullptr);
    self = std::move(self_);
    request_hold_.Release();
    alarm_.reset();
  }
  TellDone();
}

namespace {

// This flag of a message is likewise in no header.
constexpr uint32_t kCompressed = 0x80000000;

}  // namespace

absl::Status ParseMessage(const grpc::ByteBuffer& bytes,
                          google::protobuf::MessageLite* message) {
  grpc::ByteBuffer copy(bytes);  // shares the slices
  grpc::ProtoBufferReader reader(&copy);
  if (reader.status().ok() && message->ParseFromZeroCopyStream(&reader)) {
    return absl::OkStatus();
  }
  return MalformedError(
      "the message does not parse, or a text is not valid UTF-8");
}

bool IsMarkedCompressed(grpc_call* call) {
  if (grpc_call_test_only_get_message_flags == nullptr) return false;
  return (grpc_call_test_only_get_message_flags(call) & kCompressed) != 0;
}

grpc::ByteBuffer SerializeMessage(
    const google::protobuf::MessageLite& message) {
  grpc::Slice slice(message.ByteSizeLong());
  message.SerializeWithCachedSizesToArray(const_cast<uint8_t*>(slice.begin()));
  return grpc::ByteBuffer(&slice, 1);
}

}  // namespace txl
