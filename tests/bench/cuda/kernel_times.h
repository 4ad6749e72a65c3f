#pragma once

// Times of single kernels of the CUDA step, by the device's own clock, beside
// what the same device copies per second in the same run.

#include <cstdint>
#include <string>
#include <vector>

#include "model/cuda/device/runtime.h"

namespace txl::cuda {

// A layer of a model whose sessions have full memories, in bf16.
struct KernelShape {
  int heads = 16;
  int width = 1024;   // d_model, a multiple of 64
  int inner = 4096;   // of the feed-forward part, a multiple of 64
  int window = 1601;  // keys that a query sees
  int distances = 1601;
  // Work goes round over so many bytes, more than a cache holds.
  int64_t streamed_bytes = int64_t{1} << 30;
  int passes = 10;  // the best one counts
  int splits = 0;   // of attention; 0: as the step has them
};

struct KernelTime {
  std::string kernel;
  int rows = 0;  // of the step
  int splits = 1;
  double seconds = 0;  // of one launch
  // The least that the launch has to read or write, and to compute.
  double bytes = 0;
  double flops = 0;

  double bytes_per_second() const { return bytes / seconds; }
};

// Bytes that a copy within the device's memory reads and writes per second.
double CopyBandwidth(Stream& stream, int64_t bytes, int passes);

// Attention of `sessions` sessions with a row each, every stored row, query and
// sum once.
KernelTime TimeAttention(Stream& stream, const KernelShape& shape,
                         int sessions);
// The same of prompts, each with a segment of so many rows.
KernelTime TimePrompts(Stream& stream, const KernelShape& shape, int sessions,
                       int segment);
// The products of a layer: `rows` rows with each of its matrices.
std::vector<KernelTime> TimeProducts(Stream& stream, const KernelShape& shape,
                                     int rows);

// {"copy_bytes_per_second", "kernels": [{"kernel", "rows", "splits", "seconds",
// "bytes", "flops", "bytes_per_second", "share_of_copy"}]}, indented.
std::string ToJson(double copy_bandwidth, const std::vector<KernelTime>& times);
// A line for each.
std::string ToText(double copy_bandwidth, const std::vector<KernelTime>& times);

}  // namespace txl::cuda
