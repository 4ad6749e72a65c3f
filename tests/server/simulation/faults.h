#pragma once

// Everything that a simulation may throw at the server, by name. Each is
// counted where its effect was seen, so that a run can show that none of them
// was missing.

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace txl::simulation {

enum class Fault {
  // The device.
  kStepFails,
  kStepShort,  // fewer results than rows
  kRowNotFinite,
  kExportFails,
  kExportLate,
  kImportFails,
  kImportLate,
  kImageBad,
  // Limits.
  kImagesFull,  // a session moved out and its state is lost
  kSlotsFull,   // with sessions that are too young to move out
  kSessionsFull,
  kIdsFull,
  kSessionTooLong,
  kQueueFull,
  kQueuedTooLong,
  kTurnTooLong,
  kSlotGivenUp,  // by a parked turn
  kDisplaced,    // by a turn that stands back for others
  kOverQuota,
  kKeepsTooMuch,  // a tenant, in its sessions
  kPushedOut,     // of the queue, by a tenant that has fewer turns there
  kDeadlineUnreachable,
  kReplayEvicted,
  // The clock.
  kDeadlinePasses,
  kSessionExpires,
  kSessionEvicted,  // empty, where room was scarce
  kWallClockJumps,
  kWallClockStands,
  // Clients.
  kCancelled,
  kReaderStops,
  kReaderTrickles,
  kReaderTooSlow,
  kSessionBusy,
  kDeletedIdle,
  kDeletedInTurn,
  kDeletedWhileWaiting,  // by another call for the session's lease
  kDeletedInHandover,    // between a lease's end and the next one's turn
  kRecreatedInTurn,      // deleted, and made again while the old turn runs
  kSuperseded,
  kSupersededTwice,
  kRetryOfRunning,
  kRetryOfBroken,
  kRetryOfFinished,
  kLateRetry,     // the same request after another one
  kOtherRequest,  // another request under the id of a finished or broken one
  kOtherWhileItRuns,  // ... of a running one
  kPrefixFound,       // a turn begins with rows of another one
  // Threads.
  kInterleavedAtMutex,
  kInterleavedInSink,
  kInterleavedInCallback,
  // The end of the server.
  kDrain,
  kEndAll,
  kSchedulerEnds,  // with turns in it
  kCount,
};

constexpr int kFaults = static_cast<int>(Fault::kCount);

// "step_fails".
std::string FaultName(Fault fault);

class FaultCounts {
 public:
  void Fired(Fault fault) { ++counts_[static_cast<size_t>(fault)]; }
  int64_t of(Fault fault) const { return counts_[static_cast<size_t>(fault)]; }
  void Add(const FaultCounts& other);
  // Names of those that never fired.
  std::vector<std::string> Missing() const;

 private:
  std::array<int64_t, kFaults> counts_{};
};

}  // namespace txl::simulation
