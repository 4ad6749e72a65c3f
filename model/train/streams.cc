#include "model/train/streams.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <utf8proc.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <sstream>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "model/base/status_macros.h"

namespace txl {
namespace {

// Finaliser of splitmix64: a well-mixed number for (seed, pass).
uint64_t Mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

at::Tensor ToTensor(absl::Span<const int64_t> ids) {
  at::Tensor out = at::empty({static_cast<int64_t>(ids.size())}, at::kLong);
  std::copy(ids.begin(), ids.end(), out.mutable_data_ptr<int64_t>());
  return out;
}

}  // namespace

absl::Status CheckStreams(int64_t count, StreamShape shape) {
  if (shape.streams < 1 || shape.segment < 1) {
    return absl::InvalidArgumentError("streams and segment must be >= 1");
  }
  if ((count - 1) / shape.streams < shape.segment) {
    return absl::InvalidArgumentError(
        absl::StrCat("a text of ", count, " tokens is too short for ",
                     shape.streams, " streams of segments of ", shape.segment,
                     "; lower --streams or --segment"));
  }
  return absl::OkStatus();
}

at::Tensor TicksBefore(const std::optional<BeatPositions>& beats,
                       absl::Span<const int64_t> ids) {
  if (!beats.has_value()) return {};
  BeatCounter counter(*beats);
  std::vector<int64_t> ticks;
  ticks.reserve(ids.size());
  for (const int64_t id : ids) {
    ticks.push_back(counter.ticks());
    counter.Add(static_cast<int32_t>(id));
  }
  return ToTensor(ticks);
}

TrainingStreams::TrainingStreams(absl::Span<const int64_t> ids,
                                 StreamShape shape, uint64_t seed,
                                 const std::optional<BeatPositions>& beats)
    : ids_(ToTensor(ids)),
      ticks_(TicksBefore(beats, ids)),
      shape_(shape),
      seed_(seed),
      stream_length_((static_cast<int64_t>(ids.size()) - 1) / shape.streams),
      steps_per_pass_(stream_length_ / shape.segment) {}

SegmentBatch TrainingStreams::At(int64_t step) const {
  const int64_t pass = step / steps_per_pass_;
  const int64_t index = step % steps_per_pass_;
  const uint64_t count = static_cast<uint64_t>(ids_.size(0));
  const int64_t rotation =
      pass == 0 ? 0
                : static_cast<int64_t>(
                      Mix(Mix(seed_) + static_cast<uint64_t>(pass)) % count);
  // [streams, segment + 1] positions in the rotated text
  const at::Tensor positions =
      (at::arange(shape_.streams, at::kLong).unsqueeze(1) * stream_length_ +
       at::arange(shape_.segment + 1, at::kLong) +
       (index * shape_.segment + rotation))
          .remainder(static_cast<int64_t>(count));
  const auto at_positions = [&](const at::Tensor& of) {
    return of.index_select(0, positions.view(-1))
        .view({shape_.streams, shape_.segment + 1});
  };
  const at::Tensor rows = at_positions(ids_);
  SegmentBatch batch;
  batch.inputs = rows.narrow(1, 0, shape_.segment).contiguous();
  batch.targets = rows.narrow(1, 1, shape_.segment).contiguous();
  if (ticks_.defined()) {
    batch.ticks = at_positions(ticks_).narrow(1, 0, shape_.segment);
  }
  batch.first = index == 0;
  return batch;
}

std::vector<EvaluationBatch> EvaluationStreams(
    absl::Span<const int64_t> ids, StreamShape shape, StreamCut cut,
    const std::optional<BeatPositions>& beats) {
  std::vector<EvaluationBatch> batches;
  const int64_t count = static_cast<int64_t>(ids.size());
  const int64_t streams = std::min(shape.streams, count - 1);
  if (streams < 1) return batches;
  const bool whole = cut == StreamCut::kWhole;
  // Distance of two streams' first tokens, and targets of one stream.
  const int64_t stride =
      whole ? (count - 1 + streams - 1) / streams : count / streams;
  const int64_t length = whole ? stride : stride - 1;
  const at::Tensor text = ToTensor(ids);
  const at::Tensor ticks = TicksBefore(beats, ids);
  const at::Tensor begin =
      at::arange(streams, at::kLong).unsqueeze(1) * stride;  // [streams, 1]
  for (int64_t at = 0; at < length; at += shape.segment) {
    const int64_t n = std::min(shape.segment, length - at);
    const at::Tensor positions = begin + at::arange(at, at + n, at::kLong);
    const at::Tensor counted = positions.lt(count - 1);
    const at::Tensor inside = positions.clamp_max(count - 2);
    const auto take = [&](const at::Tensor& of, const at::Tensor& where) {
      return of.index_select(0, where.reshape(-1)).view({streams, n});
    };
    batches.push_back({take(text, inside), take(text, inside + 1), counted,
                       ticks.defined() ? take(ticks, inside) : at::Tensor()});
  }
  return batches;
}

namespace {

absl::StatusOr<std::vector<int32_t>> CodePoints(absl::string_view text) {
  std::vector<int32_t> points;
  points.reserve(text.size());
  size_t at = 0;
  while (at < text.size()) {
    utf8proc_int32_t point = 0;
    const utf8proc_ssize_t taken = utf8proc_iterate(
        reinterpret_cast<const utf8proc_uint8_t*>(text.data()) + at,
        static_cast<utf8proc_ssize_t>(text.size() - at), &point);
    if (taken <= 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the text is not UTF-8 at byte ", at, " (use bytes instead)"));
    }
    points.push_back(point);
    at += static_cast<size_t>(taken);
  }
  return points;
}

std::string Utf8(int32_t point) {
  utf8proc_uint8_t bytes[4];
  const utf8proc_ssize_t size = utf8proc_encode_char(point, bytes);
  return std::string(reinterpret_cast<const char*>(bytes),
                     static_cast<size_t>(size));
}

// Fills symbols and returns the ids of the whole text.
absl::StatusOr<std::vector<int64_t>> CharacterIds(
    absl::string_view text, std::vector<std::string>& symbols) {
  TXL_ASSIGN_OR_RETURN(const std::vector<int32_t> points, CodePoints(text));
  std::map<int32_t, int64_t> ids;
  for (int32_t point : points) ids[point] = 0;
  for (auto& [point, id] : ids) {
    id = static_cast<int64_t>(symbols.size());
    symbols.push_back(Utf8(point));
  }
  std::vector<int64_t> all;
  all.reserve(points.size());
  for (int32_t point : points) all.push_back(ids[point]);
  return all;
}

std::vector<int64_t> ByteIds(absl::string_view text) {
  std::vector<int64_t> all;
  all.reserve(text.size());
  for (char c : text) all.push_back(static_cast<uint8_t>(c));
  return all;
}

}  // namespace

int64_t HeldOutBegin(int64_t count, double held_out_share) {
  return count - std::llround(static_cast<double>(count) * held_out_share);
}

absl::StatusOr<Corpus> MakeCorpus(absl::string_view text, CorpusVocabulary kind,
                                  double held_out_share) {
  if (text.empty()) return absl::InvalidArgumentError("the text is empty");
  if (!(held_out_share >= 0 && held_out_share < 1)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "held_out: ", held_out_share, " is not a share in [0, 1)"));
  }
  Corpus corpus;
  corpus.kind = kind;
  std::vector<int64_t> ids;
  if (kind == CorpusVocabulary::kBytes) {
    ids = ByteIds(text);
  } else {
    TXL_ASSIGN_OR_RETURN(ids, CharacterIds(text, corpus.symbols));
  }
  Corpus split = SplitIds(std::move(ids), held_out_share);
  corpus.train = std::move(split.train);
  corpus.held_out = std::move(split.held_out);
  corpus.held_out_share = held_out_share;
  return corpus;
}

Corpus SplitIds(std::vector<int64_t> ids, double held_out_share) {
  const int64_t border =
      HeldOutBegin(static_cast<int64_t>(ids.size()), held_out_share);
  Corpus corpus;
  corpus.held_out_share = held_out_share;
  corpus.held_out.assign(ids.begin() + border, ids.end());
  ids.resize(static_cast<size_t>(border));
  corpus.train = std::move(ids);
  return corpus;
}

absl::StatusOr<std::vector<int64_t>> ParseIds(absl::string_view text,
                                              int64_t vocab_size,
                                              absl::string_view name) {
  std::vector<int64_t> ids;
  for (const absl::string_view word :
       absl::StrSplit(text, absl::ByAnyChar(" \t\r\n"), absl::SkipEmpty())) {
    int64_t id = -1;
    if (!absl::SimpleAtoi(word, &id) || id < 0 || id >= vocab_size) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, ": word ", ids.size() + 1, ", \"",
                       absl::Utf8SafeCEscape(word.substr(0, 40)),
                       "\", is not an id from 0 to ", vocab_size - 1));
    }
    ids.push_back(id);
  }
  return ids;
}

absl::StatusOr<std::string> ReadTextFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return absl::NotFoundError(absl::StrCat(path, ": cannot be read"));
  std::ostringstream text;
  text << in.rdbuf();
  return std::move(text).str();
}

}  // namespace txl
