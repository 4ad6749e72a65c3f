// Fragments and products of model/cuda/device/matrix.h, on the emulator and on
// a device.

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "tests/model/cuda/device/device_kernels.h"
#include "tests/model/cuda/device_data.h"

namespace txl::cuda {
namespace {

template <typename T>
class MatrixTest : public ::testing::Test {
 protected:
  // [16, 8] by the definition of a product, in double; b is [16, 8].
  struct Case {
    std::vector<T> a, b, b_transposed;
    std::vector<float> c;
    std::vector<double> product, tolerance;
  };

  static Case MakeCase(uint32_t seed) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    const auto draw = [&](int count) {
      std::vector<T> x(count);
      for (T& value : x) value = Narrow<T>(normal(random));
      return x;
    };
    Case made = {
        draw(16 * 16), draw(16 * 8), std::vector<T>(8 * 16), {}, {}, {}};
    for (int row = 0; row < 16; ++row) {
      for (int column = 0; column < 8; ++column) {
        made.b_transposed[column * 16 + row] = made.b[row * 8 + column];
        made.c.push_back(normal(random));
        double sum = made.c.back();
        double magnitudes = std::abs(sum);
        for (int k = 0; k < 16; ++k) {
          const double term = double{Widen(made.a[row * 16 + k])} *
                              double{Widen(made.b[k * 8 + column])};
          sum += term;
          magnitudes += std::abs(term);
        }
        made.product.push_back(sum);
        // Each of 17 additions may lose a unit of float32's last place: tensor
        // cores cut off.
        made.tolerance.push_back(17 * magnitudes * 0x1p-23);
      }
    }
    return made;
  }

  static void Check(bool b_transposed) {
    for (uint32_t seed = 0; seed < 20; ++seed) {
      ShuffleThreads(seed);
      const Case made = MakeCase(seed);
      const Array<T> a = ToDevice(made.a);
      const Array<T> b = ToDevice(b_transposed ? made.b_transposed : made.b);
      const Array<float> c = ToDevice(made.c);
      Stream stream;
      LaunchSmallProduct<T>(stream,
                            {a.data(), b.data(), b_transposed, c.data()});
      stream.Wait();
      const std::vector<float> found = ToHost(c);
      for (int i = 0; i < 16 * 8; ++i) {
        ASSERT_NEAR(found[i], made.product[i], made.tolerance[i])
            << "row " << i / 8 << ", column " << i % 8;
      }
    }
  }
};
using Formats = ::testing::Types<Bf16, F16>;
TYPED_TEST_SUITE(MatrixTest, Formats);

TYPED_TEST(MatrixTest, MultipliesWithAMatrixWhoseColumnsLieTogether) {
  TestFixture::Check(true);
}

TYPED_TEST(MatrixTest, MultipliesWithAMatrixThatIsTurnedWhenLoaded) {
  TestFixture::Check(false);
}

TYPED_TEST(MatrixTest, PicksSingleElements) {
  using T = TypeParam;
  // One 1 in a, one number in b: every element of both ends in the right place.
  for (int row = 0; row < 16; ++row) {
    for (int k = 0; k < 16; ++k) {
      std::vector<T> a(16 * 16), b(16 * 8);
      a[row * 16 + k] = Narrow<T>(1);
      for (int column = 0; column < 8; ++column) {
        b[k * 8 + column] = Narrow<T>(static_cast<float>(1 + column));
      }
      const Array<T> a_there = ToDevice(a);
      const Array<T> b_there = ToDevice(b);
      const Array<float> c = ToDevice(std::vector<float>(16 * 8));
      Stream stream;
      LaunchSmallProduct<T>(stream,
                            {a_there.data(), b_there.data(), false, c.data()});
      stream.Wait();
      std::vector<float> expected(16 * 8);
      for (int column = 0; column < 8; ++column) {
        expected[row * 8 + column] = static_cast<float>(1 + column);
      }
      ASSERT_EQ(ToHost(c), expected) << row << " " << k;
    }
  }
}

TYPED_TEST(MatrixTest, PacksThePairOfNumbersWithTheFirstOneBelow) {
  using T = TypeParam;
  std::mt19937 random(3);
  std::vector<float> x(2 * 1000);
  for (float& value : x) {
    value = std::ldexp(static_cast<float>(random()), -40 + random() % 20);
  }
  const Array<float> from = ToDevice(x);
  const Array<uint32_t> to = Unwritten<uint32_t>(1000);
  Stream stream;
  LaunchPackPairs<T>(stream, from.data(), to.data(), 1000);
  stream.Wait();
  const std::vector<uint32_t> found = ToHost(to);
  for (int i = 0; i < 1000; ++i) {
    ASSERT_EQ(found[i] & 0xffff, Narrow<T>(x[2 * i]).bits);
    ASSERT_EQ(found[i] >> 16, Narrow<T>(x[2 * i + 1]).bits);
  }
}

}  // namespace
}  // namespace txl::cuda
