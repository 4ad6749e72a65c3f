#include "tests/bench/machine_peaks.h"

#include <algorithm>
#include <atomic>
#include <chrono>

#include "model/cpu/aligned_buffer.h"
#include "model/cpu/panel_product.h"
#include "model/cpu/vector_target.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/bench/machine_peaks.cc"
#include <hwy/foreach_target.h>
// foreach_target.h includes this file once per instruction set.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace txl {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using FloatTag = hn::CappedTag<float, kColumnGroup>;
using WordTag = hn::CappedTag<uint32_t, kColumnGroup>;

// An xor of all words: the cheapest use of every byte.
uint32_t ReadWordsTarget(const uint32_t* words, int64_t count) {
  const WordTag d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  constexpr int kChains = 8;
  hn::Vec<WordTag> sum[kChains];
  for (auto& chain : sum) chain = hn::Zero(d);
  for (int64_t i = 0; i + kChains * lanes <= count; i += kChains * lanes) {
    for (int c = 0; c < kChains; ++c) {
      sum[c] = hn::Xor(sum[c], hn::LoadU(d, words + i + c * lanes));
    }
  }
  for (int c = 1; c < kChains; ++c) sum[0] = hn::Xor(sum[0], sum[c]);
  uint32_t lane_values[kColumnGroup] = {};
  hn::StoreU(sum[0], d, lane_values);
  uint32_t result = 0;
  for (const uint32_t value : lane_values) result ^= value;
  return result;
}

// Enough independent chains to hide the latency of a multiply-add, few enough
// for 16 registers.
constexpr int kFmaChains = 12;

// Returns a number that depends on all chains. x must not be known when this is
// compiled.
float MultiplyAddTarget(int64_t rounds, float x) {
  const FloatTag d;
  const hn::Vec<FloatTag> factor = hn::Set(d, x);
  hn::Vec<FloatTag> sum[kFmaChains];
  for (int c = 0; c < kFmaChains; ++c) {
    sum[c] = hn::Set(d, static_cast<float>(c));
  }
  for (int64_t i = 0; i < rounds; ++i) {
    for (auto& chain : sum) chain = hn::MulAdd(chain, factor, factor);
  }
  for (int c = 1; c < kFmaChains; ++c) sum[0] = hn::Add(sum[0], sum[c]);
  return hn::GetLane(sum[0]);
}

double FlopsOfRoundTarget() {
  return 2.0 * kFmaChains * static_cast<double>(hn::Lanes(FloatTag()));
}

}  // namespace HWY_NAMESPACE
}  // namespace txl
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace txl {
namespace {

HWY_EXPORT(ReadWordsTarget);
HWY_EXPORT(MultiplyAddTarget);
HWY_EXPORT(FlopsOfRoundTarget);

// A pass shorter than this says more about waking threads than about memory.
constexpr double kMinPassSeconds = 0.02;

// Written once per tile, so that no work can be left out as unused.
std::atomic<uint32_t> benchmark_sink{0};

using Clock = std::chrono::steady_clock;

template <typename Work>
double SecondsOf(const Work& work) {
  const Clock::time_point begin = Clock::now();
  work();
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

class Reader {
 public:
  Reader(int64_t bytes, ThreadPool& pool) : pool_(pool), words_(bytes / 4) {
    // Pages that were never written are all one page of zeros.
    pool_.Run(Tiles(words_.size()), [this](int64_t tile, int) {
      const int64_t end = std::min(words_.size(), (tile + 1) * kTileWords);
      for (int64_t i = tile * kTileWords; i < end; ++i) {
        words_[i] = static_cast<uint32_t>(i);
      }
    });
  }

  // Of the first `bytes`.
  double Bandwidth(int64_t bytes, int passes) {
    const int64_t words = std::min(bytes / 4, words_.size());
    double best = 0;
    int64_t repeats = 1;
    for (int pass = 0; pass <= passes;) {
      const double seconds = SecondsOf([&] { Read(words, repeats); });
      if (seconds < kMinPassSeconds && pass == 0) {
        repeats *= 2;
        continue;
      }
      const double rate = 4.0 * static_cast<double>(words * repeats) / seconds;
      if (pass > 0) best = std::max(best, rate);
      ++pass;
    }
    return best;
  }

 private:
  // A panel of weights of a wide model.
  static constexpr int64_t kTileWords = int64_t{1} << 16;
  static int64_t Tiles(int64_t words) {
    return (words + kTileWords - 1) / kTileWords;
  }

  void Read(int64_t words, int64_t repeats) {
    const int64_t tiles = Tiles(words);
    pool_.Run(tiles * repeats, [&](int64_t i, int) {
      const int64_t begin = i % tiles * kTileWords;
      const int64_t count = std::min(kTileWords, words - begin);
      benchmark_sink.fetch_xor(
          HWY_DYNAMIC_DISPATCH(ReadWordsTarget)(words_.data() + begin, count),
          std::memory_order_relaxed);
    });
  }

  ThreadPool& pool_;
  AlignedBuffer<uint32_t> words_;
};

}  // namespace

double ReadBandwidth(int64_t bytes, int passes, ThreadPool& pool) {
  return Reader(bytes, pool).Bandwidth(bytes, passes);
}

double FmaPeak(int passes, ThreadPool& pool) {
  constexpr int64_t kRounds = 1 << 17;
  const int64_t tiles = int64_t{16} * pool.threads();
  const volatile float factor = 0.5f;  // chains tend to 1
  double best = 0;
  for (int pass = 0; pass <= passes; ++pass) {
    const double seconds = SecondsOf([&] {
      pool.Run(tiles, [&](int64_t, int) {
        const float sum =
            HWY_DYNAMIC_DISPATCH(MultiplyAddTarget)(kRounds, factor);
        benchmark_sink.fetch_xor(static_cast<uint32_t>(sum),
                                 std::memory_order_relaxed);
      });
    });
    const double flops = static_cast<double>(tiles * kRounds) *
                         HWY_DYNAMIC_DISPATCH(FlopsOfRoundTarget)();
    if (pass > 0) best = std::max(best, flops / seconds);
  }
  return best;
}

double MachinePeaks::ReadRate(double bytes) const {
  return by_footprint.empty() ? read_bytes_per_second
                              : Interpolate(by_footprint, bytes);
}

MachinePeaks MeasurePeaks(const PeakOptions& options) {
  ThreadPool pool(options.threads);
  MachinePeaks peaks;
  peaks.threads = options.threads;
  peaks.vector_target = VectorTarget();
  peaks.flops_per_second = FmaPeak(options.passes, pool);
  Reader reader(options.memory_bytes, pool);
  const auto measure = [&](int64_t bytes) {
    const double rate = reader.Bandwidth(bytes, options.passes);
    peaks.by_footprint.push_back({static_cast<double>(bytes), rate});
    return rate;
  };
  for (int64_t bytes = int64_t{1} << 20; bytes < options.memory_bytes;
       bytes *= 2) {
    measure(bytes);
  }
  peaks.read_bytes_per_second = measure(options.memory_bytes);
  return peaks;
}

}  // namespace txl
#endif  // HWY_ONCE
