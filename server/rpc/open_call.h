#pragma once

// One call of one of the API's methods, from the arrival of its headers to its
// end. gRPC's generic service gives calls to us before their messages, so that
// a call is counted, refused or timed out while its message is on the way.

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "server/base/byte_budget.h"
#include "server/rpc/call_desk.h"
#include "server/rpc/call_record.h"
#include "server/rpc/call_writer.h"
#include "server/rpc/service_context.h"

namespace txl {

class OpenCall;

// A method of the API.
struct ApiMethod {
  const char* name;  // "txl.v1.GenerationService/Generate", a literal
  Admission admission;
  // Called with the request once it is there; ends the call by Answer, End or
  // a turn that it hands the call over to.
  void (*handle)(const ServiceContext& context,
                 const std::shared_ptr<OpenCall>& call);
  // The client sends a stream: `handle` is called with its first message, on
  // the pool, and reads on by OpenCall::ReadMore.
  bool streams_request = false;
};

// Messages of so many bytes at most are read on gRPC's own threads: passing
// them on would take longer than reading them.
inline constexpr int64_t kInlineBytes = 4 << 10;

// Lives until gRPC is done with the call and nobody holds it.
class OpenCall final : public grpc::ServerGenericBidiReactor,
                       public CallWriter,
                       public WaitingCall,
                       public std::enable_shared_from_this<OpenCall> {
 public:
  // All outlive the call.
  static grpc::ServerGenericBidiReactor* Open(
      grpc::GenericCallbackServerContext* context, const ApiMethod& method,
      CallDesk* desk);

  // What the handler may see of gRPC.
  grpc::CallbackServerContext& context() { return *context_; }
  CallDesk& desk() { return *desk_; }
  const grpc::ByteBuffer& request() const { return request_; }
  CallRecord& record() { return record_; }
  // Returns the session in the initial metadata: for proxies that route by it,
  // so only a session that there is. REQUIRES: nothing has been sent.
  void ReturnSession(const std::string& session_id);
  // Runs `work` on the pool; a call that the client leaves or that cannot wait
  // is ended instead.
  void Work(std::function<void()> work);
  const std::string& peer() const { return peer_; }
  // Reads the next message of a stream in place of the one that request()
  // gives. `then` is called on the pool: true when it is there, false when the
  // client has sent all. A call whose next message is refused, does not come in
  // time or has no room is ended instead.
  void ReadMore(std::function<void(bool)> then) ABSL_LOCKS_EXCLUDED(mutex_);
  // A message of a streamed answer that is cut off, as answers are, when the
  // client does not read it; ends with CallEvents::OnWriteDone.
  void WritePiece(const grpc::ByteBuffer* message);
  // Ends the call with its only message, or with an error. A message for which
  // HandOver brought no room may be refused instead.
  void Answer(const absl::StatusOr<grpc::ByteBuffer>& answer);
  void End(const absl::Status& status);
  // From now on `events` hears of the call; it writes, logs and ends it. Keeps
  // `hold` until the call is done.
  void HandOver(std::shared_ptr<CallEvents> events, ByteHold hold = {})
      ABSL_LOCKS_EXCLUDED(mutex_);

  // More room beside that of HandOver, until the call is done.
  void KeepHold(ByteHold hold) ABSL_LOCKS_EXCLUDED(mutex_);

  // WaitingCall.
  void StartReading() override;
  void TimeOutReading() override;
  void GiveUpReading() override;
  void CutOff() override;

  // CallWriter.
  void Write(const grpc::ByteBuffer* message) override;
  void WriteAndFinish(const grpc::ByteBuffer* message,
                      const grpc::Status& status) override;
  void Finish(const grpc::Status& status) override;
  void Cancel() override;

  // ServerGenericBidiReactor.
  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override ABSL_LOCKS_EXCLUDED(mutex_);
  void OnDone() override ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  OpenCall(grpc::GenericCallbackServerContext* context, const ApiMethod& method,
           CallDesk* desk);
  void Start();
  void StopReading();
  absl::Status Arrived();
  void OnPartRead(bool ok);
  void EndUnread();
  bool HasRoom() const ABSL_LOCKS_EXCLUDED(mutex_);
  bool cancelled() const ABSL_LOCKS_EXCLUDED(mutex_);
  std::shared_ptr<CallEvents> events() const ABSL_LOCKS_EXCLUDED(mutex_);

  grpc::GenericCallbackServerContext* const context_;
  const ApiMethod& method_;
  CallDesk* const desk_;
  const std::string peer_;  // as gRPC names it
  CallRecord record_;
  bool entered_ = false;
  std::atomic<bool> reads_ = false;  // one of the desk's readers
  WaitList<WaitingCall>::Place reading_ = 0;
  WaitList<WaitingCall>::Place answering_ = 0;
  bool arrived_ = false;  // the request; its client may still be sending
  grpc::ByteBuffer request_;
  grpc::ByteBuffer surplus_;  // what comes behind it: nothing, or it is refused
  grpc::ByteBuffer answer_;

  mutable absl::Mutex mutex_;
  std::shared_ptr<OpenCall> self_ ABSL_GUARDED_BY(mutex_);  // until OnDone
  std::shared_ptr<CallEvents> events_ ABSL_GUARDED_BY(mutex_);
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  bool done_ ABSL_GUARDED_BY(mutex_) = false;  // gRPC's call is gone
  ByteHold request_hold_ ABSL_GUARDED_BY(mutex_);
  ByteHold answer_hold_ ABSL_GUARDED_BY(mutex_);
  ByteHold unread_hold_ ABSL_GUARDED_BY(mutex_);
  ByteHold more_hold_ ABSL_GUARDED_BY(mutex_);
  std::function<void(bool)> then_ ABSL_GUARDED_BY(mutex_);  // of ReadMore
};

}  // namespace txl
