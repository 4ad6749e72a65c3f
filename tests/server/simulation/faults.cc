#include "tests/server/simulation/faults.h"

namespace txl::simulation {
namespace {

constexpr std::array<const char*, kFaults> kNames = {
    "step_fails",
    "step_short",
    "row_not_finite",
    "export_fails",
    "export_late",
    "import_fails",
    "import_late",
    "image_bad",
    "images_full",
    "slots_full",
    "sessions_full",
    "ids_full",
    "session_too_long",
    "queue_full",
    "queued_too_long",
    "turn_too_long",
    "slot_given_up",
    "displaced",
    "over_quota",
    "keeps_too_much",
    "pushed_out",
    "deadline_unreachable",
    "replay_evicted",
    "deadline_passes",
    "session_expires",
    "session_evicted",
    "wall_clock_jumps",
    "wall_clock_stands",
    "cancelled",
    "reader_stops",
    "reader_trickles",
    "reader_too_slow",
    "session_busy",
    "deleted_idle",
    "deleted_in_turn",
    "deleted_while_waiting",
    "deleted_in_handover",
    "recreated_in_turn",
    "superseded",
    "superseded_twice",
    "retry_of_running",
    "retry_of_broken",
    "retry_of_finished",
    "late_retry",
    "other_request",
    "other_while_it_runs",
    "prefix_found",
    "interleaved_at_mutex",
    "interleaved_in_sink",
    "interleaved_in_callback",
    "drain",
    "end_all",
    "scheduler_ends",
};

}  // namespace

std::string FaultName(Fault fault) {
  return kNames[static_cast<size_t>(fault)];
}

void FaultCounts::Add(const FaultCounts& other) {
  for (size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
}

std::vector<std::string> FaultCounts::Missing() const {
  std::vector<std::string> missing;
  for (size_t i = 0; i < counts_.size(); ++i) {
    if (counts_[i] == 0) missing.push_back(kNames[i]);
  }
  return missing;
}

}  // namespace txl::simulation
