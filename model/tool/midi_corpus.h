#pragma once

// A folder of MIDI files as the ids that a music model is trained on.

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "model/text/vocabulary.h"

namespace txl {

struct MidiFolder {
  std::string path;
  bool skip_unreadable = false;  // else a file that cannot be read is an error
};

// The ids of all *.mid and *.midi below the folder, in the order of their
// paths, each with the event that ends a piece. `log` gets a line for each file
// that cannot be read, and one on the whole, with what the ids leave out.
// Errors: FailedPrecondition of MidiEncoder; InvalidArgument naming the folder:
// no such file, none that can be read, or one that cannot and is not to be
// skipped.
absl::StatusOr<std::vector<int64_t>> IdsOfMidiFolder(
    const MidiFolder& folder, const Vocabulary& vocabulary, std::ostream& log);

}  // namespace txl
