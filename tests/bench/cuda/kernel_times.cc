#include "tests/bench/cuda/kernel_times.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_format.h"
#include "model/cuda/device/numbers.h"
#include "model/cuda/kernels/attention.h"
#include "model/cuda/kernels/linear.h"

namespace txl::cuda {
namespace {

int64_t RoundUp(int64_t n, int64_t unit) {
  return (n + unit - 1) / unit * unit;
}

// Numbers in [-1, 1): a device that multiplies zeros all day runs faster than
// one that works.
template <typename T>
Array<T> RandomArray(Stream& stream, int64_t size) {
  constexpr int64_t kPattern = int64_t{1} << 18;
  std::minstd_rand random(1);
  std::uniform_real_distribution<float> number(-1, 1);
  Array<T> pattern(MemoryKind::kPinned, std::min(size, kPattern));
  for (int64_t i = 0; i < pattern.size(); ++i) {
    pattern.data()[i] = Narrow<T>(number(random));
  }
  Array<T> numbers(MemoryKind::kDevice, size);
  for (int64_t at = 0; at < size; at += kPattern) {
    const int64_t count = std::min(kPattern, size - at);
    stream.Copy(numbers.data() + at, pattern.data(),
                static_cast<size_t>(count) * sizeof(T));
  }
  stream.Wait();
  return numbers;
}

// Seconds of one launch: of the best of `passes` passes over `copies` copies of
// its data. `launch` gets the number of the copy.
double BestSeconds(Stream& stream, int passes, int copies,
                   absl::FunctionRef<void(int)> launch) {
  // As a graph: queueing takes the host longer than some kernels run.
  const auto graph = Graph::Capture(stream, [&] {
    for (int copy = 0; copy < copies; ++copy) launch(copy);
  });
  Event begin, end;
  double best = std::numeric_limits<double>::infinity();
  for (int pass = 0; pass <= passes; ++pass) {
    stream.Record(begin);
    graph->Launch(stream);
    stream.Record(end);
    end.Wait();
    // The first pass loads the kernel.
    if (pass > 0) best = std::min(best, end.SecondsSince(begin) / copies);
  }
  return best;
}

// `segment` rows that follow each other, from a position on, of every session.
struct RowPlaces {
  RowPlaces(Stream& stream, int sessions, int segment, int64_t first)
      : slots(MemoryKind::kDevice, sessions * segment),
        positions(MemoryKind::kDevice, sessions * segment) {
    std::vector<int32_t> slot_numbers(slots.size());
    std::vector<int64_t> at(positions.size());
    for (int r = 0; r < sessions * segment; ++r) {
      slot_numbers[r] = r / segment;
      at[r] = first + r % segment;
    }
    stream.Copy(slots.data(), slot_numbers.data(), slots.bytes());
    stream.Copy(positions.data(), at.data(), positions.bytes());
    stream.Wait();
  }

  Array<int32_t> slots;
  Array<int64_t> positions;
};

// What attention over full windows has to read, write and add up.
void CountWork(const KernelShape& shape, int sessions, int segment,
               int64_t stride, KernelTime& time) {
  const double rows = sessions * segment;
  const double keys = rows * shape.window;
  const double row_bytes = static_cast<double>(stride) * sizeof(Bf16);
  time.bytes =
      static_cast<double>(sessions) * (shape.window + segment - 1) * row_bytes +
      keys * shape.heads * sizeof(float) + 2.0 * rows * shape.heads * row_bytes;
  time.flops = 4 * keys * static_cast<double>(shape.heads * stride);
}

int Copies(const KernelShape& shape, int64_t bytes) {
  return static_cast<int>((shape.streamed_bytes + bytes - 1) / bytes);
}

}  // namespace

double CopyBandwidth(Stream& stream, int64_t bytes, int passes) {
  const Array<uint8_t> from(MemoryKind::kDevice, bytes);
  const Array<uint8_t> to(MemoryKind::kDevice, bytes);
  stream.Fill(from.data(), 1, static_cast<size_t>(bytes));
  const double seconds = BestSeconds(stream, passes, 1, [&](int) {
    stream.Copy(to.data(), from.data(), static_cast<size_t>(bytes));
  });
  return 2 * static_cast<double>(bytes) / seconds;
}

KernelTime TimeAttention(Stream& stream, const KernelShape& shape,
                         int sessions) {
  KernelTime time = TimePrompts(stream, shape, sessions, 1);
  time.kernel = "attention";
  return time;
}

KernelTime TimePrompts(Stream& stream, const KernelShape& shape, int sessions,
                       int segment) {
  const int rows = sessions * segment;
  const int64_t heads = shape.heads;
  const int64_t stride = RoundUp(shape.width, 64);
  Rings<Bf16> rings;
  rings.capacity = RoundUp(shape.window + segment + kRingTile, kRingTile);
  rings.stride = stride;
  rings.slot_stride = rings.capacity * stride;
  rings.window = shape.window;
  const int64_t layer = sessions * rings.slot_stride;
  const int copies = Copies(shape, layer * int64_t{sizeof(Bf16)});
  const Array<Bf16> stored = RandomArray<Bf16>(stream, layer * copies);

  // Somewhere behind the first round, so that every window is full.
  const RowPlaces places(stream, sessions, segment, 3 * rings.capacity + 6);

  AttentionArgs<Bf16, Bf16> args;
  args.rows = {rows, places.slots.data(), places.positions.data()};
  args.heads = shape.heads;
  args.scale = 1 / std::sqrt(static_cast<float>(shape.width / shape.heads));
  args.distances = shape.distances;
  args.position_stride = RoundUp(shape.distances, 64);
  const DeviceFacts device = CurrentDevice();
  args.shared_bytes = device.shared_bytes;
  args.splits =
      shape.splits > 0
          ? std::min(shape.splits, AttentionTiles(shape.window))
          : AttentionSplits(rows, shape.heads, shape.window, device.processors);
  const int64_t parts = int64_t{rows} * args.splits * heads;
  const auto queries = RandomArray<Bf16>(stream, rows * heads * stride);
  const auto scores =
      RandomArray<float>(stream, rows * heads * args.position_stride);
  const Array<Bf16> out(MemoryKind::kDevice, rows * heads * stride);
  const Array<float> partial(MemoryKind::kDevice, parts * stride);
  const Array<float> maxima(MemoryKind::kDevice, parts);
  const Array<float> sums(MemoryKind::kDevice, parts);
  args.queries = queries.data();
  args.positions = scores.data();
  args.partial = partial.data();
  args.maxima = maxima.data();
  args.sums = sums.data();
  args.out = out.data();

  KernelTime time;
  time.kernel = "prompts";
  time.rows = rows;
  time.splits = args.splits;
  time.seconds = BestSeconds(stream, shape.passes, copies, [&](int copy) {
    rings.rows = stored.data() + copy * layer;
    args.rings = rings;
    LaunchAttention(stream, args);
  });
  CountWork(shape, sessions, segment, stride, time);
  return time;
}

namespace {

struct Matrix {
  const char* name;
  int64_t inputs;
  int64_t outputs;
  int64_t batch;
  FinishedBy finished_by;
  int64_t rest = 0;  // outputs behind those, in float32
};

// As the step has them: bias, activation and rounding are its own for ff1, and
// cost the others as much.
KernelTime TimeProduct(Stream& stream, const KernelShape& shape,
                       const Matrix& matrix, int rows) {
  LinearArgs<Bf16> args;
  args.rows = rows;
  args.inputs = static_cast<int>(RoundUp(matrix.inputs, kLinearUnit));
  args.rest_from = static_cast<int>(RoundUp(matrix.outputs, kLinearUnit));
  args.outputs =
      args.rest_from + static_cast<int>(RoundUp(matrix.rest, kLinearUnit));
  args.batch = static_cast<int>(matrix.batch);
  const int64_t inputs = matrix.batch * args.inputs;    // of a row
  const int64_t outputs = matrix.batch * args.outputs;  // of a row
  const int64_t narrow = matrix.batch * args.rest_from;
  const int64_t size = inputs * args.outputs;
  const int copies = Copies(shape, size * int64_t{sizeof(Bf16)});
  const auto weights = RandomArray<Bf16>(stream, size * copies);
  const int64_t padded = RoundUp(rows, kLinearRows);
  const auto x = RandomArray<Bf16>(stream, padded * inputs);
  const auto bias = RandomArray<float>(stream, outputs);
  const Array<Bf16> y(MemoryKind::kDevice, padded * narrow);
  const Array<float> rest(MemoryKind::kDevice, padded * (outputs - narrow));
  args.splits = LinearSplits({rows, args.inputs, args.outputs, args.batch},
                             matrix.finished_by, CurrentDevice().processors);
  const Array<float> partial(MemoryKind::kDevice,
                             int64_t{args.splits} * padded * outputs);
  args.x = x.data();
  args.x_stride = inputs;
  args.x_batch = args.inputs;
  args.bias = bias.data();
  args.activation = LinearActivation::kRelu;
  args.narrow = y.data();
  args.out_stride = narrow;
  args.out_batch = args.rest_from;
  args.rest = matrix.rest > 0 ? rest.data() : nullptr;
  args.partial = partial.data();

  KernelTime time;
  time.kernel = matrix.name;
  time.rows = rows;
  time.splits = args.splits;
  time.seconds = BestSeconds(stream, shape.passes, copies, [&](int copy) {
    args.w = weights.data() + copy * size;
    LaunchLinear(stream, args);
    if (args.splits > 1) LaunchFinishLinear(stream, args);
  });
  const double numbers =
      static_cast<double>(size) +
      static_cast<double>(rows) * (static_cast<double>(inputs) + narrow);
  time.bytes = numbers * sizeof(Bf16) +
               static_cast<double>(rows * (outputs - narrow)) * sizeof(float);
  time.flops = 2 * static_cast<double>(size) * rows;
  return time;
}

}  // namespace

std::vector<KernelTime> TimeProducts(Stream& stream, const KernelShape& shape,
                                     int rows) {
  const int64_t head_width = shape.width / shape.heads;
  constexpr FinishedBy kOwn = FinishedBy::kOwnKernel;
  constexpr FinishedBy kNext = FinishedBy::kNextKernel;
  const Matrix matrices[] = {
      {"wq, wo", shape.width, shape.width, 1, kNext},
      {"keys", head_width, shape.width, shape.heads, kOwn, shape.distances},
      {"values", shape.width, head_width, shape.heads, kOwn},
      {"ff1", shape.width, shape.inner, 1, kOwn},
      {"ff2", shape.inner, shape.width, 1, kNext}};
  std::vector<KernelTime> times;
  for (const Matrix& matrix : matrices) {
    times.push_back(TimeProduct(stream, shape, matrix, rows));
  }
  return times;
}

std::string ToJson(double copy_bandwidth,
                   const std::vector<KernelTime>& times) {
  nlohmann::ordered_json json = {{"copy_bytes_per_second", copy_bandwidth},
                                 {"kernels", nlohmann::ordered_json::array()}};
  for (const KernelTime& time : times) {
    json["kernels"].push_back(
        {{"kernel", time.kernel},
         {"rows", time.rows},
         {"splits", time.splits},
         {"seconds", time.seconds},
         {"bytes", time.bytes},
         {"flops", time.flops},
         {"bytes_per_second", time.bytes_per_second()},
         {"share_of_copy", time.bytes_per_second() / copy_bandwidth}});
  }
  return json.dump(2) + "\n";
}

std::string ToText(double copy_bandwidth,
                   const std::vector<KernelTime>& times) {
  std::string text =
      absl::StrFormat("copy: %.1f GB/s\n%-10s %6s %6s %10s %10s %8s %10s\n",
                      copy_bandwidth / 1e9, "kernel", "rows", "splits", "us",
                      "GB/s", "of copy", "TFLOP/s");
  for (const KernelTime& time : times) {
    absl::StrAppendFormat(&text, "%-10s %6d %6d %10.2f %10.1f %7.1f%% %10.2f\n",
                          time.kernel, time.rows, time.splits,
                          1e6 * time.seconds, time.bytes_per_second() / 1e9,
                          100 * time.bytes_per_second() / copy_bandwidth,
                          time.flops / time.seconds / 1e12);
  }
  return text;
}

}  // namespace txl::cuda
