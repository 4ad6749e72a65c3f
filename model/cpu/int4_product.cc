#include <algorithm>
#include <cstring>

#include "model/cpu/int4_panel.h"
#include "model/cpu/integer_product.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "model/cpu/int4_product.cc"
#include <hwy/foreach_target.h>
// foreach_target.h includes this file once per instruction set.
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include "model/cpu/integer_quads-inl.h"

HWY_BEFORE_NAMESPACE();
namespace txl {
namespace HWY_NAMESPACE {

// How far ahead memory is asked for.
constexpr int64_t kGroupsAhead = 4;
constexpr int64_t kLineBytes = 64;

// Vectors of a block: with AVX-512 all of a panel, so that memory is read in
// order.
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
constexpr int kVectors = 4;
#else
constexpr int kVectors = 2;
#endif

// The rows' numbers for one group.
template <int R>
struct GroupRows {
  const int8_t* x[R];
  int32_t sums[R];
};

int32_t SumOfGroup(const int8_t* x) {
  const hn::CappedTag<uint8_t, kInt4Group> d;
  const auto part = [&](int64_t i) HWY_ATTR {
    const auto numbers = hn::LoadU(d, reinterpret_cast<const uint8_t*>(x) + i);
    return hn::SumsOf8(hn::Xor(numbers, hn::Set(d, uint8_t{128})));
  };
  auto sums = part(0);
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = lanes; i < kInt4Group; i += lanes) {
    sums = hn::Add(sums, part(i));
  }
  const hn::DFromV<decltype(sums)> wide;
  return static_cast<int32_t>(hn::GetLane(hn::SumOfLanes(wide, sums))) -
         128 * kInt4Group;
}

// Adds a group's products with some columns to totals [R][kPanel].
template <int R>
HWY_INLINE void AddColumns(const uint8_t* group, const GroupRows<R>& rows,
                           int64_t column, int32_t* totals) {
  const WordTag d;
  const int64_t lanes = Lanes();
  const WordVec mask = hn::Set(d, 0x0f0f0f0f);
  WordVec sum[R][kVectors];
  for (int r = 0; r < R; ++r) {
    for (int v = 0; v < kVectors; ++v) sum[r][v] = hn::Zero(d);
  }
  const uint8_t* codes = group + kPanel + column * kQuad;
  for (int64_t i = 0; i < kInt4Group; i += 2 * kQuad, codes += kPanel * kQuad) {
    WordVec low[kVectors], high[kVectors];
    for (int v = 0; v < kVectors; ++v) {
      const WordVec both = LoadWords(codes + v * lanes * kQuad);
      low[v] = hn::And(both, mask);
      high[v] = hn::And(hn::ShiftRight<4>(both), mask);
    }
    for (int r = 0; r < R; ++r) {
      const WordVec of_low = RepeatQuad(rows.x[r] + i);
      const WordVec of_high = RepeatQuad(rows.x[r] + i + kQuad);
      for (int v = 0; v < kVectors; ++v) {
        sum[r][v] = AddQuads(sum[r][v], low[v], of_low);
        sum[r][v] = AddQuads(sum[r][v], high[v], of_high);
      }
    }
  }
  const hn::Rebind<uint8_t, WordTag> narrow;
  for (int v = 0; v < kVectors; ++v) {
    const int64_t at = column + v * lanes;
    const WordVec both = hn::PromoteTo(d, hn::LoadU(narrow, group + at));
    const WordVec step = hn::And(both, hn::Set(d, 15));
    const WordVec zero = hn::ShiftRight<4>(both);
    for (int r = 0; r < R; ++r) {
      const WordVec excess = hn::Mul(zero, hn::Set(d, rows.sums[r]));
      int32_t* total = totals + r * kPanel + at;
      hn::StoreU(
          hn::Add(LoadWords(total), hn::Mul(step, hn::Sub(sum[r][v], excess))),
          d, total);
    }
  }
}

template <int R>
void MultiplyRowsBy(const IntegerProduct& p) {
  const FloatTag f;
  alignas(kLineBytes) int32_t totals[R * kPanel] = {};
  // The last inputs, filled up to a whole group: a row may end before it does.
  int8_t last[R][kInt4Group] = {};
  const uint8_t* group = reinterpret_cast<const uint8_t*>(p.b);
  for (int64_t k = 0; k < p.k; k += kInt4Group, group += kInt4GroupBytes) {
    const uint8_t* ahead = group + kGroupsAhead * kInt4GroupBytes;
    for (int64_t i = 0; i < kInt4GroupBytes; i += kLineBytes) {
      hwy::Prefetch(ahead + i);
    }
    GroupRows<R> rows;
    for (int r = 0; r < R; ++r) {
      rows.x[r] = p.a.data + r * p.a.stride + k;
      if (p.k - k < kInt4Group) {
        std::memcpy(last[r], rows.x[r], p.k - k);
        rows.x[r] = last[r];
      }
      rows.sums[r] = SumOfGroup(rows.x[r]);
    }
    for (int64_t column = 0; column < kPanel; column += kVectors * Lanes()) {
      AddColumns(group, rows, column, totals);
    }
  }
  for (int r = 0; r < R; ++r) {
    const FloatVec scale = hn::Set(f, p.a.rows[r * p.a.rows_stride].scale);
    for (int64_t column = 0; column < kPanel; column += Lanes()) {
      const FloatVec exact =
          hn::ConvertTo(f, LoadWords(totals + r * kPanel + column));
      const FloatVec both = hn::Mul(scale, hn::LoadU(f, p.b_scales + column));
      hn::StoreU(hn::Mul(exact, both), f, p.out + r * p.out_stride + column);
    }
  }
}

void MultiplyInt4Target(const IntegerProduct& p) {
  switch (p.rows) {
    case 0:
      return;
    case 1:
      return MultiplyRowsBy<1>(p);
    case 2:
      return MultiplyRowsBy<2>(p);
    case 3:
      return MultiplyRowsBy<3>(p);
    default:
      return MultiplyRowsBy<kInt4FewRows>(p);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace txl
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace txl {

HWY_EXPORT(MultiplyInt4Target);

void MultiplyInt4(const IntegerProduct& product) {
  HWY_DYNAMIC_DISPATCH(MultiplyInt4Target)(product);
}

}  // namespace txl
#endif  // HWY_ONCE
