#pragma once

// One call of one of the API's methods, whatever carries it: gRPC or HTTP. A
// transport brings the request, sends the answer and says when the client has
// left; what the methods do in between is written once, over this.

#include <google/protobuf/message.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "model/base/status_macros.h"
#include "server/access/role.h"
#include "server/api/call_desk.h"
#include "server/api/call_record.h"
#include "server/api/service_context.h"
#include "server/base/byte_budget.h"
#include "server/session/session_info.h"
#include "server/session/session_name.h"

namespace txl {

// Sends a streamed answer: one operation at a time, the last one is Finish or
// WriteAndFinish. Thread-safe otherwise.
class CallWriter {
 public:
  virtual ~CallWriter() = default;
  // Ends with CallEvents::OnWriteDone. The message is not needed any more when
  // the function returns.
  virtual void Write(const google::protobuf::Message& message) = 0;
  virtual void WriteAndFinish(const google::protobuf::Message& message) = 0;
  virtual void Finish(const absl::Status& status) = 0;
  // Cuts the call off, whatever the client has not read. Finish is still due.
  virtual void Cancel() = 0;
  // Calls `then` once after so long, unless the call is done by then or After
  // is called again.
  virtual void After(absl::Duration delay, std::function<void()> then) = 0;
};

// Hears what becomes of a call. Called from the transport's threads, OnDone
// last of all: the call is gone then.
class CallEvents {
 public:
  virtual ~CallEvents() = default;
  virtual void OnWriteDone(bool /*ok*/) {}
  // The client left, its deadline has passed, or the call was cut off.
  virtual void OnCancel() = 0;
  virtual void OnDone() = 0;
};

class ApiCall;

// The connection that carries a call, and how the call is traced.
struct CallOrigin {
  std::string peer;
  TraceContext trace;
  std::string request_id = {};  // the transport's; empty: it has none
};

// What a method answers.
using AnswerMessage = std::unique_ptr<google::protobuf::Message>;

// A method of the API.
struct ApiMethod {
  const char* name;  // "txl.v1.GenerationService/Generate", a literal
  Admission admission;
  // Called with the request once it is there; ends the call by Answer, End or
  // a turn that it hands the call over to.
  void (*handle)(const ServiceContext& context,
                 const std::shared_ptr<ApiCall>& call);
  RoleSet roles;  // that may call it; by default no one
  // The client sends a stream: `handle` is called with its first message, on
  // the pool, and reads on by ApiCall::ReadMore.
  bool streams_request = false;
};

// Lives until its transport is done with it and nothing holds it. Thread-safe
// but for the order of operations: Answer or End once, or those of CallWriter.
class ApiCall : public CallWriter {
 public:
  // Both outlive the call.
  ApiCall(const char* method, CallDesk* desk, CallOrigin origin);

  // What the client has sent; of a stream the message that came last. Errors:
  // MALFORMED_MESSAGE.
  template <typename Request>
  absl::StatusOr<std::shared_ptr<const Request>> Read() const {
    TXL_ASSIGN_OR_RETURN(auto message, Parse(Request::default_instance()));
    return std::static_pointer_cast<const Request>(std::move(message));
  }
  // The caller's session that the request's `session_id` names, one without an
  // id where it names none: the only way from a client's word to a session. The
  // record has it from now on. Errors: FIELD_INVALID `session_id`;
  // FIELD_INVALID `x-txl-session`, where proxies route the call by another one;
  // PERMISSION_DENIED, where the caller's role has no sessions.
  absl::StatusOr<SessionName> SessionOf(const std::string& session_id);
  // SessionOf for a method that needs a session: "" is FIELD_INVALID.
  absl::StatusOr<SessionName> NamedSessionOf(const std::string& session_id);
  // The caller's session that the store has told of.
  SessionName Told(const SessionInfo& info) const {
    return SessionName(caller_.tenant, info.session_id);
  }
  // On Clock::Monotonic; absent: none.
  virtual std::optional<absl::Duration> Deadline() const = 0;
  // Tells the client's proxies where the session is, so only of a session that
  // there is. REQUIRES: nothing has been sent.
  virtual void ReturnSession(const std::string& session_id) = 0;
  // Ends the call with its only message, or with an error. A message for which
  // HandOver brought no room may be refused instead.
  virtual void Answer(const google::protobuf::Message& answer) = 0;
  virtual void End(const absl::Status& status) = 0;
  // A message of a streamed answer that is cut off, as answers are, when the
  // client does not read it; ends with CallEvents::OnWriteDone.
  virtual void WritePiece(const google::protobuf::Message& message) = 0;
  // Reads the next message of a stream. `then` is called on the pool: true when
  // it is there, false when the client has sent all. A call whose next message
  // is refused, does not come in time or has no room is ended instead.
  virtual void ReadMore(std::function<void(bool)> then) = 0;

  CallDesk& desk() { return *desk_; }
  CallRecord& record() { return record_; }
  const CallRecord& record() const { return record_; }
  const std::string& peer() const { return record_.peer; }
  const Caller& caller() const { return caller_; }
  // The caller's; null where there are no tenants.
  TenantAccount* account() const;
  // Records the id that the request gives itself, unless it is not valid.
  void NoteRequestId(const std::string& request_id);
  // Runs `work` on the pool; a call that the client leaves or that cannot wait
  // is ended instead.
  void Work(std::function<void()> work);
  // From now on `events` hears of the call; it writes, logs and ends it. Keeps
  // `hold` until the call is done.
  void HandOver(std::shared_ptr<CallEvents> events, ByteHold hold = {})
      ABSL_LOCKS_EXCLUDED(mutex_);
  // More room beside that of HandOver, until the call is done.
  void KeepHold(ByteHold hold) ABSL_LOCKS_EXCLUDED(mutex_);

 protected:
  using SharedMessage = std::shared_ptr<const google::protobuf::Message>;

  // Read, as a message of that type.
  virtual absl::StatusOr<SharedMessage> Parse(
      const google::protobuf::Message& type) const = 0;
  // What the caller's quota of calls says to one more; methods of the server's
  // own state are always let in. Errors: QUOTA.
  absl::Status CheckCallQuota(Admission admission);
  // Before the method is called.
  void SetCaller(Caller caller);
  // SessionOf's error where the transport's metadata names another session.
  virtual absl::Status CheckRoute(const std::string& session_id) const = 0;
  // The call, kept alive.
  virtual std::shared_ptr<ApiCall> self() = 0;
  // Called when the request is not needed any more.
  virtual void DropRequest() {}

  bool cancelled() const ABSL_LOCKS_EXCLUDED(mutex_);
  std::shared_ptr<CallEvents> events() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Tells events() that the client has left. False: there are none.
  bool TellCancel() ABSL_LOCKS_EXCLUDED(mutex_);
  // Takes room for an answer, unless HandOver brought it. Errors: OVERLOADED,
  // the answer cannot be sent.
  absl::Status HoldAnswerBytes(int64_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  // The client does not have to read the answer any more: its room is free.
  void ReleaseAnswer() ABSL_LOCKS_EXCLUDED(mutex_);
  // The transport is done with the call: frees all room and tells events().
  void TellDone() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  CallDesk* const desk_;
  Caller caller_;
  CallRecord record_;

  mutable absl::Mutex mutex_;
  std::shared_ptr<CallEvents> events_ ABSL_GUARDED_BY(mutex_);
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  ByteHold answer_hold_ ABSL_GUARDED_BY(mutex_);
  ByteHold unread_hold_ ABSL_GUARDED_BY(mutex_);
  ByteHold more_hold_ ABSL_GUARDED_BY(mutex_);
};

// NoteRequestId of requests that have one.
template <typename Request>
void NoteRequest(ApiCall& call, const Request& request) {
  if constexpr (requires { request.request_id(); }) {
    call.NoteRequestId(request.request_id());
  }
}

// Tells the turn of a call that its client has left, or that its deadline has
// passed.
void CancelTurn(const CallRecord& record,
                std::optional<absl::Duration> deadline, CancelToken* cancel);

}  // namespace txl
