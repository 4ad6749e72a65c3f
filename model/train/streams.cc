#include "model/train/streams.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>

#include <algorithm>

#include "absl/strings/str_cat.h"

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
                     shape.streams, " streams of segments of ", shape.segment));
  }
  return absl::OkStatus();
}

TrainingStreams::TrainingStreams(absl::Span<const int64_t> ids,
                                 StreamShape shape, uint64_t seed)
    : ids_(ToTensor(ids)),
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
  const at::Tensor rows = ids_.index_select(0, positions.view(-1))
                              .view({shape_.streams, shape_.segment + 1});
  return {rows.narrow(1, 0, shape_.segment).contiguous(),
          rows.narrow(1, 1, shape_.segment).contiguous(), index == 0};
}

std::vector<EvaluationBatch> EvaluationStreams(absl::Span<const int64_t> ids,
                                               StreamShape shape,
                                               StreamCut cut) {
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
  const at::Tensor begin =
      at::arange(streams, at::kLong).unsqueeze(1) * stride;  // [streams, 1]
  for (int64_t at = 0; at < length; at += shape.segment) {
    const int64_t n = std::min(shape.segment, length - at);
    const at::Tensor positions = begin + at::arange(at, at + n, at::kLong);
    const at::Tensor counted = positions.lt(count - 1);
    const at::Tensor inside = positions.clamp_max(count - 2);
    const auto take = [&](const at::Tensor& where) {
      return text.index_select(0, where.reshape(-1)).view({streams, n});
    };
    batches.push_back({take(inside), take(inside + 1), counted});
  }
  return batches;
}

}  // namespace txl
