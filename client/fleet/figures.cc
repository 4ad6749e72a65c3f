#include "client/fleet/figures.h"

namespace txl::fleet {

void Figures::Merge(const Figures& other) {
  turns_at_start += other.turns_at_start;
  turns_due += other.turns_due;
  turns_ended += other.turns_ended;
  turns_left += other.turns_left;
  conversations_refused += other.conversations_refused;
  tokens += other.tokens;
  prompt_rows += other.prompt_rows;
  rebuilt_rows += other.rebuilt_rows;
  for (int i = 0; i < kMemories; ++i) memories[i] += other.memories[i];
  first_token.Merge(other.first_token);
  end_to_end.Merge(other.end_to_end);
  takeover.Merge(other.takeover);
  turns_broken += other.turns_broken;
  failed_attempts += other.failed_attempts;
  device_busy_seconds += other.device_busy_seconds;
  server_seconds += other.server_seconds;
  slot_seconds += other.slot_seconds;
  shard_busy_seconds += other.shard_busy_seconds;
  shard_seconds += other.shard_seconds;
  commands += other.commands;
  store_bytes += other.store_bytes;
  image_reads += other.image_reads;
  image_writes += other.image_writes;
  link_busy_seconds += other.link_busy_seconds;
  link_seconds += other.link_seconds;
  seconds = other.seconds;
  cells += other.cells;
}

}  // namespace txl::fleet
