#include "client/bench/plan/distribution.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace txl::bench {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

absl::Status Unreadable(absl::string_view text) {
  return absl::InvalidArgumentError(absl::StrCat(
      "'", text,
      "' is not one of N, uniform:LOW:HIGH, exponential:MEAN[:MAX] and "
      "lognormal:MEDIAN:SIGMA:MAX"));
}

}  // namespace

Distribution::Distribution(Kind kind, double a, double b, double max,
                           std::string text)
    : kind_(kind), a_(a), b_(b), max_(max), text_(std::move(text)) {}

Distribution Distribution::Fixed(double value) {
  return Distribution(Kind::kFixed, value, 0, value, absl::StrCat(value));
}

absl::StatusOr<Distribution> Distribution::Parse(absl::string_view text) {
  const std::vector<std::string> parts = absl::StrSplit(text, ':');
  const bool named = parts.size() > 1;
  std::vector<double> numbers;
  for (size_t i = named ? 1 : 0; i < parts.size(); ++i) {
    double number = 0;
    if (!absl::SimpleAtod(parts[i], &number) || !std::isfinite(number) ||
        number < 0) {
      return Unreadable(text);
    }
    numbers.push_back(number);
  }
  const std::string written(text);
  if (!named) {
    return Distribution(Kind::kFixed, numbers[0], 0, numbers[0], written);
  }
  if (parts[0] == "uniform" && numbers.size() == 2 &&
      numbers[0] <= numbers[1]) {
    return Distribution(Kind::kUniform, numbers[0], numbers[1], numbers[1],
                        written);
  }
  if (parts[0] == "exponential" && numbers.size() <= 2) {
    return Distribution(Kind::kExponential, numbers[0], 0,
                        numbers.size() == 2 ? numbers[1] : kInfinite, written);
  }
  if (parts[0] == "lognormal" && numbers.size() == 3) {
    return Distribution(Kind::kLognormal, numbers[0], numbers[1], numbers[2],
                        written);
  }
  return Unreadable(text);
}

double Distribution::Draw(Random& random) const {
  switch (kind_) {
    case Kind::kFixed:
      return a_;
    case Kind::kUniform:
      return a_ + (b_ - a_) * random.Uniform();
    case Kind::kExponential:
      return std::min(max_, a_ * random.Exponential());
    case Kind::kLognormal:
      return std::min(max_, a_ * std::exp(b_ * random.Normal()));
  }
  return a_;
}

int64_t Distribution::DrawCount(Random& random) const {
  if (kind_ == Kind::kUniform) {
    const double low = std::ceil(a_);
    const double values = std::floor(b_) - low + 1;
    return static_cast<int64_t>(low + std::floor(values * random.Uniform()));
  }
  return std::llround(Draw(random));
}

double Distribution::lowest() const { return bounded_below() ? a_ : 0; }

double Distribution::highest() const { return max_; }

namespace {

std::mt19937_64 MakeEngine(std::initializer_list<uint64_t> key) {
  std::vector<uint32_t> words;
  for (const uint64_t word : key) {
    words.push_back(static_cast<uint32_t>(word));
    words.push_back(static_cast<uint32_t>(word >> 32));
  }
  std::seed_seq seed(words.begin(), words.end());
  return std::mt19937_64(seed);
}

}  // namespace

// The standard's distributions differ between libraries, its engine does not.
Random::Random(std::initializer_list<uint64_t> key)
    : engine_(MakeEngine(key)) {}

uint64_t Random::Bits() { return engine_(); }

double Random::Uniform() {
  constexpr double kUnit = 1.0 / static_cast<double>(uint64_t{1} << 53);
  return static_cast<double>(engine_() >> 11) * kUnit;
}

double Random::Exponential() { return -std::log1p(-Uniform()); }

double Random::Normal() {
  constexpr double kTwoPi = 6.283185307179586;
  const double radius = std::sqrt(2 * Exponential());
  return radius * std::cos(kTwoPi * Uniform());
}

}  // namespace txl::bench
