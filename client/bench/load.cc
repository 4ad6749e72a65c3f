#include "client/bench/load.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <iterator>
#include <random>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/bench/stream_check.h"
#include "client/call_error.h"

namespace txl::bench {
namespace {

constexpr int32_t kStreamsPerConnection = 50;
constexpr double kDefaultSeconds = 10;

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::string StatusName(const absl::Status& status) {
  const std::string reason = GetCallError(status).reason;
  const std::string code = absl::StatusCodeToString(status.code());
  return reason.empty() ? code : absl::StrCat(code, " (", reason, ")");
}

TurnResult RunTurn(Client& client, const v1::GenerateRequest& request,
                   Canceller* canceller) {
  TurnResult result;
  StreamCheck check;
  const Clock::time_point start = Clock::now();
  double last = 0;
  const absl::Status status = client.Generate(
      request, {.canceller = canceller},
      [&](const v1::GenerateResponse& response) {
        const int64_t tokens = check.Add(response);
        if (tokens == 0) return;
        const double now = SecondsSince(start);
        if (result.first_token == 0) {
          result.first_token = now;
        } else {
          result.gaps.insert(result.gaps.end(), tokens,
                             (now - last) / static_cast<double>(tokens));
        }
        last = now;
      });
  result.total = SecondsSince(start);
  result.tokens = check.tokens();
  result.status = StatusName(status);
  result.problem = check.End(status);
  return result;
}

// What the streams' threads share.
struct Shared {
  const LoadOptions& options;
  int64_t vocabulary;
  Canceller* canceller;
  Clock::time_point start;
  std::atomic<int64_t> next{0};
};

std::vector<TurnResult> RunStream(Shared& shared, Client& client) {
  std::vector<TurnResult> results;
  const LoadOptions& options = shared.options;
  while (!shared.canceller->cancelled()) {
    if (options.seconds > 0 && SecondsSince(shared.start) >= options.seconds) {
      break;
    }
    const int64_t index = shared.next.fetch_add(1);
    if (options.requests > 0 && index >= options.requests) break;
    results.push_back(RunTurn(
        client, MakeTurn(options, shared.vocabulary, index), shared.canceller));
    // Without a server or with a full one a loop would spin.
    if (results.back().tokens == 0) absl::SleepFor(absl::Milliseconds(10));
  }
  return results;
}

absl::StatusOr<std::vector<std::unique_ptr<Client>>> Connect(
    const LoadOptions& options) {
  std::vector<std::unique_ptr<Client>> clients;
  for (int32_t i = 0; i < options.connections; ++i) {
    ChannelOptions channel = options.channel;
    channel.own_connection = true;
    absl::StatusOr<std::unique_ptr<Client>> client = Client::Create(channel);
    if (!client.ok()) return client.status();
    clients.push_back(*std::move(client));
  }
  return clients;
}

}  // namespace

int32_t DefaultConnections(int32_t streams) {
  return std::max(
      1, (streams + kStreamsPerConnection - 1) / kStreamsPerConnection);
}

v1::GenerateRequest MakeTurn(const LoadOptions& options, int64_t vocabulary,
                             int64_t index) {
  std::seed_seq seed{static_cast<uint32_t>(options.seed),
                     static_cast<uint32_t>(options.seed >> 32),
                     static_cast<uint32_t>(index),
                     static_cast<uint32_t>(index >> 32)};
  std::mt19937_64 random(seed);
  v1::GenerateRequest request;
  for (int32_t i = 0; i < options.prompt_tokens; ++i) {
    request.mutable_tokens()->add_ids(
        static_cast<uint32_t>(random() % static_cast<uint64_t>(vocabulary)));
  }
  request.mutable_sampling()->set_temperature(options.temperature);
  request.mutable_sampling()->set_seed(random());
  request.mutable_stop()->set_max_tokens(options.max_tokens);
  request.mutable_stop()->set_ignore_end_token(true);
  return request;
}

absl::StatusOr<LoadResult> RunLoad(LoadOptions options, Canceller* canceller) {
  if (options.connections == 0) {
    options.connections = DefaultConnections(options.streams);
  }
  if (options.requests == 0 && options.seconds == 0) {
    options.seconds = kDefaultSeconds;
  }
  auto clients = Connect(options);
  if (!clients.ok()) return clients.status();
  const absl::StatusOr<v1::GetModelResponse> model =
      clients->front()->GetModel({.canceller = canceller});
  if (!model.ok()) return model.status();
  if (model->vocabulary_size() < 1) {
    return absl::InternalError("the server reports no vocabulary size");
  }

  LoadResult result;
  result.options = options;
  result.model = model->name();
  result.fingerprint = model->fingerprint();
  Shared shared{options, model->vocabulary_size(), canceller, Clock::now()};
  std::vector<std::vector<TurnResult>> turns(options.streams);
  std::vector<std::thread> threads;
  for (int32_t i = 0; i < options.streams; ++i) {
    Client& client = *(*clients)[i % options.connections];
    threads.emplace_back([&, i] { turns[i] = RunStream(shared, client); });
  }
  for (std::thread& thread : threads) thread.join();
  result.seconds = SecondsSince(shared.start);
  for (std::vector<TurnResult>& stream : turns) {
    std::move(stream.begin(), stream.end(), std::back_inserter(result.turns));
  }
  return result;
}

}  // namespace txl::bench
