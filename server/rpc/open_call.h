#pragma once

// One call over gRPC, from the arrival of its headers to its end. gRPC's
// generic service gives calls to us before their messages, so that a call is
// counted, refused or timed out while its message is on the way.

#include <google/protobuf/message_lite.h>
#include <grpc/grpc.h>
#include <grpcpp/alarm.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "server/api/api_call.h"
#include "server/base/byte_budget.h"

namespace txl {

// Messages of so many bytes at most are read on gRPC's own threads: passing
// them on would take longer than reading them.
inline constexpr int64_t kInlineBytes = 4 << 10;

class OpenCall final : public grpc::ServerGenericBidiReactor,
                       public ApiCall,
                       public WaitingCall,
                       public std::enable_shared_from_this<OpenCall> {
 public:
  // All outlive the call.
  static grpc::ServerGenericBidiReactor* Open(
      grpc::GenericCallbackServerContext* context, const ApiMethod& method,
      CallDesk* desk);

  // ApiCall.
  std::optional<absl::Duration> Deadline() const override;
  void ReturnSession(const std::string& session_id) override;
  void Answer(const google::protobuf::Message& answer) override;
  void End(const absl::Status& status) override;
  void WritePiece(const google::protobuf::Message& message) override;
  void ReadMore(std::function<void(bool)> then) override
      ABSL_LOCKS_EXCLUDED(mutex_);

  // WaitingCall.
  void StartReading() override;
  void TimeOutReading() override;
  void GiveUpReading() override;
  void CutOff() override;

  // CallWriter.
  void Write(const google::protobuf::Message& message) override;
  void WriteAndFinish(const google::protobuf::Message& message) override;
  void Finish(const absl::Status& status) override;
  void Cancel() override;
  void After(absl::Duration delay, std::function<void()> then) override
      ABSL_LOCKS_EXCLUDED(mutex_);

  // ServerGenericBidiReactor.
  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  OpenCall(grpc::GenericCallbackServerContext* context, const ApiMethod& method,
           CallDesk* desk);
  absl::StatusOr<SharedMessage> Parse(
      const google::protobuf::Message& type) const override;
  std::shared_ptr<ApiCall> self() override { return shared_from_this(); }
  void DropRequest() override { request_.Clear(); }
  absl::Status CheckRoute(const std::string& session_id) const override;
  void Start();
  void StopReading();
  absl::Status Arrived();
  void OnPartRead(bool ok);
  void EndUnread();

  grpc::GenericCallbackServerContext* const context_;
  const ApiMethod& method_;
  bool entered_ = false;
  std::atomic<bool> reads_ = false;  // one of the desk's readers
  WaitList<WaitingCall>::Place reading_ = 0;
  WaitList<WaitingCall>::Place answering_ = 0;
  bool arrived_ = false;  // the request; its client may still be sending
  grpc::ByteBuffer request_;
  grpc::ByteBuffer surplus_;  // what comes behind it: nothing, or it is refused
  grpc::ByteBuffer message_;  // of the running write

  absl::Mutex mutex_;
  std::shared_ptr<OpenCall> self_ ABSL_GUARDED_BY(mutex_);  // until OnDone
  bool done_ ABSL_GUARDED_BY(mutex_) = false;  // gRPC's call is gone
  ByteHold request_hold_ ABSL_GUARDED_BY(mutex_);
  std::function<void(bool)> then_ ABSL_GUARDED_BY(mutex_);  // of ReadMore
  std::unique_ptr<grpc::Alarm> alarm_ ABSL_GUARDED_BY(mutex_);
};

// Bytes of the wire <-> messages. Calls come as bytes (grpc_server.h), so that
// what does not parse is INVALID_ARGUMENT.

// InvalidArgument, MALFORMED_MESSAGE when the bytes do not parse (a string that
// is not UTF-8 does not).
absl::Status ParseMessage(const grpc::ByteBuffer& bytes,
                          google::protobuf::MessageLite* message);

// Whether the last message that came in a call of gRPC's core has the flag of a
// compressed one. gRPC hands on such a message as it is where the call names no
// compression. False where gRPC's library does not tell.
bool IsMarkedCompressed(grpc_call* call);

grpc::ByteBuffer SerializeMessage(const google::protobuf::MessageLite& message);

}  // namespace txl
