#pragma once

// The laws that every snapshot of the counters obeys. Nothing that the server
// took on may vanish: a turn, a row or a token is finished, delivered or
// discarded, and counted as that.

#include <string>
#include <vector>

#include "server/metrics/metrics.h"
#include "server/metrics/server_status.h"

namespace txl {

// One line for each broken law, with its numbers; empty: all hold.
//   turns_started = sum(turns_finished) + turns_active
//   turns_started = queued_calls + those whose time in the queue is known
//   turns_finished = turns_ended, of every status; each has its duration and
//   prompt length
//   rows_run = rows_decode + rows_prefill + rows_score + rows_rebuild
//   rows_run = tokens_fed + rows_discarded
//   tokens_sampled = tokens_delivered + tokens_discarded
//   tokens_delivered = first tokens + later ones, by their times
//   steps = steps_failed + those whose device time is known; each has its batch
//   size and tokens
//   softmax_tails: computed + skipped is the same for every cluster
//   slots_used <= slots_total
//   steps_with_prompt_and_decode <= steps_with_decode <= steps
//   turns_parked_out <= turns_parked
//   steps_saved <= guesses_accepted <= tokens_guessed
//   prefix_hits <= prefix_lookups, prefix_hits <= tokens_cached
//   turns_started, turns_active, tokens_prompt and tokens_delivered equal their
//   sums over all tenants
// and no counter is negative.
std::vector<std::string> BrokenLaws(const Snapshot& snapshot);

// Laws of the counts of sessions:
//   created + loaded = ended + stored_away + idle + busy
std::vector<std::string> BrokenLaws(const SessionCounts& sessions);

}  // namespace txl
