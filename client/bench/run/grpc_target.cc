#include "client/bench/run/grpc_target.h"

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include "client/call_error.h"
#include "txl/v1/generation_service.grpc.pb.h"
#include "txl/v1/session_service.grpc.pb.h"

namespace txl::bench {
namespace {

constexpr std::chrono::seconds kConnectTimeout{5};
constexpr std::chrono::seconds kSessionCallTimeout{10};
// Fixed, as gRPC otherwise sends a ping with the reads to find its window out.
constexpr int32_t kWindowBytes = 256 << 10;
constexpr int32_t kSlowWindowBytes = 1024;
// A session that nobody deletes, as its load test was killed.
constexpr int64_t kSessionTtlSeconds = 600;
// gRPC wakes up to a millisecond late: the last one is waited out in naps.
constexpr Nanos kCoarse = kNanosPerSecond / 1000;
constexpr Nanos kNap = kNanosPerSecond / 20'000;

gpr_timespec ToTimespec(Nanos time) {
  return {time / kNanosPerSecond, static_cast<int32_t>(time % kNanosPerSecond),
          GPR_CLOCK_MONOTONIC};
}

struct Connection {
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<v1::GenerationService::Stub> generation;
  std::unique_ptr<v1::SessionService::Stub> sessions;
  bool slow = false;
  int32_t running = 0;
};

// A call has one operation in flight; `step` says which.
struct Call {
  enum class Step { kStarting, kReading, kFinishing };
  int32_t number = 0;
  Step step = Step::kStarting;
  bool handed_over = false;  // an event; nothing is in flight until Read()
  Connection* connection = nullptr;
  std::optional<grpc::ClientContext> context;
  std::unique_ptr<grpc::ClientAsyncReader<v1::GenerateResponse>> turn;
  std::unique_ptr<grpc::ClientAsyncResponseReader<v1::CreateSessionResponse>>
      create;
  std::unique_ptr<grpc::ClientAsyncResponseReader<v1::DeleteSessionResponse>>
      remove;
  v1::GenerateResponse response;
  v1::CreateSessionResponse created;
  v1::DeleteSessionResponse removed;
  grpc::Status status;
};

}  // namespace

class GrpcTarget::Impl {
 public:
  explicit Impl(const GrpcTargetOptions& options) : options_(options) {}
  ~Impl();

  absl::Status Connect(bool slow);
  void AwaitConnections();
  Connection* Pick(bool slow);
  Call* Begin(int32_t number, bool slow, const std::string& session_id);
  void StartRead(Call* call) {
    call->handed_over = false;
    call->turn->Read(&call->response, call);
  }
  // One operation's end. The event is kNone if it leads to another operation.
  Event Advance(Call* call, bool ok);

  const GrpcTargetOptions options_;
  grpc::CompletionQueue queue_;
  std::vector<std::unique_ptr<Connection>> connections_;
  std::vector<std::unique_ptr<Call>> calls_;  // by number
  int64_t running_ = 0;
};

GrpcTarget::Impl::~Impl() {
  for (auto& call : calls_) {
    if (call == nullptr || !call->context) continue;
    call->context->TryCancel();
    if (call->handed_over) StartRead(call.get());
  }
  void* tag = nullptr;
  bool ok = false;
  while (running_ > 0 && queue_.Next(&tag, &ok)) {
    auto* call = static_cast<Call*>(tag);
    if (Advance(call, ok).kind == Event::Kind::kResponse) StartRead(call);
  }
  queue_.Shutdown();
  while (queue_.Next(&tag, &ok)) {
  }
}

absl::Status GrpcTarget::Impl::Connect(bool slow) {
  ChannelOptions channel_options = options_.channel;
  channel_options.own_connection = true;
  channel_options.lean = true;
  channel_options.window_bytes = slow ? kSlowWindowBytes : kWindowBytes;
  auto channel = OpenChannel(channel_options);
  if (!channel.ok()) return channel.status();
  auto connection = std::make_unique<Connection>();
  connection->channel = *channel;
  connection->generation = v1::GenerationService::NewStub(*channel);
  connection->sessions = v1::SessionService::NewStub(*channel);
  connection->slow = slow;
  (void)(*channel)->GetState(/*try_to_connect=*/true);
  connections_.push_back(std::move(connection));
  return absl::OkStatus();
}

void GrpcTarget::Impl::AwaitConnections() {
  const auto deadline = std::chrono::system_clock::now() + kConnectTimeout;
  for (auto& connection : connections_) {
    (void)connection->channel->WaitForConnected(deadline);
  }
}

Connection* GrpcTarget::Impl::Pick(bool slow) {
  Connection* best = nullptr;
  for (auto& connection : connections_) {
    if (connection->slow == slow &&
        (best == nullptr || connection->running < best->running)) {
      best = connection.get();
    }
  }
  const int32_t most = options_.turns_per_connection;
  const bool full = best != nullptr && most > 0 && best->running >= most;
  // The options were good for the first connection, so they are for this one.
  if ((best == nullptr || full) && Connect(slow).ok()) {
    best = connections_.back().get();
  }
  return best;
}

Call* GrpcTarget::Impl::Begin(int32_t number, bool slow,
                              const std::string& session_id) {
  if (number >= static_cast<int32_t>(calls_.size())) calls_.resize(number + 1);
  if (calls_[number] == nullptr) calls_[number] = std::make_unique<Call>();
  Call* call = calls_[number].get();
  call->number = number;
  call->connection = Pick(slow);
  ++call->connection->running;
  ++running_;
  call->context.emplace();
  if (!session_id.empty()) {
    call->context->AddMetadata("x-txl-session", session_id);
  }
  return call;
}

Event GrpcTarget::Impl::Advance(Call* call, bool ok) {
  if (call->step != Call::Step::kFinishing) {
    if (ok && call->step == Call::Step::kReading) {
      call->handed_over = true;
      return {Event::Kind::kResponse, call->number, &call->response, {}};
    }
    if (ok) {
      call->step = Call::Step::kReading;
      StartRead(call);
    } else {
      call->step = Call::Step::kFinishing;
      call->turn->Finish(&call->status, call);
    }
    return {};
  }
  Event event{Event::Kind::kEnd, call->number, nullptr,
              FromGrpcStatus(call->status)};
  call->turn.reset();
  call->create.reset();
  call->remove.reset();
  call->context.reset();
  call->status = grpc::Status();
  --call->connection->running;
  --running_;
  return event;
}

GrpcTarget::GrpcTarget(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
GrpcTarget::~GrpcTarget() = default;

absl::StatusOr<std::unique_ptr<GrpcTarget>> GrpcTarget::Create(
    const GrpcTargetOptions& options) {
  auto impl = std::make_unique<Impl>(options);
  for (int32_t i = 0; i < std::max(1, options.connections); ++i) {
    const absl::Status status = impl->Connect(/*slow=*/false);
    if (!status.ok()) return status;
  }
  impl->AwaitConnections();
  return std::unique_ptr<GrpcTarget>(new GrpcTarget(std::move(impl)));
}

Nanos GrpcTarget::Now() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * kNanosPerSecond + now.tv_nsec;
}

void GrpcTarget::StartTurn(int32_t call, const v1::GenerateRequest& request,
                           const TurnOptions& options) {
  Call* turn = impl_->Begin(call, options.slow_reader, options.session_id);
  if (impl_->options_.timeout_seconds > 0) {
    turn->context->set_deadline(
        ToTimespec(Now() + FromSeconds(impl_->options_.timeout_seconds)));
  }
  turn->step = Call::Step::kStarting;
  turn->turn = turn->connection->generation->AsyncGenerate(
      &*turn->context, request, &impl_->queue_, turn);
}

void GrpcTarget::CreateSession(int32_t call, const std::string& session_id) {
  Call* create = impl_->Begin(call, /*slow=*/false, session_id);
  create->context->set_deadline(std::chrono::system_clock::now() +
                                kSessionCallTimeout);
  v1::CreateSessionRequest request;
  request.set_session_id(session_id);
  request.mutable_ttl()->set_seconds(kSessionTtlSeconds);
  create->step = Call::Step::kFinishing;
  create->create = create->connection->sessions->AsyncCreateSession(
      &*create->context, request, &impl_->queue_);
  create->create->Finish(&create->created, &create->status, create);
}

void GrpcTarget::DeleteSession(int32_t call, const std::string& session_id) {
  Call* remove = impl_->Begin(call, /*slow=*/false, session_id);
  remove->context->set_deadline(std::chrono::system_clock::now() +
                                kSessionCallTimeout);
  v1::DeleteSessionRequest request;
  request.set_session_id(session_id);
  remove->step = Call::Step::kFinishing;
  remove->remove = remove->connection->sessions->AsyncDeleteSession(
      &*remove->context, request, &impl_->queue_);
  remove->remove->Finish(&remove->removed, &remove->status, remove);
}

void GrpcTarget::Read(int32_t call) {
  impl_->StartRead(impl_->calls_[call].get());
}

void GrpcTarget::Cancel(int32_t call) {
  impl_->calls_[call]->context->TryCancel();
}

Event GrpcTarget::Next(Nanos until) {
  while (true) {
    const Nanos left = until - Now();
    const Nanos wait = left > kCoarse ? left - kCoarse : 0;
    void* tag = nullptr;
    bool ok = false;
    const auto got = impl_->queue_.AsyncNext(
        &tag, &ok, wait > 0 ? ToTimespec(until - kCoarse) : ToTimespec(0));
    if (got == grpc::CompletionQueue::GOT_EVENT) {
      Event event = impl_->Advance(static_cast<Call*>(tag), ok);
      if (event.kind != Event::Kind::kNone) return event;
    } else if (left <= 0) {
      return {};
    } else if (wait == 0) {
      const timespec nap{0, std::min(left, kNap)};
      clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, nullptr);
    }
  }
}

int32_t GrpcTarget::connections() const {
  return static_cast<int32_t>(impl_->connections_.size());
}

}  // namespace txl::bench
