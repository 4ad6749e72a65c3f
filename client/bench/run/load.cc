#include "client/bench/run/load.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "client/bench/run/grpc_target.h"
#include "client/client.h"

namespace txl::bench {
namespace {

constexpr int32_t kTurnsPerConnection = 50;
constexpr int32_t kConnectionsPerThread = 8;
constexpr double kDefaultSeconds = 10;
// Threads are there by then.
constexpr Nanos kStartIn = kNanosPerSecond / 50;
constexpr absl::Duration kLookForCancel = absl::Milliseconds(50);
constexpr absl::Duration kProgressEvery = absl::Seconds(1);

struct Usage {
  double cpu_seconds = 0;
  int64_t switches = 0;
};

Usage UsageSoFar() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) +
           static_cast<double>(time.tv_usec) * 1e-6;
  };
  return {seconds(usage.ru_utime) + seconds(usage.ru_stime),
          usage.ru_nvcsw + usage.ru_nivcsw};
}

std::string HostName() {
  char name[256] = "";
  (void)gethostname(name, sizeof(name) - 1);
  return name;
}

void FillIn(LoadOptions* options) {
  RunOptions& run = options->run;
  if (run.requests == 0 && run.seconds == 0) run.seconds = kDefaultSeconds;
  const bool closed = run.mode == Mode::kClosed;
  const int32_t connections = options->connections > 0 ? options->connections
                              : closed ? DefaultConnections(run.streams)
                                       : 1;
  if (options->threads == 0) {
    const auto cores =
        static_cast<int32_t>(std::max(1u, std::thread::hardware_concurrency()));
    options->threads =
        std::clamp(connections / kConnectionsPerThread, 1, cores);
  }
  if (closed) options->connections = connections;
}

absl::Status CheckLimits(const Workload& workload,
                         const v1::GetModelResponse& model) {
  if (model.vocabulary_size() < 1) {
    return absl::InternalError("the server reports no vocabulary size");
  }
  const auto over = [](const char* what, const Distribution& lengths,
                       int64_t limit) {
    if (limit == 0 || lengths.highest() <= static_cast<double>(limit)) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(
        absl::StrCat(what, " ", lengths.text(), ": the server takes at most ",
                     limit, " (--help tells how to give a highest length)"));
  };
  absl::Status status =
      over("--max-tokens", workload.max_tokens, model.limits().max_tokens());
  if (status.ok() && workload.prompts.empty()) {
    status = over("--prompt-tokens", workload.prompt_tokens,
                  model.limits().max_prompt_tokens());
  }
  return status;
}

using Targets = std::vector<std::unique_ptr<GrpcTarget>>;

absl::StatusOr<Targets> Connect(const LoadOptions& options) {
  Targets targets;
  for (int32_t i = 0; i < options.threads; ++i) {
    GrpcTargetOptions target;
    target.channel = options.channel;
    target.timeout_seconds = options.timeout_seconds;
    if (options.connections == 0) {
      target.turns_per_connection = kTurnsPerConnection;
    } else {
      // Connections are spread evenly; every thread has one.
      target.connections =
          (options.connections + options.threads - 1 - i) / options.threads;
    }
    auto made = GrpcTarget::Create(target);
    if (!made.ok()) return made.status();
    targets.push_back(*std::move(made));
  }
  return targets;
}

void Merge(DriverResult part, DriverResult* all) {
  std::move(part.turns.begin(), part.turns.end(),
            std::back_inserter(all->turns));
  all->gaps.Merge(part.gaps);
  all->tokens.Merge(part.tokens);
  all->end = std::max(all->end, part.end);
  all->interrupted = all->interrupted || part.interrupted;
}

// While the drivers run: hands a cancellation on and tells how it goes.
class Watch {
 public:
  Watch(SharedRun* shared, Canceller* canceller, const OnProgress& on_progress)
      : thread_([this, shared, canceller, &on_progress] {
          Loop(shared, canceller, on_progress);
        }) {}
  ~Watch() {
    {
      absl::MutexLock lock(&mutex_);
      over_ = true;
    }
    thread_.join();
  }

 private:
  void Loop(SharedRun* shared, Canceller* canceller,
            const OnProgress& on_progress) {
    const absl::Time start = absl::Now();
    absl::Time told = start;
    absl::MutexLock lock(&mutex_);
    while (!mutex_.AwaitWithTimeout(absl::Condition(&over_), kLookForCancel)) {
      if (canceller->cancelled()) shared->cancelled = true;
      const absl::Time now = absl::Now();
      if (on_progress && now - told >= kProgressEvery) {
        told = now;
        on_progress(absl::ToDoubleSeconds(now - start), shared->progress);
      }
    }
  }

  absl::Mutex mutex_;
  bool over_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

DriverResult Drive(SharedRun* shared, const Targets& targets) {
  const auto count = static_cast<int32_t>(targets.size());
  std::vector<DriverResult> parts(targets.size());
  std::vector<std::thread> threads;
  threads.reserve(targets.size());
  for (int32_t i = 0; i < count; ++i) {
    threads.emplace_back([&, i] {
      parts[i] = Driver(shared, targets[i].get(), i, count).Run();
    });
  }
  for (std::thread& thread : threads) thread.join();
  DriverResult all;
  for (DriverResult& part : parts) Merge(std::move(part), &all);
  std::stable_sort(all.turns.begin(), all.turns.end(),
                   [](const TurnRecord& a, const TurnRecord& b) {
                     return a.scheduled < b.scheduled;
                   });
  return all;
}

// The counters when no turn runs any more, or after a while: the server ends
// its books of a turn a moment after the client has seen its end.
absl::StatusOr<ServerCounters> CountersAtRest(Client& client) {
  constexpr int kTries = 40;
  constexpr absl::Duration kPause = absl::Milliseconds(50);
  for (int i = 0;; ++i) {
    const auto status = client.GetServerStatus({.timeout = absl::Seconds(10)});
    if (!status.ok()) return status.status();
    if (status->turns_active() == 0 || i == kTries) return CountersOf(*status);
    absl::SleepFor(kPause);
  }
}

}  // namespace

int32_t DefaultConnections(int32_t streams) {
  return std::max(1, (streams + kTurnsPerConnection - 1) / kTurnsPerConnection);
}

absl::StatusOr<LoadResult> RunLoad(LoadOptions options, Canceller* canceller,
                                   const OnProgress& on_progress) {
  FillIn(&options);
  auto client = Client::Create(options.channel);
  if (!client.ok()) return client.status();
  const auto model = (*client)->GetModel({.canceller = canceller});
  if (!model.ok()) return model.status();
  absl::Status status = CheckLimits(options.run.workload, *model);
  if (!status.ok()) return status;
  auto targets = Connect(options);
  if (!targets.ok()) return targets.status();

  LoadResult result;
  result.model = model->name();
  result.fingerprint = model->fingerprint();
  result.server_version = model->server_version();
  result.start = absl::Now();
  result.host = HostName();
  const auto before = (*client)->GetServerStatus({.canceller = canceller});
  if (!before.ok()) return before.status();
  const Usage usage_before = UsageSoFar();
  SharedRun shared{
      .options = options.run,
      .vocabulary = model->vocabulary_size(),
      .session_prefix = absl::StrCat("bench-", getpid(), "-",
                                     absl::ToUnixMicros(absl::Now()), "-")};
  shared.start = targets->front()->Now() + kStartIn;
  {
    Watch watch(&shared, canceller, on_progress);
    result.result = Drive(&shared, *targets);
  }
  const Usage usage = UsageSoFar();
  result.usage.cpu_seconds = usage.cpu_seconds - usage_before.cpu_seconds;
  result.usage.context_switches = usage.switches - usage_before.switches;
  result.usage.threads = options.threads;
  for (const auto& target : *targets) {
    result.usage.connections += target->connections();
  }
  // A server that has gone meanwhile leaves nothing to compare with.
  if (const auto after = CountersAtRest(**client); after.ok()) {
    result.server = CompareCounters(CountersOf(*before), *after, result.result);
  }
  result.options = std::move(options);
  return result;
}

}  // namespace txl::bench
