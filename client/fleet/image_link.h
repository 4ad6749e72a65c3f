#pragma once

// The way between a cell's servers and the images that they share: one transfer
// after the other.

#include <algorithm>

namespace txl::fleet {

// Times in seconds of one clock, never going back. Not thread-safe.
class ImageLink {
 public:
  // REQUIRES: bytes_per_second > 0.
  explicit ImageLink(double bytes_per_second)
      : bytes_per_second_(bytes_per_second) {}

  // A transfer is asked for; returns when it is over.
  double Transfer(double bytes, double now) {
    const double seconds = bytes / bytes_per_second_;
    busy_seconds_ += seconds;
    return end_ = std::max(end_, now) + seconds;
  }
  double busy_seconds() const { return busy_seconds_; }  // of all asked for

 private:
  double bytes_per_second_;
  double end_ = 0;
  double busy_seconds_ = 0;
};

}  // namespace txl::fleet
