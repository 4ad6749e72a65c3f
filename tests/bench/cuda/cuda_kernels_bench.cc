// Kernels of the CUDA step one by one, on layers of the WikiText-103-large
// shape with full memories.
//
//   txl-bench-cuda-kernels [--rows 1,8,32,128,512] [--prompts 1,4]
//                          [--splits 0] [--overlap] [--json FILE]

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <fstream>
#include <string>
#include <vector>

#include "tests/bench/cuda/kernel_times.h"

namespace {

constexpr int64_t kCopyBytes = int64_t{2} << 30;
constexpr int kSegment = 128;

struct Options {
  std::vector<int> rows = {1, 8, 32, 128, 512};
  std::vector<int> prompts = {1, 4};
  std::vector<int> splits = {0};
  bool overlap = false;
  std::string json;
};

int Run(const Options& options) {
  if (txl::cuda::DeviceCount() == 0) {
    std::fprintf(stderr, "there is no CUDA device\n");
    return 1;
  }
  txl::cuda::UseDevice(0);
  txl::cuda::KernelShape shape;
  txl::cuda::Stream stream;
  stream.OverlapKernels(options.overlap);
  const double copy =
      txl::cuda::CopyBandwidth(stream, kCopyBytes, shape.passes);
  std::vector<txl::cuda::KernelTime> times;
  for (const int splits : options.splits) {
    shape.splits = splits;
    for (const int n : options.rows) {
      times.push_back(txl::cuda::TimeAttention(stream, shape, n));
    }
    for (const int n : options.prompts) {
      times.push_back(txl::cuda::TimePrompts(stream, shape, n, kSegment));
    }
  }
  for (const int n : options.rows) {
    const auto products = txl::cuda::TimeProducts(stream, shape, n);
    times.insert(times.end(), products.begin(), products.end());
  }
  std::fputs(txl::cuda::ToText(copy, times).c_str(), stdout);
  if (options.json.empty()) return 0;
  std::ofstream file(options.json);
  file << txl::cuda::ToJson(copy, times);
  file.close();
  if (file) return 0;
  std::fprintf(stderr, "%s: cannot be written\n", options.json.c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Times of the CUDA step's kernels");
  Options options;
  app.add_option("--rows", options.rows, "sessions of a step")
      ->delimiter(',')
      ->check(CLI::Range(1, 4096));
  app.add_option("--prompts", options.prompts,
                 "sessions that feed 128 tokens each")
      ->delimiter(',')
      ->check(CLI::Range(1, 32));
  app.add_option("--splits", options.splits,
                 "of the memories in attention; 0: as the step has them")
      ->delimiter(',')
      ->check(CLI::Range(0, 4096));
  app.add_flag("--overlap", options.overlap,
               "kernels begin before others have ended");
  app.add_option("--json", options.json, "results");
  CLI11_PARSE(app, argc, argv);
  try {
    return Run(options);
  } catch (const std::exception& error) {  // of the device
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
