#pragma once

// One cell of a fleet in simulated time: servers behind a proxy, the shards of
// their store, the images that they share, and conversations that come.
//
// A turn goes to the server that PlaceTurn names, acquires its session with a
// command of the session's shard, begins with another one, waits for a slot,
// brings its state there (in the slot, an image, or rows to be fed), feeds its
// prompt, streams, appends, and is over when its last command is answered. A
// turn whose server is lost is sent again by its client and goes on behind the
// tokens that it has. What is left out: network delays, the time of moving
// states between slot and host, appends that hold a stream up, sessions that
// end. What a lost server had sent since the last append is made again.

#include <cstdint>
#include <vector>

#include "client/bench/plan/random.h"
#include "client/fleet/event_queue.h"
#include "client/fleet/figures.h"
#include "client/fleet/image_link.h"
#include "client/fleet/options.h"
#include "client/fleet/server.h"
#include "client/fleet/sessions.h"
#include "client/fleet/store_shard.h"

namespace txl::fleet {

// Run once. The same options give the same figures. Not thread-safe.
class Cell {
 public:
  // REQUIRES: CheckCell(*options) is OK; they outlive the cell.
  explicit Cell(const CellOptions* options);

  Figures Run();
  // Sessions that were used, of all that there are.
  int64_t sessions_touched() const { return sessions_.touched(); }

 private:
  enum class State {
    kThinking,  // of the user: not yet due
    kCalling,   // on its way to a server, or back after a failure
    kAcquire,   // waits for the store
    kWaiting,   // for a slot
    kMoving,    // its state is on its way into the slot
    kPrompt,
    kStream,
    kFinish,  // waits for the store
  };
  struct Turn {
    State state = State::kThinking;
    uint64_t session = 0;
    int64_t turns_left = 0;  // of its conversation, behind this one
    uint32_t stamp = 0;      // events and commands of an older one are void
    int32_t server = -1;
    double due = 0;
    double broken_at = -1;  // by a failure that it has not got over; -1: none
    int failures = 0;       // in a row
    int64_t prompt = 0;
    int64_t answer = 0;
    bool fed = false;     // its prompt
    int64_t sent = 0;     // tokens of the answer
    int64_t stretch = 0;  // tokens until it appends again
    int64_t unsaved = 0;  // that no append has told of
    double told_at = 0;   // when its last command was sent
    double rows = 0;      // to be fed now
  };
  enum class Kind {
    kConversation,
    kDue,      // index: turn
    kCall,     // turn
    kMoved,    // turn
    kCompany,  // server, stamp: its version
    kRound,    // shard
    kFailure,  // of recovery.failures
    kReturn,   // server
    kKeep,     // turn
    kLook,     // server
    kMeasure,
  };
  struct What {
    Kind kind = Kind::kMeasure;
    int32_t index = 0;
    uint32_t stamp = 0;
  };
  struct Command {
    int32_t turn = -1;  // -1: none
    uint32_t stamp = 0;
    bool awaited = false;
  };
  // Busy seconds of all parts, which count from the warm-up's end.
  struct Baseline {
    double device = 0;
    double slots = 0;
    double shards = 0;
    double link = 0;
  };

  void Happen(const What& what);
  void BeginConversation();
  void BeginTurn(int32_t index);
  void Call(int32_t index);
  void CallAgain(int32_t index, double not_before);
  void Send(int32_t index, bool awaited, int64_t tokens);
  void SendTo(int32_t shard, const Command& command, int64_t tokens);
  void Keep(int32_t index);
  void LookForExpired(int32_t server);
  void EndRound(int32_t shard);
  void Answered(int32_t index);
  void AdmitWaiting(int32_t server);
  void Enter(int32_t index);
  void Moved(int32_t index);
  void EndFirst(int32_t server);
  void FirstToken(int32_t index);
  void GoOn(int32_t index);
  void LastToken(int32_t index);
  void EndTurn(int32_t index);
  void WriteImage(uint64_t session);
  void Fail(const Failure& failure);
  void LoseServer(int32_t server, bool silent);
  void Warm();
  void Measure();
  void Finish();
  Baseline Totals();
  void Plan(int32_t server);  // the company's next event
  void CountSlots(int64_t more);

  const CellOptions& options_;
  bench::Random random_;
  Sessions sessions_;
  std::vector<Server> servers_;
  std::vector<StoreShard<Command>> shards_;
  ImageLink link_;
  EventQueue<What> events_;
  std::vector<Turn> turns_;
  std::vector<int32_t> free_turns_;
  double now_ = 0;
  bool measuring_ = false;
  int64_t in_flight_ = 0;  // turns that are due and not over
  int64_t in_slots_ = 0;   // turns that have a slot
  double slots_since_ = 0;
  double slot_seconds_ = 0;
  Baseline baseline_;
  Figures figures_;
};

}  // namespace txl::fleet
