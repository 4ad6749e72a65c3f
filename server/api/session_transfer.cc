#include "server/api/session_transfer.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "model/base/status_macros.h"
#include "server/api/convert_input.h"
#include "server/api/convert_output.h"
#include "server/api/unary_turn.h"
#include "server/base/error.h"
#include "server/session/session_errors.h"
#include "server/session/session_export.h"
#include "server/session/session_import.h"

namespace txl {
namespace {

// What a running export takes: what SessionExport makes at a time, and the
// message that is being written with the one that is being made.
constexpr int64_t kExportBytes =
    2 * SessionExport::kMostPieceBytes + 2 * kExportChunkBytes;

// Bytes of a file for which room is taken at a time.
constexpr int64_t kImportStep = 256 << 10;

struct ExportInput {
  SessionName session;
  bool include_state = false;
};

absl::StatusOr<ExportInput> ReadExport(ApiCall& call) {
  TXL_ASSIGN_OR_RETURN(const auto request,
                       call.Read<v1::ExportSessionRequest>());
  ExportInput input;
  TXL_ASSIGN_OR_RETURN(input.session,
                       call.NamedSessionOf(request->session_id()));
  input.include_state = request->include_state();
  return input;
}

// One export: makes a piece on the pool, writes it in chunks, one at a time,
// then makes the next one. So one thread at a time is at work here.
class ExportRun final : public CallEvents,
                        public std::enable_shared_from_this<ExportRun> {
 public:
  ExportRun(const TurnContext& service, std::shared_ptr<ApiCall> call,
            ExportInput input)
      : service_(service),
        call_(std::move(call)),
        session_(std::move(input.session)),
        with_state_(input.include_state && !service.export_key.empty()) {}

  void Start() {
    if (!with_state_) return Begin(absl::OkStatus());
    SaveState(service_, call_, session_, std::nullopt,
              [self = shared_from_this()](const absl::Status& saved) {
                self->Begin(saved);
              });
  }

  // CallEvents.
  void OnWriteDone(bool ok) override {
    if (!ok) return call_->End(absl::CancelledError("the client has left"));
    if (next_ < piece_.size()) return Write();
    Make();
  }
  void OnCancel() override {}  // the write that runs fails, or the next work
  void OnDone() override {}

 private:
  void Begin(const absl::Status& saved) {
    const absl::Status status = saved.ok() ? Open() : saved;
    if (!status.ok()) return call_->End(status);
    Make();
  }

  absl::Status Open() {
    TXL_ASSIGN_OR_RETURN(SessionSnapshot snapshot,
                         service_.sessions->Snapshot(session_));
    TXL_ASSIGN_OR_RETURN(ByteHold hold, call_->desk().HoldAnswer(kExportBytes));
    ExportOptions options;
    options.fingerprint = service_.model.facts->fingerprint;
    options.vocabulary_size = service_.model.facts->config.vocab_size;
    options.key = service_.export_key;
    if (!with_state_) snapshot.state = nullptr;
    export_ = std::make_unique<SessionExport>(options, snapshot.head,
                                              std::move(snapshot.token_ids),
                                              std::move(snapshot.state));
    call_->ReturnSession(session_.id());
    call_->HandOver(shared_from_this(), std::move(hold));
    return absl::OkStatus();
  }

  void Make() {
    call_->Work([self = shared_from_this()] {
      self->piece_ = self->export_->Next();
      self->next_ = 0;
      if (self->piece_.empty()) return self->call_->End(absl::OkStatus());
      self->Write();
    });
  }

  void Write() {
    const size_t bytes =
        std::min<size_t>(piece_.size() - next_, kExportChunkBytes);
    v1::ExportSessionResponse response;
    response.set_chunk(piece_.substr(next_, bytes));
    next_ += bytes;
    call_->WritePiece(response);
  }

  const TurnContext& service_;
  const std::shared_ptr<ApiCall> call_;
  const SessionName session_;
  const bool with_state_;
  std::unique_ptr<SessionExport> export_;
  std::string piece_;
  size_t next_ = 0;  // of the piece, to be written
};

// One import: takes in a message on the pool, then reads the next one.
class ImportRun final : public std::enable_shared_from_this<ImportRun> {
 public:
  ImportRun(const TurnContext& service, std::shared_ptr<ApiCall> call)
      : service_(service),
        call_(std::move(call)),
        import_(Options(service, call_->caller().tenant)),
        // Ids become four bytes; a state is copied once.
        expansion_(std::max<int64_t>(
            2, 4 / ExportIdBytes(service.model.facts->config.vocab_size))) {}

  void Take(bool first) {
    const absl::Status status = TakeMessage(first);
    if (!status.ok()) return call_->End(status);
    call_->ReadMore([self = shared_from_this()](bool more) {
      more ? self->Take(false) : self->End();
    });
  }

 private:
  static ImportOptions Options(const TurnContext& service,
                               const std::string& tenant) {
    ImportOptions options;
    options.fingerprint = service.model.facts->fingerprint;
    options.vocabulary_size = service.model.facts->config.vocab_size;
    options.vocabulary = service.model.facts->vocabulary;
    options.key = service.export_key;
    options.max_bytes = service.model.limits.import_bytes;
    options.max_tokens = service.model.sessions.max_session_tokens;
    options.may_add = [&service, tenant](int64_t tokens) {
      return service.sessions->MayAdd(tenant, tokens);
    };
    return options;
  }

  absl::Status TakeMessage(bool first) {
    TXL_ASSIGN_OR_RETURN(const auto request,
                         call_->Read<v1::ImportSessionRequest>());
    TXL_RETURN_IF_ERROR(first ? TakeFirst(*request) : CheckLater(*request));
    bytes_ += static_cast<int64_t>(request->chunk().size());
    while (held_bytes_ < bytes_) {
      TXL_ASSIGN_OR_RETURN(ByteHold hold,
                           call_->desk().HoldPart(kImportStep * expansion_));
      holds_.push_back(std::move(hold));
      held_bytes_ += kImportStep;
    }
    return import_.Add(request->chunk());
  }

  absl::Status TakeFirst(const v1::ImportSessionRequest& request) {
    TXL_ASSIGN_OR_RETURN(session_, call_->SessionOf(request.session_id()));
    if (request.has_ttl()) {
      TXL_ASSIGN_OR_RETURN(ttl_, ReadDuration(request.ttl()));
      TXL_RETURN_IF_ERROR(ValidateTtl(*ttl_, service_.model.sessions));
    }
    // Before all of the file has come for nothing. Where a copy may be old, End
    // looks at it.
    if (!session_.empty() && !service_.sessions->MayBeStored(session_) &&
        service_.sessions->Get(session_).ok()) {
      return SessionExistsError();
    }
    return service_.sessions->MayAdd(session_.tenant(), 0);
  }

  static absl::Status CheckLater(const v1::ImportSessionRequest& request) {
    constexpr char kFirst[] = "belongs into the first message";
    if (!request.session_id().empty()) return FieldError("session_id", kFirst);
    if (request.has_ttl()) return FieldError("ttl", kFirst);
    return absl::OkStatus();
  }

  absl::StatusOr<SessionInfo> Finish() {
    TXL_ASSIGN_OR_RETURN(ImportedSession session, import_.Finish());
    // A state that another kernel made; the ids are enough.
    if (session.state.has_value() &&
        !CheckStateImage(*session.state, service_.state_identity).ok()) {
      session.state.reset();
    }
    return service_.sessions->Import(session_, ttl_, std::move(session));
  }

  void End() {
    service_.sessions.With(
        session_, [self = shared_from_this()](const absl::Status& prepared) {
          prepared.ok() ? self->Answer() : self->call_->End(prepared);
        });
  }

  void Answer() {
    const absl::StatusOr<SessionInfo> info = Finish();
    if (!info.ok()) return call_->End(info.status());
    v1::ImportSessionResponse response;
    WriteSession(*info, response.mutable_session());
    const SessionName made = call_->Told(*info);
    call_->record().session = HashOf(made);
    call_->ReturnSession(info->session_id);
    service_.sessions.WhenChanged(made,
                                  AnswerIfStored(call_, std::move(response)));
  }

  const TurnContext& service_;
  const std::shared_ptr<ApiCall> call_;
  SessionImport import_;
  const int64_t expansion_;  // bytes kept for one of the file, at most
  SessionName session_;
  std::optional<absl::Duration> ttl_;
  int64_t bytes_ = 0;       // of the file, so far
  int64_t held_bytes_ = 0;  // of the file, for which there is room
  std::vector<ByteHold> holds_;
};

}  // namespace

void ExportSession(const TurnContext& service,
                   const std::shared_ptr<ApiCall>& call) {
  absl::StatusOr<ExportInput> input = ReadExport(*call);
  if (!input.ok()) return call->End(input.status());
  const SessionName session = input->session;
  const auto run =
      std::make_shared<ExportRun>(service, call, *std::move(input));
  service.sessions.With(session, [run, call](const absl::Status& prepared) {
    prepared.ok() ? run->Start() : call->End(prepared);
  });
}

void ImportSession(const TurnContext& service,
                   const std::shared_ptr<ApiCall>& call) {
  std::make_shared<ImportRun>(service, call)->Take(true);
}

namespace {

// Hears of the turn that saves, and of the call that waits for it.
class SaveSink final : public TokenSink, public CallEvents {
 public:
  // `fails`: whether `then` hears of every error.
  SaveSink(const TurnContext& service, ApiCall& call, bool fails,
           std::function<void(const absl::Status&)> then)
      : service_(service),
        record_(call.record()),
        deadline_(call.Deadline()),
        fails_(fails),
        then_(std::move(then)) {}

  const std::shared_ptr<CancelToken>& cancel() const { return cancel_; }
  std::optional<absl::Duration> deadline() const { return deadline_; }

  // TokenSink.
  void Started(const TurnStarted&) override {}
  void Token(TokenEvent) override {}
  void Scored(std::vector<ScoredToken>) override {}
  void Finished(const TurnFinished&) override { End(absl::OkStatus()); }
  void Failed(const absl::Status& status) override {
    const bool left =
        absl::IsCancelled(status) || absl::IsDeadlineExceeded(status);
    End(left || fails_ ? status : absl::OkStatus());
  }
  int Unsent() const override { return 0; }

  // CallEvents.
  void OnCancel() override {
    CancelTurn(record_, deadline_, cancel_.get());
    service_.scheduler->Wake();
  }
  void OnDone() override {}

 private:
  // Called once: by the scheduler, or by who could not submit the turn.
  void End(const absl::Status& status) {
    service_.callbacks->Run(
        [then = std::exchange(then_, nullptr), status] { then(status); });
  }

  const TurnContext& service_;
  const CallRecord record_;
  const std::optional<absl::Duration> deadline_;
  const bool fails_;
  const std::shared_ptr<CancelToken> cancel_ = std::make_shared<CancelToken>();
  std::function<void(const absl::Status&)> then_;
};

void SubmitSave(const TurnContext& service, ApiCall& call, SessionLease lease,
                bool moves_out, const std::shared_ptr<SaveSink>& sink) {
  Turn turn;
  turn.kind = TurnKind::kSave;
  turn.moves_out = moves_out;
  turn.lease = std::move(lease);
  turn.sink = sink;
  turn.cancel = sink->cancel();
  turn.deadline = sink->deadline();
  call.HandOver(sink);
  const absl::Status status = service.scheduler->Submit(std::move(turn));
  if (!status.ok()) sink->Failed(status);
}

}  // namespace

void SaveState(const TurnContext& service, const std::shared_ptr<ApiCall>& call,
               const SessionName& session, std::optional<int64_t> position,
               std::function<void(const absl::Status&)> then) {
  absl::StatusOr<SessionLease> lease = service.sessions->Acquire(session);
  if (!lease.ok()) return then(absl::OkStatus());
  if (position.value_or(lease->position()) != lease->position()) {
    lease->Release();
    return then(absl::OkStatus());
  }
  SubmitSave(service, *call, *std::move(lease), /*moves_out=*/false,
             std::make_shared<SaveSink>(service, *call, /*fails=*/false,
                                        std::move(then)));
}

void MoveOutState(const TurnContext& service,
                  const std::shared_ptr<ApiCall>& call,
                  const SessionName& session,
                  std::function<void(const absl::StatusOr<bool>&)> then) {
  absl::StatusOr<SessionLease> lease = service.sessions->Acquire(session);
  if (!lease.ok()) return then(lease.status());
  // Nobody moves it while the lease is held.
  const absl::StatusOr<SessionInfo> info = service.sessions->Get(session);
  if (!info.ok() || !info->in_slot) {
    lease->Release();
    return then(info.ok() ? absl::StatusOr<bool>(false) : info.status());
  }
  const auto moved = [then = std::move(then)](const absl::Status& status) {
    then(status.ok() ? absl::StatusOr<bool>(true) : status);
  };
  SubmitSave(service, *call, *std::move(lease), /*moves_out=*/true,
             std::make_shared<SaveSink>(service, *call, /*fails=*/true, moved));
}

}  // namespace txl
