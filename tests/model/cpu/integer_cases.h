#pragma once

// Operands of integer products and sums (model/cpu/integer_operands.h), and
// what plain loops make of them.

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <vector>

#include "model/cpu/integer_operands.h"

namespace txl {

inline std::vector<int8_t> WholeNumbers(int64_t size, std::mt19937& random) {
  std::vector<int8_t> values(size);
  for (int8_t& value : values) {
    value = static_cast<int8_t>(static_cast<int>(random() % 255) - 127);
  }
  return values;
}

inline std::vector<float> Scales(int64_t size, std::mt19937& random) {
  std::uniform_real_distribution<float> scale(0.001f, 3);
  std::vector<float> values(size);
  for (float& value : values) value = scale(random);
  return values;
}

struct ProductShape {
  int64_t rows = 0;
  int64_t k = 0;
  int64_t columns = kPanel;
};

// Operands of a product, b as a plain matrix and in quads.
struct IntegerOperands : ProductShape {
  IntegerOperands(const ProductShape& shape, std::mt19937& random)
      : ProductShape(shape),
        a(WholeNumbers(rows * k, random)),
        b(WholeNumbers(k * columns, random)),
        quads(k * columns),
        a_rows(rows),
        b_scales(Scales(columns, random)) {
    for (int64_t i = 0; i < k; ++i) {
      for (int64_t c = 0; c < columns; ++c) {
        quads[(i / 4 * columns + c) * 4 + i % 4] = b[i * columns + c];
      }
    }
    const std::vector<float> scales = Scales(rows, random);
    for (int64_t r = 0; r < rows; ++r) {
      a_rows[r] = {scales[r], 0};
      for (int64_t i = 0; i < k; ++i) a_rows[r].sum += a[r * k + i];
    }
  }

  IntegerProduct Product(std::vector<float>& out) const {
    IntegerProduct product;
    product.a = {a.data(), k, a_rows.data()};
    product.rows = rows;
    product.b = quads.data();
    product.b_scales = b_scales.data();
    product.columns = columns;
    product.k = k;
    product.out = out.data();
    product.out_stride = kPanel;
    return product;
  }

  float Expected(int64_t row, int64_t column) const {
    int64_t sum = 0;
    for (int64_t i = 0; i < k; ++i) {
      sum += int64_t{a[row * k + i]} * b[i * columns + column];
    }
    return static_cast<float>(sum) * (a_rows[row].scale * b_scales[column]);
  }

  std::vector<int8_t> a, b, quads;
  std::vector<IntegerRow> a_rows;
  std::vector<float> b_scales;
};

// Nothing is written behind the columns.
inline void ExpectPlainProducts(void (*multiply)(const IntegerProduct&),
                                const ProductShape& shape,
                                std::mt19937& random) {
  const IntegerOperands operands(shape, random);
  std::vector<float> out(shape.rows * kPanel, 99);
  multiply(operands.Product(out));
  for (int64_t r = 0; r < shape.rows; ++r) {
    for (int64_t c = 0; c < kPanel; ++c) {
      ASSERT_EQ(out[r * kPanel + c],
                c < shape.columns ? operands.Expected(r, c) : 99)
          << shape.rows << " rows, " << shape.columns << " columns, " << shape.k
          << " inputs: " << r << ", " << c;
    }
  }
}

struct SumShape {
  int64_t rows = 0;
  int64_t panels = 0;
  int64_t columns = 0;
};

inline void ExpectPlainSums(void (*add)(const IntegerSum&),
                            const SumShape& shape, std::mt19937& random) {
  const auto [rows, panels, columns] = shape;
  const int64_t positions = panels * kPanel;
  const std::vector<int8_t> values = WholeNumbers(positions * columns, random);
  std::vector<int8_t> quads(values.size());
  std::vector<uint8_t> high(rows * positions), low(rows * positions);
  for (uint8_t& byte : high) byte = static_cast<uint8_t>(random());
  for (uint8_t& byte : low) byte = static_cast<uint8_t>(random());
  for (int64_t j = 0; j < positions; ++j) {
    for (int64_t c = 0; c < columns; ++c) {
      quads[(j / 4 * columns + c) * 4 + j % 4] = values[j * columns + c];
    }
  }
  std::vector<const int8_t*> tiles;
  for (int64_t i = 0; i < panels; ++i) {
    tiles.push_back(quads.data() + i * kPanel * columns);
  }
  const std::vector<float> scales = Scales(rows, random);
  std::vector<float> out(rows * columns, 99);
  add({high.data(), low.data(), positions, scales.data(), rows, tiles.data(),
       panels, columns, out.data(), columns});
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      int64_t of_high = 0, of_low = 0;
      for (int64_t j = 0; j < positions; ++j) {
        of_high += high[r * positions + j] * int64_t{values[j * columns + c]};
        of_low += low[r * positions + j] * int64_t{values[j * columns + c]};
      }
      const float sum =
          static_cast<float>(256 * of_high) + static_cast<float>(of_low);
      ASSERT_EQ(out[r * columns + c], sum * scales[r])
          << rows << " rows, " << columns << " columns";
    }
  }
}

}  // namespace txl
