#pragma once

// A text as parallel streams, cut into segments that follow each other, so
// that the memory of one segment is the past of the next. Which segment a step
// reads is a function of (seed, step): nothing to save for a resume but memory.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "model/base/beat_positions.h"

namespace txl {

struct StreamShape {
  int64_t streams = 16;   // >= 1, rows of a batch
  int64_t segment = 128;  // >= 1 tokens per row and step
};

struct SegmentBatch {
  at::Tensor inputs;   // [streams, segment] int64
  at::Tensor targets;  // [streams, segment] int64, the next tokens
  at::Tensor ticks;    // of the inputs, as of TicksBefore; or undefined
  bool first = false;  // start of a pass: memory must be reset
};

// [n] int64: BeatCounter::ticks before each id of a text, which begins a piece.
// Undefined where nothing is to be counted.
at::Tensor TicksBefore(const std::optional<BeatPositions>& beats,
                       absl::Span<const int64_t> ids);

// Training order. Each pass over the text rotates it by another offset, so
// that streams and segments are cut at other places.
class TrainingStreams {
 public:
  // REQUIRES: CheckStreams is OK.
  TrainingStreams(absl::Span<const int64_t> ids, StreamShape shape,
                  uint64_t seed,
                  const std::optional<BeatPositions>& beats = {});

  int64_t steps_per_pass() const { return steps_per_pass_; }
  SegmentBatch At(int64_t step) const;

 private:
  at::Tensor ids_;    // [n]
  at::Tensor ticks_;  // [n] or undefined
  StreamShape shape_;
  uint64_t seed_;
  int64_t stream_length_;  // inputs per stream
  int64_t steps_per_pass_;
};

// InvalidArgument when `count` tokens are too few for one segment per stream.
absl::Status CheckStreams(int64_t count, StreamShape shape);

// How a text becomes parallel streams for evaluation.
enum class StreamCut {
  // Every token but the first is a target exactly once: a stream begins with
  // the last target of the stream before it. Streams have equal lengths, so
  // the end of the last ones may be padding, which is not counted.
  kWhole,
  // The original code's iterator: equal streams that share no token; the
  // remainder of the text is dropped and no target crosses a border.
  kOriginal,
};

// One pass in order; the last segment may be shorter.
struct EvaluationBatch {
  at::Tensor inputs;   // [streams, n] int64, n <= segment
  at::Tensor targets;  // [streams, n] int64
  at::Tensor counted;  // [streams, n] bool; false: padding
  at::Tensor ticks;    // [streams, n] int64, as of TicksBefore; or undefined
};
std::vector<EvaluationBatch> EvaluationStreams(
    absl::Span<const int64_t> ids, StreamShape shape, StreamCut cut,
    const std::optional<BeatPositions>& beats = {});

// A text as token ids, cut into a training part and a held-out end.

enum class CorpusVocabulary {
  kBytes,       // id = byte value, 256 ids
  kCharacters,  // the text's distinct characters in code point order
};

struct Corpus {
  CorpusVocabulary kind = CorpusVocabulary::kCharacters;
  std::vector<std::string> symbols;  // characters only; index = id
  std::vector<int64_t> train;
  std::vector<int64_t> held_out;
  double held_out_share = 0;  // that was asked for
  int64_t vocab_size() const {
    return kind == CorpusVocabulary::kBytes
               ? 256
               : static_cast<int64_t>(symbols.size());
  }
};

// The last `held_out_share` (in [0, 1)) of the tokens is held out.
// Errors: InvalidArgument (empty text, invalid UTF-8 for characters, a share
// out of range).
absl::StatusOr<Corpus> MakeCorpus(absl::string_view text, CorpusVocabulary kind,
                                  double held_out_share);

// The same of ids that a given vocabulary made; kind and symbols say nothing.
Corpus SplitIds(std::vector<int64_t> ids, double held_out_share);

// Ids as decimal numbers parted by whitespace. Errors: InvalidArgument opening
// with `name` and naming the first word that is not an id in [0, vocab_size).
absl::StatusOr<std::vector<int64_t>> ParseIds(absl::string_view text,
                                              int64_t vocab_size,
                                              absl::string_view name);

// Index of the first held-out token of `count` tokens.
int64_t HeldOutBegin(int64_t count, double held_out_share);

// Whole file. Errors: NotFound.
absl::StatusOr<std::string> ReadTextFile(const std::string& path);

}  // namespace txl
