#pragma once

// A simulated server that writes one session through the function library: it
// acquires, begins a turn, appends, ends it, and rewinds what it holds. After
// an answer that did not come it asks the same again and nothing else; it goes
// when it is fenced; it tells the store again what a failover has lost, where
// the session is still its own.

#include <cstdint>
#include <string>

#include "tests/server/simulation/random.h"
#include "tests/server/store/redis/history/history.h"
#include "tests/server/store/redis/history/redis_map.h"

namespace txl::history {

// The digest of all changes when another one follows: FNV-1a of both.
std::string NextChain(const std::string& chain, const std::string& change);
inline constexpr char kFirstChain[] = "c";

inline constexpr int64_t kLeaseMillis = 5000;

struct Command {
  int64_t number = 0;  // of this writer; asked again it has the same
  std::string function;
  Words args;
  std::string text;  // what the writer has
};

// Not thread-safe.
class Writer {
 public:
  // Both outlive it.
  Writer(int index, simulation::Random* random, History* history);

  // The command that has no answer yet; where all have one, the next.
  const Command& Ask();
  bool waiting() const { return waiting_; }
  bool awaits(int64_t number) const {
    return waiting_ && command_.number == number;
  }
  // REQUIRES: awaits(...) the command that it answers. `version`: of the store
  // when it was executed.
  void Answer(const Words& answer, int64_t version);
  // The process is killed and begins anew, with nothing in memory.
  void Restart();

 private:
  enum class State {
    kIdle,      // what it holds may be old
    kAcquired,  // the session is its own
    kTurn,      // and a turn has begun
    kHealing,   // the same, after the store was found to hold less
  };

  void Set(const std::string& function, Words args);
  Words Known() const;
  void AskInTurn();
  void AskToAppend(const std::string& function, const std::string& ids);
  void AskToRewind();
  void Acquired(const Words& answer);
  void Appended(int64_t version);
  void Heal(const Words& answer, int64_t version);
  void Drop();

  int index_;
  simulation::Random* random_;
  History* history_;
  State state_ = State::kIdle;
  bool waiting_ = false;
  Command command_;
  int64_t asked_ = 0;
  int64_t nonces_ = 0;
  bool holds_ = false;  // what is below is of a session that it had
  std::string epoch_;
  std::string nonce_;
  std::string chain_;
  std::string text_;  // that the store has confirmed
  std::string
      pending_;  // ids behind it, asked to be stored or to be told again
};

}  // namespace txl::history
