#pragma once

// One primary of the shared store: Redis with an append-only file.
//
// It executes what has come and answers after the file is on the disk, all of
// it with one sync (`appendfsync always`). What comes meanwhile waits for the
// next round: n commands take commit_seconds + n * command_seconds.

#include <cstdint>
#include <vector>

namespace txl::fleet {

struct StoreCosts {
  double commit_seconds = 0;   // of a round; 0: nobody waits for the disk
  double command_seconds = 0;  // of each command in it, > 0
};

// Times in seconds of one clock, never going back. Not thread-safe.
template <typename Command>
class StoreShard {
 public:
  explicit StoreShard(const StoreCosts* costs) : costs_(costs) {}

  // A command comes. True: a round began with it, and ends at round_end().
  bool Send(Command command, double now) {
    waiting_.push_back(std::move(command));
    if (running()) return false;
    Begin(now);
    return true;
  }
  bool running() const { return !round_.empty(); }
  double round_end() const { return round_end_; }
  // The round is over: its commands, in the order in which they came. Where
  // others have come the next round has begun. REQUIRES: running().
  std::vector<Command> EndRound() {
    std::vector<Command> done = std::move(round_);
    round_.clear();
    commands_ += static_cast<int64_t>(done.size());
    if (!waiting_.empty()) Begin(round_end_);
    return done;
  }

  int64_t commands() const { return commands_; }         // answered
  double busy_seconds() const { return busy_seconds_; }  // of rounds that began

 private:
  void Begin(double now) {
    round_.swap(waiting_);
    const double seconds =
        costs_->commit_seconds +
        static_cast<double>(round_.size()) * costs_->command_seconds;
    busy_seconds_ += seconds;
    round_end_ = now + seconds;
  }

  const StoreCosts* costs_;
  std::vector<Command> waiting_;
  std::vector<Command> round_;
  double round_end_ = 0;
  double busy_seconds_ = 0;
  int64_t commands_ = 0;
};

}  // namespace txl::fleet
