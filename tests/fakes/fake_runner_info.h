#pragma once

// What a fake device is, and says of itself.

#include <cstdint>
#include <memory>
#include <optional>

#include "model/memory/ring.h"
#include "model/sampling/token_kinds.h"
#include "server/engine/step_runner.h"

namespace txl {

struct FakeStepRunnerOptions {
  int32_t slots = 4;
  int64_t spare_rows = 16;
  int32_t max_rows = 64;
  int32_t depth = 2;
  int64_t vocab_size = 50;
  int64_t mem_len = 32;
  int64_t window = 33;
  bool derives = false;  // an imported state wants kDerive rows
  bool imports_aside = false;
  bool verifies_guesses = false;
  // False: the distribution depends on the ids alone, so that with a small
  // window texts come to repeat themselves.
  bool by_position = true;
  // A stored row is then an id with the ticks that the row was fed with.
  std::optional<BeatPositions> beats = std::nullopt;
  // The model's kinds of tokens; null: none.
  std::shared_ptr<const TokenKinds> kinds = nullptr;
  double device_seconds = 0.001;  // reported for every step
  double row_seconds = 0;         // and for each of its rows
};

// Beat positions among the 50 ids of the fake vocabulary.
inline constexpr BeatPositions kFakeBeats = {3, 10, 4, 5, 8, 16};

inline RingGeometry Geometry(const FakeStepRunnerOptions& options) {
  return {.mem_len = options.mem_len,
          .spare = options.spare_rows,
          .window = options.window};
}

inline RunnerInfo Info(const FakeStepRunnerOptions& options) {
  RunnerInfo info;
  info.slots = options.slots;
  info.spare_rows = options.spare_rows;
  info.max_rows = options.max_rows;
  info.depth = options.depth;
  info.bytes_per_slot = (options.mem_len + options.spare_rows) * 4;
  info.vocab_size = options.vocab_size;
  info.mem_len = options.mem_len;
  info.window = options.window;
  info.derives = options.derives;
  info.imports_aside = options.imports_aside;
  info.verifies_guesses = options.verifies_guesses;
  info.beats = options.beats;
  info.rebuild_ids = options.mem_len + 1;  // one layer
  info.identity.fingerprint = "fake";
  info.identity.window = options.window;
  info.identity.mem_len = options.mem_len;
  info.identity.d_model = 1;
  info.identity.n_layer = 1;
  info.identity.row_dtype = "f32";
  info.identity.kernel = "fake";
  info.device = "fake";
  info.form = "absorbed";
  info.weight_dtype = "f32";
  return info;
}

}  // namespace txl
