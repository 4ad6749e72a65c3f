#include "server/api/api_call.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "model/base/status_macros.h"
#include "server/access/key_ring.h"
#include "server/base/log.h"
#include "server/session/session_name.h"

namespace txl {
namespace {

// A client resets its call at its deadline. The server reckons the deadline
// from the call's arrival, so the reset comes a little before it.
constexpr absl::Duration kDeadlineSlack = absl::Milliseconds(100);

}  // namespace

ApiCall::ApiCall(const char* method, CallDesk* desk, CallOrigin origin)
    : desk_(desk),
      record_(
          StartRecord(method, desk->context().clock, desk->context().metrics)) {
  record_.lines = &desk->lines();
  record_.peer = std::move(origin.peer);
  record_.trace = std::move(origin.trace);
  record_.request_id = std::move(origin.request_id);
}

TenantAccount* ApiCall::account() const {
  Tenants* const tenants = desk_->context().tenants;
  return tenants == nullptr ? nullptr
                            : tenants->Find(caller_.tenant, desk_->Now());
}

absl::Status ApiCall::CheckCallQuota(Admission admission) {
  if (admission == Admission::kAlways) return absl::OkStatus();
  TenantAccount* const tenant = account();
  if (tenant == nullptr) return absl::OkStatus();
  const absl::Status status = tenant->AdmitCall(desk_->Now());
  if (status.ok()) return status;
  desk_->context().metrics->Update([counts = tenant->counts()](Snapshot& s) {
    ++s.tenants[counts].refused;
  });
  return status;
}

void ApiCall::SetCaller(Caller caller) {
  caller_ = std::move(caller);
  record_.tenant = caller_.tenant;
  record_.key = caller_.name;
}

absl::StatusOr<SessionName> ApiCall::SessionOf(const std::string& session_id) {
  if (session_id.empty()) {
    TXL_RETURN_IF_ERROR(CheckRoute(session_id));
    return SessionName(caller_.tenant, "");
  }
  return NamedSessionOf(session_id);
}

absl::StatusOr<SessionName> ApiCall::NamedSessionOf(
    const std::string& session_id) {
  TXL_RETURN_IF_ERROR(ValidateSessionId(session_id));
  SessionName session(caller_.tenant, session_id);
  record_.session = HashOf(session);
  if (!kUsers.Has(caller_.role)) {
    return PermissionDeniedError(caller_.role,
                                 absl::StrCat(record_.method, " on a session"));
  }
  TXL_RETURN_IF_ERROR(CheckRoute(session_id));
  return session;
}

void ApiCall::NoteRequestId(const std::string& request_id) {
  if (ValidateSessionId(request_id).ok()) record_.request_id = request_id;
}

void ApiCall::Work(std::function<void()> work) {
  desk_->context().turns.work->Run(
      peer(),
      [call = self(), work = std::move(work)](const absl::Status& status) {
        if (call->cancelled()) {
          return call->End(absl::CancelledError("the client has left"));
        }
        if (!status.ok()) return call->End(status);
        work();
      });
}

void ApiCall::HandOver(std::shared_ptr<CallEvents> events, ByteHold hold) {
  bool cancelled;
  {
    absl::MutexLock lock(&mutex_);
    events_ = events;
    answer_hold_ = std::move(hold);
    cancelled = cancelled_;
  }
  DropRequest();
  if (cancelled) events->OnCancel();
}

void ApiCall::KeepHold(ByteHold hold) {
  absl::MutexLock lock(&mutex_);
  more_hold_ = std::move(hold);
}

bool ApiCall::cancelled() const {
  absl::MutexLock lock(&mutex_);
  return cancelled_;
}

std::shared_ptr<CallEvents> ApiCall::events() const {
  absl::MutexLock lock(&mutex_);
  return events_;
}

bool ApiCall::TellCancel() {
  {
    absl::MutexLock lock(&mutex_);
    cancelled_ = true;
  }
  const auto told = events();
  if (told != nullptr) told->OnCancel();
  return told != nullptr;
}

absl::Status ApiCall::HoldAnswerBytes(int64_t bytes) {
  absl::StatusOr<ByteHold> unread = desk_->HoldUnread(bytes);
  bool has_room;
  {
    absl::MutexLock lock(&mutex_);
    has_room = answer_hold_.bytes() > 0;
  }
  // What a turn brought has its room: it is never refused.
  if (!has_room) {
    if (!unread.ok()) return unread.status();
    absl::StatusOr<ByteHold> hold = desk_->HoldAnswer(bytes);
    if (!hold.ok()) return hold.status();
    absl::MutexLock lock(&mutex_);
    answer_hold_ = *std::move(hold);
  }
  if (unread.ok()) {
    absl::MutexLock lock(&mutex_);
    unread_hold_ = *std::move(unread);
  }
  return absl::OkStatus();
}

void ApiCall::ReleaseAnswer() {
  absl::MutexLock lock(&mutex_);
  answer_hold_.Release();
  unread_hold_.Release();
}

void ApiCall::TellDone() {
  std::shared_ptr<CallEvents> told;
  {
    absl::MutexLock lock(&mutex_);
    told = std::move(events_);
    events_ = nullptr;
    answer_hold_.Release();
    unread_hold_.Release();
    more_hold_.Release();
  }
  if (told != nullptr) told->OnDone();
}

void CancelTurn(const CallRecord& record,
                std::optional<absl::Duration> deadline, CancelToken* cancel) {
  const absl::Duration now = record.clock->Monotonic();
  const bool late = deadline.has_value() && now + kDeadlineSlack >= *deadline;
  cancel->Cancel(
      late ? CancelToken::Why::kDeadline : CancelToken::Why::kCancelled, now);
  Log(LogSeverity::kDebug, "cancel",
      {{"method", record.method}, {"deadline", late}});
}

}  // namespace txl
