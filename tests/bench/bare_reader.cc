// txl-bench-bare-reader: the least that gRPC's C++ library needs to read the
// streams that `txl bench` reads. One completion queue, one thread, one
// connection for each 50 streams; bytes are neither parsed nor timed. Prints a
// line of JSON.

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "client/bench/plan/workload.h"
#include "client/channel.h"

namespace txl {
namespace {

struct Options {
  ChannelOptions channel;
  int64_t streams = 8;
  int64_t requests = 16;
  int64_t prompt_tokens = 32;
  int64_t max_tokens = 512;
  int64_t vocabulary = 64;
};

constexpr int64_t kStreamsPerConnection = 50;

double CpuSeconds() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) +
           static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

grpc::ByteBuffer Request(const Options& options, int64_t index) {
  bench::Workload workload;
  workload.prompt_tokens =
      bench::Distribution::Fixed(static_cast<double>(options.prompt_tokens));
  workload.max_tokens =
      bench::Distribution::Fixed(static_cast<double>(options.max_tokens));
  const std::string bytes = PlanTurn(workload, options.vocabulary, index, 0)
                                .request.SerializeAsString();
  const grpc::Slice slice(bytes);
  return grpc::ByteBuffer(&slice, 1);
}

struct Call {
  enum class Step { kStarting, kWriting, kReading, kFinishing };
  Step step = Step::kStarting;
  grpc::GenericStub* stub = nullptr;
  std::unique_ptr<grpc::ClientContext> context;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream;
  grpc::ByteBuffer request;
  grpc::ByteBuffer message;
  grpc::Status status;
};

class Reader {
 public:
  explicit Reader(const Options& options) : options_(options) {}

  // False: there is no server at the address.
  bool Run() {
    if (!Connect()) return false;
    std::vector<Call> calls(options_.streams);
    for (int64_t i = 0; i < options_.streams; ++i) {
      calls[i].stub = stubs_[i % stubs_.size()].get();
      Start(&calls[i]);
    }
    void* tag = nullptr;
    bool ok = false;
    while (running_ > 0 && queue_.Next(&tag, &ok)) {
      Advance(static_cast<Call*>(tag), ok);
    }
    return true;
  }

  int64_t messages() const { return messages_; }
  int64_t failed() const { return failed_; }

 private:
  bool Connect() {
    const int64_t connections =
        (options_.streams + kStreamsPerConnection - 1) / kStreamsPerConnection;
    for (int64_t i = 0; i < connections; ++i) {
      ChannelOptions channel_options = options_.channel;
      channel_options.own_connection = true;
      channel_options.lean = true;
      channel_options.window_bytes = 256 << 10;
      auto channel = OpenChannel(channel_options);
      if (!channel.ok() ||
          !(*channel)->WaitForConnected(std::chrono::system_clock::now() +
                                        std::chrono::seconds(5))) {
        return false;
      }
      stubs_.push_back(std::make_unique<grpc::GenericStub>(*channel));
    }
    return true;
  }

  void Start(Call* call) {
    if (next_ >= options_.requests) return;
    call->request = Request(options_, next_++);
    ++running_;
    call->stream.reset();  // it lives in what the context holds
    call->context = std::make_unique<grpc::ClientContext>();
    call->stream = call->stub->PrepareCall(
        call->context.get(), "/txl.v1.GenerationService/Generate", &queue_);
    call->step = Call::Step::kStarting;
    call->stream->StartCall(call);
  }

  void Advance(Call* call, bool ok) {
    using Step = Call::Step;
    if (call->step == Step::kFinishing) {
      failed_ += !call->status.ok();
      --running_;
      Start(call);
    } else if (!ok) {
      call->step = Step::kFinishing;
      call->stream->Finish(&call->status, call);
    } else if (call->step == Step::kStarting) {
      call->step = Step::kWriting;
      call->stream->WriteLast(call->request, grpc::WriteOptions(), call);
    } else {
      messages_ += call->step == Step::kReading;
      call->step = Step::kReading;
      call->stream->Read(&call->message, call);
    }
  }

  const Options options_;
  grpc::CompletionQueue queue_;
  std::vector<std::unique_ptr<grpc::GenericStub>> stubs_;
  int64_t next_ = 0;
  int64_t running_ = 0;
  int64_t messages_ = 0;
  int64_t failed_ = 0;
};

int Main(int argc, char** argv) {
  Options options;
  CLI::App program(
      "Reads Generate streams with gRPC alone and says what it "
      "costs.",
      "txl-bench-bare-reader");
  program.add_option("--server", options.channel.address)->required();
  const auto add = [&](const char* name, int64_t& value) {
    program.add_option(name, value)
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
  };
  add("--streams", options.streams);
  add("--requests", options.requests);
  add("--prompt-tokens", options.prompt_tokens);
  add("--max-tokens", options.max_tokens);
  add("--vocabulary", options.vocabulary);
  CLI11_PARSE(program, argc, argv);
  Reader reader(options);
  const double before = CpuSeconds();
  if (!reader.Run()) {
    std::fprintf(stderr, "no server at %s\n", options.channel.address.c_str());
    return 1;
  }
  const double cpu = CpuSeconds() - before;
  // Started and Finished are no tokens.
  const int64_t tokens = reader.messages() - 2 * options.requests;
  const nlohmann::ordered_json json = {
      {"streams", options.streams},
      {"tokens", tokens},
      {"cpu_seconds", cpu},
      {"cpu_microseconds_per_token",
       tokens > 0 ? 1e6 * cpu / static_cast<double>(tokens) : 0}};
  std::printf("%s\n", json.dump().c_str());
  return reader.failed() == 0 ? 0 : 1;
}

}  // namespace
}  // namespace txl

int main(int argc, char** argv) {
  // As `txl`.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  return txl::Main(argc, argv);
}
