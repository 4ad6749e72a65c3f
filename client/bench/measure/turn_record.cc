#include "client/bench/measure/turn_record.h"

#include <algorithm>
#include <numeric>

namespace txl::bench {

const char* OutcomeName(Outcome outcome) {
  switch (outcome) {
    case Outcome::kOk:
      return "ok";
    case Outcome::kCancelled:
      return "cancelled";
    case Outcome::kRejected:
      return "rejected";
    case Outcome::kFailed:
      return "failed";
    case Outcome::kIncomplete:
      return "incomplete";
    case Outcome::kNotSent:
      return "not_sent";
  }
  return "";
}

void Timeline::Add(Nanos time, int64_t tokens) {
  const int64_t bin = std::max<Nanos>(0, time) / kBin;
  if (bin >= static_cast<int64_t>(bins_.size())) bins_.resize(bin + 1);
  bins_[bin] += tokens;
}

void Timeline::Merge(const Timeline& other) {
  if (other.bins_.size() > bins_.size()) bins_.resize(other.bins_.size());
  for (size_t i = 0; i < other.bins_.size(); ++i) bins_[i] += other.bins_[i];
}

int64_t Timeline::Between(Nanos from, Nanos to) const {
  const auto size = static_cast<int64_t>(bins_.size());
  const auto bin_at = [&](Nanos time) {
    return std::clamp<int64_t>((time + kBin - 1) / kBin, 0, size);
  };
  const int64_t first = bin_at(from);
  const int64_t last = std::max(first, bin_at(to));
  return std::accumulate(bins_.begin() + first, bins_.begin() + last,
                         int64_t{0});
}

}  // namespace txl::bench
