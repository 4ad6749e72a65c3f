// Kernels of the native CPU step one by one, beside the machine's peaks, which
// are measured first and stand in the context of the report.
//
//   txl-bench-kernels [--threads N] [Google Benchmark's own flags]
//   txl-bench-kernels --benchmark_filter=PanelProduct --benchmark_out=k.json

#include <benchmark/benchmark.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "model/cpu/aligned_buffer.h"
#include "model/cpu/packed_matrix.h"
#include "model/cpu/thread_pool.h"
#include "model/cpu/vector_kernels.h"
#include "tests/bench/attention_bench.h"
#include "tests/bench/kernel_counters.h"
#include "tests/bench/machine_peaks.h"

namespace txl {
namespace {

AlignedBuffer<float> RandomNumbers(int64_t count) {
  std::minstd_rand random(1);
  std::uniform_real_distribution<float> number(-1, 1);
  AlignedBuffer<float> numbers(count);
  for (int64_t i = 0; i < count; ++i) numbers[i] = number(random);
  return numbers;
}

// Feed-forward matrices of the WikiText-103-large shape, so many that no cache
// holds them.
class Matrices {
 public:
  static constexpr int64_t kOutputs = 4096;
  static constexpr int64_t kInputs = 1024;

  Matrices(NumberFormat format, Products products) {
    const AlignedBuffer<float> numbers = RandomNumbers(kOutputs * kInputs);
    int64_t bytes = 0;
    while (bytes < kStreamedBytes) {
      matrices_.emplace_back(numbers.data(), kOutputs, kInputs, format,
                             products);
      bytes += matrices_.back().bytes();
    }
  }
  const PackedMatrix& Next() { return matrices_[next_++ % matrices_.size()]; }

 private:
  std::vector<PackedMatrix> matrices_;
  size_t next_ = 0;
};

void BenchPanelProduct(benchmark::State& state, NumberFormat format,
                       Products products, const MachinePeaks& peaks) {
  ThreadPool pool(peaks.threads);
  Matrices matrices(format, products);
  IntegerRows integers;
  const int64_t rows = state.range(0);
  const AlignedBuffer<float> x = RandomNumbers(rows * Matrices::kInputs);
  AlignedBuffer<float> out(rows * Matrices::kOutputs);
  const double numbers = Matrices::kOutputs * Matrices::kInputs;
  const PhaseCost work = {static_cast<double>(matrices.Next().bytes()),
                          2 * numbers * static_cast<double>(rows)};
  RunCounted(state, work, peaks, [&] {
    ApplyLinear({&matrices.Next()},
                {rows,
                 {x.data(), Matrices::kInputs},
                 {},
                 out.data(),
                 Matrices::kOutputs,
                 &integers},
                pool);
  });
}

// The kernels below work on what a cache holds, on one thread: nanoseconds.
void BenchNorm(benchmark::State& state) {
  const int64_t width = state.range(0);
  const AlignedBuffer<float> x = RandomNumbers(width);
  AlignedBuffer<float> out(width);
  for (auto _ : state) {
    NormalizeRow(x.data(), width, x.data(), x.data(), 1e-5f, out.data());
    benchmark::DoNotOptimize(out.data());
  }
}

void BenchSoftmaxWeights(benchmark::State& state) {
  const int64_t keys = state.range(0);
  const AlignedBuffer<float> content = RandomNumbers(keys);
  const AlignedBuffer<float> position = RandomNumbers(keys);
  AlignedBuffer<float> scores(keys);
  for (auto _ : state) {
    std::copy_n(content.data(), keys, scores.data());
    benchmark::DoNotOptimize(SoftmaxWeights(scores.data(), position.data(),
                                            0.125f, {0, keys, keys}));
  }
}

void BenchLogSumExp(benchmark::State& state) {
  const int64_t count = state.range(0);
  const AlignedBuffer<float> x = RandomNumbers(RoundUp(count, kColumnGroup));
  for (auto _ : state) benchmark::DoNotOptimize(LogSumExp(x.data(), count));
}

void Register(const MachinePeaks& peaks) {
  std::vector<std::pair<NumberFormat, Products>> kinds;
  for (const NamedFormat& named : kWeightFormats) {
    kinds.emplace_back(named.format, Products::kFloat);
  }
  kinds.emplace_back(NumberFormat::kInt8, Products::kInteger);
  kinds.emplace_back(NumberFormat::kInt4, Products::kInteger);
  for (const auto& [format, products] : kinds) {
    const char* name =
        products == Products::kInteger ? "IntegerProduct/" : "PanelProduct/";
    benchmark::RegisterBenchmark(absl::StrCat(name, FormatName(format)).c_str(),
                                 [format = format, products = products,
                                  &peaks](benchmark::State& state) {
                                   BenchPanelProduct(state, format, products,
                                                     peaks);
                                 })
        ->ArgName("rows")
        ->Arg(1)
        ->Arg(8)
        ->Arg(32)
        ->Arg(128)
        ->UseRealTime();
  }
  benchmark::RegisterBenchmark("Norm", BenchNorm)->Arg(256)->Arg(1024);
  benchmark::RegisterBenchmark("SoftmaxWeights", BenchSoftmaxWeights)
      ->Arg(256)
      ->Arg(1600)
      ->Arg(3840);
  benchmark::RegisterBenchmark("LogSumExp", BenchLogSumExp)
      ->Arg(20003)
      ->Arg(267735);
  RegisterAttention(peaks);
}

}  // namespace
}  // namespace txl

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  txl::PeakOptions options;
  options.threads =
      static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  CLI::App app("Kernels of the native CPU step beside the machine's peaks");
  app.add_option("--threads", options.threads, "of products and attention")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  const txl::MachinePeaks peaks = txl::MeasurePeaks(options);
  txl::AddPeaksToContext(peaks);
  txl::Register(peaks);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
