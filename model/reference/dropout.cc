#include "model/reference/dropout.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <cmath>

namespace txl {
namespace {

constexpr int64_t kGrain = 1 << 14;

// Finaliser of splitmix64 (Steele, Lea and Flood 2014): enough mixing for
// masks, and cheap enough to compute per element.
uint64_t Mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// 32-bit mixer of the MurmurHash3 family: keeps the element loop in vector
// lanes.
inline uint32_t Mix32(uint32_t x) {
  x = (x ^ (x >> 16)) * 0x85ebca6bu;
  x = (x ^ (x >> 13)) * 0xc2b2ae35u;
  return x ^ (x >> 16);
}

void FillMask(float* mask, int64_t begin, int64_t end, uint64_t key,
              uint32_t threshold, float scale) {
  const uint32_t low = static_cast<uint32_t>(key);
  const uint32_t high = static_cast<uint32_t>(key >> 32);
  for (int64_t i = begin; i < end; ++i) {
    const uint32_t bits = Mix32(Mix32(static_cast<uint32_t>(i) + low) ^ high);
    mask[i] = bits >= threshold ? scale : 0.0f;
  }
}

}  // namespace

DropoutStream::DropoutStream(uint64_t seed, uint64_t step)
    : key_(Mix(Mix(seed + 0x9e3779b97f4a7c15u) + step)) {}

at::Tensor DropoutStream::Apply(const at::Tensor& x, double p) {
  if (p <= 0) return x;
  const uint64_t key = Mix(key_ + ++calls_ * 0x9e3779b97f4a7c15u);
  at::Tensor mask = at::empty(x.sizes(), at::TensorOptions(at::kFloat));
  const uint32_t threshold = static_cast<uint32_t>(std::lround(p * 0x1p32 - 1));
  const float scale = static_cast<float>(1 / (1 - p));
  float* data = mask.mutable_data_ptr<float>();
  at::parallel_for(0, mask.numel(), kGrain, [&](int64_t begin, int64_t end) {
    FillMask(data, begin, end, key, threshold, scale);
  });
  return x * mask.to(x.options().requires_grad(false));
}

}  // namespace txl
