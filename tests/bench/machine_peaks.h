#pragma once

// What this machine gives: read bandwidth and multiply-adds per second, as
// measured by the threads that a benchmark uses, in the benchmark's own run.
// Other load lowers both, so each is the best of ten passes. Of a CUDA device:
// see peak_flags.h.

#include <cstdint>
#include <string>
#include <vector>

#include "model/cpu/thread_pool.h"
#include "tests/bench/series.h"

namespace txl {

// Bytes per second of reading `bytes` again and again (the first pass is not
// counted), in blocks that whichever thread is free takes: what a step's
// weights and memories meet when they are that large together. bytes >= 64 KiB,
// which is allocated. Passes >= 1.
double ReadBandwidth(int64_t bytes, int passes, ThreadPool& pool);

// FLOP/s of float32 multiply-adds (two each) on registers alone, with the
// widest vectors that the step uses.
double FmaPeak(int passes, ThreadPool& pool);

struct MachinePeaks {
  int threads = 0;
  std::string vector_target;             // as VectorTarget()
  double read_bytes_per_second = 0;      // of memory
  double flops_per_second = 0;           // float32
  std::vector<CurvePoint> by_footprint;  // bytes read again -> bytes per second
  // Of a CUDA device, measured: read and written by copies; 0: not known.
  double copy_bytes_per_second = 0;

  // Bytes per second for work that reads `bytes` in every step.
  double ReadRate(double bytes) const;
};

struct PeakOptions {
  int threads = 1;
  // Large enough that no cache holds a part worth naming.
  int64_t memory_bytes = int64_t{2} << 30;
  int passes = 10;
};

// Footprints: powers of two from 1 MiB on that are below memory_bytes, and
// memory_bytes.
MachinePeaks MeasurePeaks(const PeakOptions& options);

}  // namespace txl
