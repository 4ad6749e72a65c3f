#include "tests/bench/kernel_counters.h"

#include "absl/strings/str_cat.h"
#include "tests/bench/process_facts.h"

namespace txl {

void SetCounters(benchmark::State& state, const PhaseCost& work,
                 const MachinePeaks& peaks, double rate) {
  state.counters["GB/s"] = work.bytes * rate / 1e9;
  state.counters["GFLOP/s"] = work.flops * rate / 1e9;
  state.counters["of_bandwidth"] =
      work.bytes * rate / peaks.read_bytes_per_second;
  state.counters["of_fma_peak"] = work.flops * rate / peaks.flops_per_second;
}

void AddPeaksToContext(const MachinePeaks& peaks) {
  benchmark::AddCustomContext("cpu", CpuName());
  benchmark::AddCustomContext("threads", absl::StrCat(peaks.threads));
  benchmark::AddCustomContext("vector_target", peaks.vector_target);
  benchmark::AddCustomContext("read_gigabytes_per_second",
                              absl::StrCat(peaks.read_bytes_per_second / 1e9));
  benchmark::AddCustomContext("fma_gigaflops",
                              absl::StrCat(peaks.flops_per_second / 1e9));
}

}  // namespace txl
