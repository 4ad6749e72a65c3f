#pragma once

// Distributions of lengths and times as a user writes them.

#include <cstdint>
#include <initializer_list>
#include <random>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace txl::bench {

// Numbers that a key alone decides, so that a load can be run again.

// Not thread-safe; making one is cheap enough for each turn.
class Random {
 public:
  // Every word of the key counts.
  Random(std::initializer_list<uint64_t> key);

  uint64_t Bits();       // uniform over all values
  double Uniform();      // in [0, 1)
  double Exponential();  // mean 1
  double Normal();       // mean 0, deviation 1

 private:
  std::mt19937_64 engine_;
};

// One of
//   N                           always N
//   uniform:LOW:HIGH            LOW to HIGH, both included
//   exponential:MEAN[:MAX]      draws above MAX count as MAX
//   lognormal:MEDIAN:SIGMA:MAX  exp of a normal one with deviation SIGMA; MAX
//                               as above
// with numbers >= 0.
class Distribution {
 public:
  static Distribution Fixed(double value);
  // Errors: InvalidArgument for anything else.
  static absl::StatusOr<Distribution> Parse(absl::string_view text);

  double Draw(Random& random) const;
  // A whole number; those of `uniform` are equally likely, others are rounded.
  int64_t DrawCount(Random& random) const;

  // Bounds of draws; the highest may be infinite. The lowest is 0 unless the
  // user says it (bounded_below).
  double lowest() const;
  double highest() const;
  bool bounded_below() const {
    return kind_ == Kind::kFixed || kind_ == Kind::kUniform;
  }
  bool fixed() const { return kind_ == Kind::kFixed; }
  // How it was written.
  const std::string& text() const { return text_; }

 private:
  enum class Kind { kFixed, kUniform, kExponential, kLognormal };
  Distribution(Kind kind, double a, double b, double max, std::string text);

  Kind kind_;
  double a_;  // value, low, mean, median
  double b_;  // high, sigma
  double max_;
  std::string text_;
};

}  // namespace txl::bench
