#pragma once

// A server with programmed latencies on simulated time: a load test of minutes
// runs in milliseconds, and everything that it should measure is known.

#include <deque>
#include <functional>
#include <map>
#include <queue>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "client/bench/run/target.h"

namespace txl::bench {

struct SimulatedServer {
  // Turns that run at a time; the others wait in order.
  int64_t slots = 1'000'000;
  // Turns that wait; over it RESOURCE_EXHAUSTED.
  int64_t queue = 1'000'000;
  // Service time until the first token of the n-th turn, and between its
  // tokens.
  std::function<Nanos(int64_t turn)> first_token = [](int64_t) {
    return Nanos{0};
  };
  std::function<Nanos(int64_t turn, int64_t token)> gap = [](int64_t, int64_t) {
    return Nanos{0};
  };
  // Nothing is done from .first on for .second. REQUIRES: in order, apart.
  std::vector<std::pair<Nanos, Nanos>> stalls;
  Nanos session_call = 0;  // of making or deleting a session
  // A cancelled call loses its unread events but ends OK.
  bool cancels_come_late = false;

  // When work that starts at `from` and takes `work` is done.
  Nanos Done(Nanos from, Nanos work) const;
};

class SimulatedTarget final : public Target {
 public:
  explicit SimulatedTarget(SimulatedServer server)
      : server_(std::move(server)) {}

  Nanos Now() override { return now_; }
  void StartTurn(int32_t call, const v1::GenerateRequest& request,
                 const TurnOptions& options) override;
  void CreateSession(int32_t call, const std::string& session_id) override;
  void DeleteSession(int32_t call, const std::string& session_id) override;
  void Read(int32_t call) override;
  void Cancel(int32_t call) override;
  Event Next(Nanos until) override;

  // What was seen.
  const std::vector<v1::GenerateRequest>& requests() const { return requests_; }
  int64_t most_running() const { return most_running_; }
  const std::set<std::string>& sessions() const { return sessions_; }
  int64_t sessions_made() const { return sessions_made_; }

 private:
  struct Turn {
    int64_t number = 0;
    int64_t tokens = 0;  // to generate
    int64_t sent = 0;
    int64_t position = 0;  // before the turn
    int64_t prompt = 0;
    bool running = false;
    bool alive = false;
    bool reading = false;
    std::string session_id;
    std::deque<v1::GenerateResponse> ready;
    bool ended = false;  // all is in `ready`; then comes the end
  };
  struct Timer {
    Nanos at;
    int64_t order;
    int32_t call;
    int64_t turn;  // number; of another turn: too late. -1: a session call
    bool operator>(const Timer& other) const {
      return at != other.at ? at > other.at : order > other.order;
    }
  };

  Turn& At(int32_t call);
  void Schedule(Nanos at, int32_t call, int64_t turn);
  void Run(int32_t call);
  void NextToken(int32_t call);
  void Leave(int32_t call);
  void End(int32_t call, absl::Status status);
  // Hands the next event of a call over if it is being read.
  void Deliver(int32_t call);

  const SimulatedServer server_;
  Nanos now_ = 0;
  int64_t order_ = 0;
  int64_t number_ = 0;
  int64_t running_ = 0;
  int64_t most_running_ = 0;
  int64_t sessions_made_ = 0;
  std::map<int32_t, Turn> turns_;
  std::deque<int32_t> waiting_;
  std::priority_queue<Timer, std::vector<Timer>, std::greater<>> timers_;
  std::deque<Event> events_;
  v1::GenerateResponse response_;  // of the event that was handed out
  std::deque<v1::GenerateResponse> responses_;
  std::vector<v1::GenerateRequest> requests_;
  std::set<std::string> sessions_;
  std::map<std::string, int64_t> positions_;
};

}  // namespace txl::bench
